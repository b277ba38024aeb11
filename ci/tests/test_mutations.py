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


@pytest.mark.parametrize("command, expected, exit_code", [
    ("grep -q right x.txt", "caught", [1]), ("true", "SURVIVED", [1]), ("exit 2", "SURVIVED", [1]),
    ("exit 2", "caught", [2])])
def test_a_fault_counts_as_caught_by_the_exit_code_it_names(tmp_path, monkeypatch, command, expected, exit_code):
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "x.txt").write_text("right\n")
    for step in (["init", "-q"], ["add", "x.txt"]):
        subprocess.run(["git", "-C", str(tree), *step], check=True)
    monkeypatch.setattr(mutations, "ROOT", tree)
    copy = mutations.Copy(tmp_path / "copy")
    fault = {"name": "a", "file": "x.txt", "find": "right", "replace": "wrong", "caught_by": command, "exit": exit_code}
    monkeypatch.setattr(mutations, "needs_building", lambda path: False)
    assert mutations.judge(copy, fault, tmp_path / "log")[0] == expected
    assert (tmp_path / "copy/x.txt").read_text() == "right\n", "the copy is as before afterwards"
