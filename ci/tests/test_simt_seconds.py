"""The one command that times simt: what it runs, when it says no."""
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def timed(tmp_path):
    """Calls it over a program that writes down its words and ends as told."""
    program, calls = tmp_path / "twinbench", tmp_path / "calls"

    def call(*words, ends="exit 0"):
        calls.write_text("")
        program.write_text(f"#!/bin/sh\necho \"$@\" >> '{calls}'\n{ends}\n")
        program.chmod(0o755)
        run = subprocess.run([sys.executable, str(ROOT / "ci/simt_seconds.py"), "--program", str(program), *words],
                             capture_output=True, text=True)
        return run, calls.read_text().splitlines()
    return call


def test_it_runs_parity_counters_and_accesses_of_the_seven(timed):
    run, calls = timed()
    assert run.returncode == 0 and "together" in run.stdout and "at most 90 s: yes" in run.stdout
    assert [call.split()[0] for call in calls] == ["parity", "counters", "kernels"]
    assert all("energy_carrier" in call and "dataset_loader" in call for call in calls)
    assert all("--device simt" in call for call in calls[:2]), "kernels knows no other device"
    assert not any(word in " ".join(calls) for word in ("--quick", "--tier", "--minutes")), "nothing is left out"


def test_beyond_the_limit_or_with_a_check_that_fails_it_says_no(timed):
    late, calls = timed("--at-most", "0.5", "--filter", "^a[.]b/", ends="sleep 0.2")
    assert late.returncode == 1 and "at most 0.5 s: no" in late.stdout and calls[0].endswith("--filter ^a[.]b/")
    failed, calls = timed(ends='[ "$1" != counters ]')
    assert failed.returncode == 1 and "exit code 1" in failed.stdout and len(calls) == 3
    assert timed("--program", "nowhere")[0].returncode == 2
