"""Each mistake in the list of components is an error that names it: missing file, missing spec, stray file, bad
line."""
import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "ci/lint"))
import lint_all  # noqa: E402


def configure(tmp_path: Path, extra_line: str) -> subprocess.CompletedProcess:
    listed = tmp_path / "components.def"
    listed.write_text((ROOT / "src/components.def").read_text() + extra_line + "\n")
    command = ["cmake", "-S", str(ROOT), "-B", str(tmp_path / "build"), "-G", "Ninja",
               f"-DTWINBENCH_COMPONENT_LIST={listed}"]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_missing_file_is_a_configure_error_that_names_it(tmp_path):
    result = configure(tmp_path, "TWINBENCH_COMPONENT(energy_flow, ghost, kernel, library)")
    assert result.returncode != 0
    assert ("energy_flow.ghost" in result.stderr
            and "src/energy_flow/ghost/spec.cpp is missing" in " ".join(result.stderr.split()))


def test_malformed_line_is_a_configure_error_that_shows_it(tmp_path):
    result = configure(tmp_path, "TWINBENCH_COMPONENT(energy_flow, ghost, kernle, plain)")
    assert result.returncode != 0 and "ghost, kernle" in result.stderr


def test_missing_spec_and_factories_are_link_errors_that_name_them(tmp_path):
    venv = Path(os.environ.get("TWINBENCH_VENV", ROOT / ".venv"))
    include = next(venv.glob("lib/python3*/site-packages/torch/include"))
    (tmp_path / "src").mkdir()
    (tmp_path / "src/components.def").write_text("TWINBENCH_COMPONENT(energy_flow, ghost, host, library)\n")
    compiled = tmp_path / "registry.o"
    # The folder with the other list comes first on the include path.
    subprocess.run(["g++", "-std=c++20", "-fPIC", "-O0", "-c", str(ROOT / "src/registry.cpp"), "-o", str(compiled),
                    f"-I{tmp_path}", f"-I{ROOT}", "-isystem", str(include)], check=True, timeout=300)
    linked = subprocess.run(["g++", "-shared", "-Wl,--no-undefined", str(compiled), "-o", str(tmp_path / "out.so")],
                            capture_output=True, text=True)
    assert linked.returncode != 0
    for symbol in (f"energy_flow::ghost::make_{role}" for role in ("spec", "baseline", "cpu", "library")):
        assert symbol in linked.stderr, f"{symbol} is not named by the linker"


REAL = "// A component.\nnamespace twinbench::energy_flow::real {\n}\n"


def small_tree(tmp_path: Path) -> Path:
    for folder in ("src", "kernels", "baselines", "optimized"):
        (tmp_path / folder / "energy_flow/real").mkdir(parents=True)
    (tmp_path / "src/components.def").write_text("TWINBENCH_COMPONENT(energy_flow, real, host, plain)\n")
    for file in ("src/energy_flow/real/spec.cpp", "baselines/energy_flow/real/baseline.cpp",
                 "optimized/energy_flow/real/cpu.cpp"):
        (tmp_path / file).write_text(REAL)
    return tmp_path


def lint(tree: Path) -> subprocess.CompletedProcess:
    """The lint's main function on that tree."""
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        code = lint_all.main(tree)
    return subprocess.CompletedProcess([tree], code, told.getvalue())


def test_the_lint_as_a_program_says_the_same(tmp_path):
    tree = small_tree(tmp_path)
    (tree / "src/energy_flow/real/spec.cpp").write_text("#include <vector>\n")
    started = subprocess.run([sys.executable, str(ROOT / "ci/lint/lint_all.py"), str(tree)], capture_output=True,
                             text=True)
    called = lint(tree)
    assert (started.returncode, started.stdout) == (called.returncode, called.stdout) and started.returncode == 1


