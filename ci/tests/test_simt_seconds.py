"""The one command that times simt: what it runs, when it says no."""
import os
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
        names = ("energy_carrier", "simple_neuron")
        listing = "\n".join(f"energy_flow.{name}/optimized/simt/fp32/tiny" for name in names)
        program.write_text(f"#!/bin/sh\n[ $1 = list ] && exec echo '{listing}'\necho \"$@\" >> '{calls}'\n{ends}\n")
        program.chmod(0o755)
        run = subprocess.run([sys.executable, str(ROOT / "ci/simt_seconds.py"), "--program", str(program), *words],
                             capture_output=True, text=True)
        return run, calls.read_text().splitlines()
    return call


def test_it_runs_parity_counters_and_accesses_of_those_with_kernels(timed):
    run, calls = timed()
    assert run.returncode == 0 and "together" in run.stdout and "at most 90 s: yes" in run.stdout
    both = r"--filter ^energy_flow\.simple_neuron/|^energy_flow\.energy_carrier/"
    shards = 3 * os.cpu_count()
    for engine, sharded in (("parity", calls[:shards]), ("counters", calls[shards:-2])):
        assert sorted(sharded) == sorted(f"{engine} --device simt {both} --shard {at}/{shards}"
                                         for at in range(1, shards + 1)), "nothing is left out"
    assert sorted(calls[-2:]) == [f"kernels --filter {one}" for one in
                                  (r"^energy_flow\.energy_carrier/", r"^energy_flow\.simple_neuron/")]


def test_beyond_the_limit_or_with_a_check_that_fails_it_says_no(timed):
    late, calls = timed("--at-most", "0.5", "--components", "energy_flow.simple_neuron", ends="sleep 0.2")
    assert late.returncode == 1 and "at most 0.5 s: no" in late.stdout and len(calls) == 6 * os.cpu_count() + 1
    assert not any("carrier" in call for call in calls)
    for engine in ("parity", "counters", "kernels"):
        failed, calls = timed(ends=f'[ "$1" != {engine} ]')
        assert failed.returncode == 1 and "exit code 1" in failed.stdout and len(calls) == 6 * os.cpu_count() + 2
    assert timed("--program", "nowhere")[0].returncode == 2
    assert timed("--components", "energy_flow.collation")[0].returncode == 2
