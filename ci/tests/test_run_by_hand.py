"""Tests that are run by hand, without CTest: they find the checkout's own program, or are told what to set."""
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TEST = textwrap.dedent("""\
    import os, subprocess, sys
    from twinbench_reports import found
    def NAME():
        child = [sys.executable, "-c", "from twinbench_reports import found"]
        assert subprocess.run(child).returncode == 0
        assert os.environ["TWINBENCH_PROGRAM"] == os.environ["EXPECTED_PROGRAM"]
        assert os.environ["TWINBENCH_VENV"] == os.environ["EXPECTED_VENV"]
    """).replace("NAME", "test_it")  # the list of coverage takes each definition for a test of its own


@pytest.fixture
def tree(tmp_path):
    """A checkout with a report package and one test, neither set up nor built."""
    for folder in ("ci/tests", "reports/twinbench_reports"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "reports/twinbench_reports/found.py").write_text("")
    (tmp_path / "ci/tests/test_it.py").write_text(TEST)
    shutil.copy(HERE / "conftest.py", tmp_path / "ci/tests")
    return tmp_path


def run(tree, **environment):
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("TWINBENCH_", "PYTHON"))}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "ci/tests"]
    return subprocess.run(command, cwd=tree, env={**kept, **environment}, capture_output=True, text=True)


def built(tree):
    program, venv = tree / "build/cpu/bin/twinbench", tree / ".venv"
    program.parent.mkdir(parents=True)
    program.touch()
    venv.mkdir()
    return {"EXPECTED_PROGRAM": str(program), "EXPECTED_VENV": str(venv)}


def test_what_lies_in_the_checkout_is_found(tree):
    result = run(tree, **built(tree))
    assert result.returncode == 0 and "is not set" not in result.stdout, result.stdout + result.stderr


def test_what_is_set_is_not_set_anew(tree):
    built(tree)
    result = run(tree, TWINBENCH_PROGRAM="/other/twinbench", EXPECTED_PROGRAM="/other/twinbench",
                 TWINBENCH_VENV="/other/venv", EXPECTED_VENV="/other/venv")
    assert result.returncode == 0, result.stdout + result.stderr


def test_without_a_build_the_failure_says_what_to_set(tree):
    result = run(tree)
    assert result.returncode == 1
    for told in ("TWINBENCH_PROGRAM is not set", "build it with ci/test", "TWINBENCH_VENV is not set", "ci/setup"):
        assert told in result.stdout, result.stdout
