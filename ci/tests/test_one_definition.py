"""One linker name, two bodies: seen in listings as objdump prints them, and in a planted pair of objects."""
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "ci"))

import one_definition  # noqa: E402

SOURCE = """
namespace twinbench { void launch(%(stream)s*);
%(space)s struct Held { void run() { launch((%(stream)s*)nullptr); } }; %(end)s
auto %(entry)s = &Held::run; }
"""


def compiled(folder: Path, stream: str, space: str = "") -> dict[str, set[str]]:
    name = stream + (space or "none")
    text = SOURCE % {"stream": stream, "entry": "go_" + stream, "end": "}" if space else "",
                     "space": f"inline namespace {space} {{" if space else ""}
    (folder / f"{name}.cpp").write_text(f"struct {stream};" + text)
    subprocess.run(["g++", "-std=c++20", "-O2", "-c", f"{name}.cpp", "-o", f"{name}.o"], cwd=folder, check=True)
    return one_definition.of_objects([folder / f"{name}.o"])


def test_a_function_that_launches_on_its_own_forms_stream_is_named(tmp_path):
    found = one_definition.two_bodies(compiled(tmp_path, "CUstream_st"), compiled(tmp_path, "HostStream"))
    assert list(found) == ["_ZN9twinbench4Held3runEv"] and len(found["_ZN9twinbench4Held3runEv"]) == 2


def test_in_a_namespace_of_its_form_it_has_a_name_of_its_own(tmp_path):
    card, host = compiled(tmp_path, "CUstream_st", "cuda_form"), compiled(tmp_path, "HostStream", "simt_form")
    assert card and host and one_definition.two_bodies(card, host) == {}


def test_objects_that_are_not_there_are_no_pass(tmp_path):
    run = subprocess.run([sys.executable, ROOT / "ci/one_definition.py", "--build", tmp_path], capture_output=True,
                         text=True)
    assert run.returncode == 2 and "0 functions" in run.stderr
