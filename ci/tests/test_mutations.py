"""Every planted fault of ci/mutations.json can still be planted, and the script tells caught from survived."""
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "ci"))
import mutations  # noqa: E402

FAULTS = json.loads((ROOT / "ci/mutations.json").read_text())


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault["name"])
def test_its_text_stands_once_and_changes(fault):
    changed = mutations.planted((ROOT / fault["file"]).read_text(), fault)
    assert changed is not None, f"{fault['file']} has its text {fault['find']!r} not exactly once: write it anew"
    assert fault["find"] != fault["replace"]


def test_names_are_each_one_s_own():
    names = [fault["name"] for fault in FAULTS]
    assert len(names) == len(set(names)) and all(re.fullmatch(r"[a-z0-9_]+", name) for name in names)


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """Of a small tree; building it is no work, but `broken` in a file stops it."""
    tree = tmp_path / "tree"
    tree.mkdir()
    for name in "xyz":
        (tree / f"{name}.txt").write_text("right\n")
    for step in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", "-C", str(tree), *step], check=True)
    monkeypatch.setattr(mutations, "ROOT", tree)
    made = mutations.Copy(tmp_path / "copy")
    made.builds = []

    def build(log, checks):
        made.builds.append(len(checks))
        return made.run("! grep -q broken *.txt", log) == 0
    monkeypatch.setattr(made, "build", build)
    monkeypatch.setattr(made, "costs", lambda faults: {"x.txt": 2, "y.txt": 0, "z.txt": 1})
    return made


def fault_in(name, replace="wrong", command="", **more):
    return {"name": name, "what": "", "file": f"{name}.txt", "find": "right", "replace": replace,
            "caught_by": command or f"grep -q right {name}.txt", **more}


@pytest.mark.parametrize("command, expected, exit_code", [
    ("grep -q right x.txt", "caught", [1]), ("true", "SURVIVED", [1]), ("exit 2", "SURVIVED", [1]),
    ("exit 2", "caught", [2])])
def test_a_fault_counts_as_caught_by_the_exit_code_it_names(copy, tmp_path, command, expected, exit_code):
    fault = fault_in("x", command=command, exit=exit_code)
    assert [outcome for _, outcome, _ in mutations.judge(copy, [fault], tmp_path / "log")] == [expected]
    assert (copy.folder / "x.txt").read_text() == "right\n", "the copy is as before afterwards"


def test_a_check_that_waits_for_ever_catches_nothing(copy, tmp_path, monkeypatch):
    monkeypatch.setattr(mutations, "CHECK_LIMIT_S", 0.2)
    fault = fault_in("x", command="sleep 60")
    assert [outcome for _, outcome, _ in mutations.judge(copy, [fault], tmp_path / "log")] == ["SURVIVED"]


def test_faults_that_do_not_build_together_are_built_by_themselves(copy, tmp_path):
    faults = [fault_in("x"), fault_in("y", "broken"), fault_in("z", find="gone")]
    came = {fault["name"]: outcome for fault, outcome, _ in mutations.judge(copy, faults, tmp_path / "log")}
    assert came == {"x": "caught", "y": "NOT PLANTED", "z": "NOT PLANTED"}
    assert copy.builds == [2, 1, 1]


def test_a_run_goes_on_with_what_was_not_caught_as_it_is_now(copy, tmp_path, capsys):
    (copy.folder / "src").mkdir()
    (copy.folder / "src/components.def").write_text("")
    faults = [fault_in("x"), fault_in("y", command="true"), fault_in("z", command="grep -q wrong z.txt")]

    def run(forgotten=(), **more):
        capsys.readouterr()
        outcomes = mutations.Outcomes(copy, set(forgotten), tmp_path / "kept.jsonl")
        counts = mutations.judge_all(copy, faults, outcomes, tmp_path / "log", **more)
        judged = [line.split()[-3] for line in capsys.readouterr().out.splitlines() if line.endswith(" s")]
        return dict(counts), judged
    counts = {"caught": 1, "SURVIVED": 1, "NO PROOF": 1}
    assert run() == (counts, ["z", "y", "x"]), "what proves nothing is not planted; then the cheapest first"
    assert run() == (counts, ["z", "y"])
    assert run(until=0) == ({"caught": 1, "left": 1, "NO PROOF": 1}, ["z"]), "none is planted when the time is over"
    assert run({"x"}) == (counts, ["z", "y", "x"])
    (copy.folder / "x.txt").write_text("it is right\n")
    assert run() == (counts, ["z", "y", "x"])
    faults[0]["caught_by"] = "test wrong != $(cut -d' ' -f3 x.txt)"
    assert run() == (counts, ["z", "y", "x"])


def test_only_components_that_are_all_a_check_looks_at_share_a_build():
    components = {"a.one": "kernel", "a.two": "kernel", "b.other_two": "kernel", "a.all": "composite"}
    parity = "build/cpu/bin/twinbench parity --filter '{}/optimized/cpu/fp32/odd$'".format

    def lone(file, check):
        return mutations.lone_component({"file": file, "caught_by": check}, components)
    assert lone("kernels/a/one/math.h", parity("one")) == "a.one"
    assert lone("optimized/a/two/cpu.cpp", parity("a.two")) == "a.two"
    assert not lone("optimized/a/two/cpu.cpp", parity("two")), "there is another whose name ends so"
    assert not lone("optimized/a/two/cpu.cpp", parity("one"))
    assert not lone("kernels/a/common/math.h", parity("one"))
    assert not lone("optimized/a/all/cpu.cpp", parity("all")), "it is made of others"
    assert not lone("src/a/one/spec.cpp", parity("one")), "every start reads it"
    assert not lone("kernels/a/one/math.h", "build/cpu/bin/twinbench coverage")


def test_a_build_holds_one_fault_of_each_component():
    parity = "build/cpu/bin/twinbench parity --filter '{}/optimized'".format
    faults = [{"name": str(i), "file": f"optimized/{place}/cpu.cpp", "caught_by": parity(place.replace("/", "."))}
              for i, place in enumerate(["a/one", "a/two", "a/one", "a/common", "b/three"])]
    components = {"a.one": "kernel", "a.two": "host", "b.three": "kernel"}
    cost = {fault["file"]: i for i, fault in enumerate(faults)}
    shared = mutations.rounds(faults, cost, components)
    assert [[fault["name"] for fault in one] for one in shared] == [["1", "0", "4"], ["2"], ["3"]]
    assert [len(one) for one in mutations.rounds(faults, cost, dict.fromkeys(components, "composite"))] == [1] * 5
