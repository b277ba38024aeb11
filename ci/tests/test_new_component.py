"""ci/new_component: what it refuses; and, slow, that its skeleton is a component: written into a copy of the tree,
filled with another rule in three lines, built, and run through every engine. TWINBENCH_SKELETON_BUILD=1 runs the
slow half."""
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LEFT_OUT = shutil.ignore_patterns("build", ".git", "out", "data", ".venv", "__pycache__")
slow = pytest.mark.skipif(not os.environ.get("TWINBENCH_SKELETON_BUILD"), reason="slow: it builds the program anew")


def run(tree: Path, *command: str, limit_s: float = 120) -> subprocess.CompletedProcess:
    return subprocess.run(command, cwd=tree, capture_output=True, text=True, timeout=limit_s)


@pytest.fixture
def small_tree(tmp_path):
    """The generator, its templates and the list: all it needs."""
    for name in ("ci/new_component", "src/components.def", ".clang-format", "ci/format"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "ci/skeleton", tmp_path / "ci/skeleton")
    return tmp_path


@pytest.mark.parametrize("arguments, said", [
    (["sem", "Scan"], "bad_name: NAME 'Scan'"),
    (["sem", "two__words"], "bad_name: NAME 'two__words'"),
    (["sem", "2d_scan"], "bad_name: NAME '2d_scan'"),
    (["sem", "union"], "bad_name: NAME 'union'"),
    (["sem", "constexpr"], "bad_name: NAME 'constexpr'"),
    (["sem", "torch"], "bad_name: NAME 'torch'"),
    (["sem", "a" * 300], "at most 60 letters"),
    (["semm", "scan"], "unknown_name: PIPELINE 'semm'"),
    (["energy_flow", "simple_neuron"], "name_taken: NAME 'simple_neuron'"),
    (["sem", "scan", "--source", "C07"], "bad_argument: --source 'C07'"),
    (["sem", "scan", "--source", "energy_flow C07"], "bad_argument: --source"),
    (["sem", "scan", "--kind", "gpu"], "invalid choice: 'gpu'"),
    (["sem"], "required: NAME"),
])
def test_bad_input_is_refused_and_changes_nothing(small_tree, arguments, said):
    before = sorted(small_tree.rglob("*")), (small_tree / "src/components.def").read_text()
    result = run(small_tree, "ci/new_component", *arguments)
    assert result.returncode == 2 and said in result.stderr, result.stderr
    assert before == (sorted(small_tree.rglob("*")), (small_tree / "src/components.def").read_text())


@pytest.mark.parametrize("arguments, count", [([], 11), (["--library"], 12), (["--kind", "host"], 5),
                                              (["--kind", "host", "--library"], 6)])
def test_the_skeleton_is_whole_and_formatted(small_tree, arguments, count):
    result = run(small_tree, "ci/new_component", "energy_flow", "row_twice", *arguments, "--source", "energy_flow C99")
    assert result.returncode == 0, result.stderr
    paths = [line for line in result.stdout.splitlines() if "/row_twice/" in line and " " not in line]
    assert len(paths) == count
    listed = [line for line in (small_tree / "src/components.def").read_text().splitlines() if "row_twice" in line]
    kind, variants = "host" if "host" in arguments else "kernel", "library" if "--library" in arguments else "plain"
    assert listed == [f"TWINBENCH_COMPONENT(energy_flow, row_twice, {kind}, {variants})"]
    for path in paths:
        assert not re.search(r"@\w+@|TODO", (small_tree / path).read_text()), path
    sources = [path for path in paths if path.endswith((".h", ".cpp", ".cu"))]
    checked = run(small_tree, "ci/format", "--check", *sources)
    assert checked.returncode == 0, checked.stdout
    # A second one of that name is refused.
    assert run(small_tree, "ci/new_component", "energy_flow", "row_twice").returncode == 2


# The three lines: y = x * x + 1 instead of y = 2x.
FILLED = {
    "baselines/{}/baseline.cpp": ("return x * 2;", "return x * x + 1;"),
    "kernels/{}/math.h": ("return 2.0f * x;", "return x * x + 1.0f;"),
    "src/{}/goldens.json": ("[[2, -4, 1]]", "[[2, 5, 1.25]]"),
}
# One more operator a row, which the proof counter's formula must say.
COUNTED = ("setting.size(\"rows\") + 1; }", "2 * setting.size(\"rows\") + 1; }")


@slow
def test_a_filled_skeleton_runs_through_every_engine(tmp_path):
    tree, component = tmp_path / "tree", "energy_flow/square_rows"
    shutil.copytree(ROOT, tree, ignore=LEFT_OUT)
    made = run(tree, "ci/new_component", "energy_flow", "square_rows", "--source", "energy_flow C99")
    assert made.returncode == 0, made.stderr
    for path, (before, after) in {**FILLED, "src/{}/spec.cpp": COUNTED}.items():
        file = tree / path.format(component)
        assert file.read_text().count(before) == 1, f"{file} lacks: {before}"
        file.write_text(file.read_text().replace(before, after))
    for command in (["cmake", "--preset", "cpu"], ["cmake", "--build", "--preset", "cpu", "--target", "twinbench",
                                                   "--target", "kernel_tests"]):
        built = run(tree, *command, limit_s=3000)
        assert built.returncode == 0, (built.stdout + built.stderr)[-3000:]
    program, cells = str(tree / "build/cpu/bin/twinbench"), "^energy_flow\\.square_rows/"
    listed = json.loads(run(tree, program, "list", "--json").stdout)
    assert "energy_flow.square_rows" in json.dumps(listed)
    cell = "energy_flow.square_rows/optimized/cpu/fp32/tiny"
    dumped = str(tmp_path / "cell.safetensors")
    for arguments in (["parity", "--filter", cells], ["counters", "--pin", "--filter", cells],
                      ["counters", "--filter", cells], ["bench", "--quick", "--filter", cells],
                      ["dump", cell, "--out", dumped], ["check", cell, "--from", dumped]):
        done = run(tree, program, *arguments, limit_s=600)
        # A busy machine may leave a time undecided (3); nothing else may.
        allowed = (0, 3) if arguments[0] == "bench" else (0,)
        assert done.returncode in allowed, f"{arguments}: {(done.stdout + done.stderr)[-3000:]}"
    kernels = run(tree, str(tree / "build/cpu/bin/kernel_tests"), "--gtest_filter=SquareRowsKernel.*")
    assert kernels.returncode == 0 and "[  PASSED  ] 1 test" in kernels.stdout, kernels.stdout[-2000:]
    assert run(tree, "python3", "ci/lint/lint_all.py").returncode == 0