def test_clean_tree_passes(tmp_path):
    result = lint(small_tree(tmp_path))
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("path, text, complaint", [
    ("baselines/energy_flow/stray.cpp", "// Nobody lists it.\n", "belongs to no component"),
    ("baselines/energy_flow/ghost/baseline.cpp", "// Nobody lists it.\n", "belongs to no component"),
    ("baselines/energy_flow/real/helper.cpp", "// No role.\n", "is no role of baselines/"),
    ("optimized/energy_flow/real/cpu.cpp", '// A.\n#include "optimized/energy_flow/other/pack.h"\n',
     "a file of another component"),
    ("baselines/energy_flow/real/baseline.cpp", '// A.\n#include "kernels/common/math.h"\n',
     "baselines/ may not include kernels/common/math.h"),
    ("baselines/energy_flow/real/baseline.cpp", '// A.\n#include "optimized/x.h"\n', "may not include optimized/x.h"),
    ("kernels/energy_flow/real/launch.cu", "// A.\n#include <ATen/ATen.h>\n", "torch-free"),
    ("kernels/energy_flow/real/launch.cu", '// A.\n#include "src/component.h"\n',
     "kernels/ may not include src/component.h"),
    ("src/energy_flow/real/spec.cpp", '// A.\n#include "harness/x.h"\n', "src/ may not include harness/x.h"),
    ("src/energy_flow/real/spec.cpp", "#include <vector>\n", "first line must be a comment"),
    ("src/energy_flow/real/spec.cpp", "// A.\n" + "int x;\n" * 500, "split it by purpose"),
    ("src/energy_flow/real/spec.cpp", "// A.\nvoid f() { std::exit(1); }\n", "only main exits"),
    ("src/energy_flow/real/spec.cpp", "// A.\n// TODO later\n", "unfinished mark"),
    ("src/energy_flow/real/spec.cpp", "// A.\nstd::random_device d;\n", "unreplayable"),
    # Other ways to write an include.
    ("baselines/energy_flow/real/baseline.cpp", '// A.\n#include "../../../kernels/common/math.h"\n', "from the root"),
    ("baselines/energy_flow/real/baseline.cpp", '// A.\n#include "src/../kernels/common/math.h"\n', "from the root"),
    ("baselines/energy_flow/real/baseline.cpp", '// A.\n#include "./helper.h"\n', "from the root"),
    ("baselines/energy_flow/real/baseline.cpp", '// A.\n#include "helper.h"\n', "from the root"),
    ("baselines/energy_flow/real/baseline.cpp", "// A.\n#include <kernels/common/math.h>\n",
     "baselines/ may not include kernels/common/math.h"),
    ("baselines/energy_flow/real/baseline.cpp", "// A.\n#include <../kernels/common/math.h>\n", "stands in quotes"),
    ("baselines/energy_flow/real/baseline.cpp", '// A.\n#define H "kernels/common/math.h"\n#include H\n',
     "baseline.cpp:3: #include H: say"),
    ("baselines/energy_flow/real/baseline.cpp", '// A.\n#include_next "kernels/common/math.h"\n', "#include_next"),
    ("baselines/energy_flow/real/baseline.cpp", '// A.\n#\\\n  include "kernels/common/math.h"\n',
     "baseline.cpp:2: baselines/ may not include"),
    ("baselines/energy_flow/real/baseline.cpp", '// A.\n#inc\\\nlude "kernels/common/math.h"\n',
     "baseline.cpp:2: baselines/ may not include"),
    ("baselines/energy_flow/real/baseline.cpp", '// A.\n# /* or\n so */ include "kernels/common/math.h"\n',
     "baselines/ may not include"),
    ("baselines/energy_flow/real/baseline.cpp",
     '// As in src/*.h.\nconst char* s = "/*";\n#include "kernels/common/math.h"\n/* end */\n',
     "baseline.cpp:3: baselines/ may not include"),
    ("baselines/energy_flow/real/baseline.cpp", '// A.\n%: include "kernels/common/math.h"\n', "may not include"),
    ("baselines/energy_flow/real/baseline.cpp", '// A.\n#include "src/other.cpp"\n', "is compiled on its own"),
    # Files that no rule would read.
    ("baselines/common/shared.inc", '#include "kernels/common/math.h"\n', "'.inc' is no suffix of baselines/"),
    ("baselines/energy_flow/common/shared.hpp", "// A.\n", "'.hpp' is no suffix"),
    ("kernels/common/shared.cuh", "// A.\n", "'.cuh' is no suffix"),
    ("optimized/energy_flow/common/SHARED.H", "// A.\n", "'.H' is no suffix"),
    # A folder whose code is another component's, or another variant's.
    ("baselines/energy_flow/real/baseline.cpp", "// A.\nnamespace twinbench::energy_flow::other {\n}\n",
     "baseline.cpp:2: opens namespace twinbench::energy_flow::other"),
    ("baselines/energy_flow/real/baseline.cpp", "// A.\nnamespace twinbench { namespace\nenergy_flow::other {\n} }\n",
     "opens namespace energy_flow::other"),
    ("src/energy_flow/real/spec.cpp", "// A.\n", "does not open namespace twinbench::energy_flow::real"),
    ("optimized/energy_flow/real/cpu.cpp", REAL.replace("{", "{\nint make_baseline();", 1), "names make_baseline"),
    ("optimized/energy_flow/real/cpu.cpp", REAL.replace("{", "{\n#define P(a, b) a##b", 1), "pastes names together"),
])
def test_each_breach_is_caught(tmp_path, path, text, complaint):
    tree = small_tree(tmp_path)
    (tree / path).parent.mkdir(parents=True, exist_ok=True)
    (tree / path).write_text(text)
    result = lint(tree)
    assert result.returncode == 1 and complaint in result.stdout, result.stdout


@pytest.mark.parametrize("path, text", [
    ("baselines/energy_flow/real/baseline.cpp", REAL.replace("{", '{\n// #include "../x.h", see make_cpu\n', 1)),
    ("baselines/energy_flow/real/baseline.cpp", "/* Says\n#include H\n*/\n#include <vector>\n" + REAL),
    ("optimized/energy_flow/real/cpu.cpp", '// A.\n#  include   "src/component.h"  // why\n' + REAL),
    ("optimized/energy_flow/real/pack.h", "// A.\nnamespace twinbench {\nnamespace alias = real;\nnamespace {\n}\n}\n"),
    ("optimized/energy_flow/real/cpu.cpp", REAL.replace("{", "{\nint make_cpu();", 1)),
])
def test_what_only_looks_like_a_breach_passes(tmp_path, path, text):
    tree = small_tree(tmp_path)
    (tree / path).write_text(text)
    result = lint(tree)
    assert result.returncode == 0, result.stdout


def test_this_repository_is_clean():
    assert lint_all.main() == 0
