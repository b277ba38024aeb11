"""ci/compare_revisions end to end on made-up programs: each exit code, each kind of change, bad luck and bad input.

Most comparisons are made in this process, script and programs: to start each takes longer than all that they do. Those
that ask for `in_processes` start the script, which starts the programs."""
import copy
import datetime
import functools
import json
import math
import os
import shlex
import subprocess
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "ci"), str(ROOT / "ci/tests"), str(ROOT / "reports")]
import fake_compared  # noqa: E402
from comparing import main as script  # noqa: E402
from comparing.side import Side  # noqa: E402
from in_process import caught  # noqa: E402

SCRIPT = ROOT / "ci" / "compare_revisions"
FAKE = ROOT / "ci" / "tests" / "fake_compared.py"
SCAN, CAYLEY = "sem.scan/optimized/cpu/fp32/train", "sem.cayley/optimized/cpu/fp32/train"
KERNEL = "sem.scan/optimized/simt/fp32/train"
COUNTS = {"dispatches": 12, "scalar_reads": 0, "allocations": 3, "peak_bytes": 4096, "by_name": {"aten::add": 12}}


def behaviour():
    timed = {"wall": 1e-3, "cpu": 1e-3, "counters": COUNTS, "instructions": 100_000}
    return {"noise": 0.004, "seed": 1, "cells": {
        SCAN: dict(timed), CAYLEY: dict(timed), SCAN.replace("train", "tiny"): dict(timed),
        SCAN.replace("optimized", "baseline"): dict(timed),
        KERNEL: {"counters": COUNTS, "kernels": {"modelled H200": {"microseconds": "1.62", "limiter": "latency"}}}}}


def in_processes(command):
    done = subprocess.run([sys.executable, str(SCRIPT), *command], capture_output=True, text=True, cwd=ROOT,
                          timeout=300, env=os.environ | {"TWINBENCH_VENV": str(Path(sys.prefix))})
    return done.returncode, done.stdout + done.stderr


def here(command):
    """The script's main function, and the fakes' in place of their processes."""
    started = subprocess.run

    def run(command, **keywords):
        if Path(command[0]).suffix != ".py":
            return started(command, **keywords)
        answered = caught(lambda: fake_compared.answer(command[0], command[1:]))
        return subprocess.CompletedProcess(command, *answered)

    with mock.patch.object(subprocess, "run", run):
        code, out, err = caught(lambda: script.main(ROOT, command))
    return code, out + err


def compared(folder, base, head, *arguments, by=here):
    """Compares two fakes; returns (exit code, what is said, verdict file)."""
    for name, what in (("base", base), ("head", head)):
        (folder / f"{name}.json").write_text(json.dumps(what))
        program = folder / f"{name}.py"
        program.write_text(FAKE.read_text() + f"# {json.dumps(what)}\n")
        program.chmod(0o755)
    verdict = folder / "verdict.json"
    code, said = by(["--programs", str(folder / "base.py"), str(folder / "head.py"), "--minutes", "2", "--verdict",
                     str(verdict), *arguments])
    return code, said, json.loads(verdict.read_text()) if verdict.exists() else {}


@pytest.fixture
def compare(tmp_path):
    return functools.partial(compared, tmp_path)


def changed(**changes):
    """The behaviour with another scan."""
    other = behaviour() | {"seed": 2}
    other["cells"][SCAN] = other["cells"][SCAN] | changes
    return other


COUNTS_ONLY = ("--stages", "counters,kernels,instructions")


def test_the_same_code_passes(compare):
    code, said, verdict = compare(behaviour(), behaviour(), by=in_processes)
    assert code == 0 and verdict["identical_code"] and "their times are not compared" in said
    assert verdict["compared"] == 10  # 4 counted on the CPU and 1 on simt, 1 kernel, 4 instructions


def test_a_filter_of_cells_whose_instructions_are_not_counted_is_no_error(compare):
    """`instructions` counts one cell of each kind; a filter may name others alone."""
    without = behaviour()
    for row in without["cells"].values():
        row.pop("instructions", None)
    code, said, verdict = compare(without, without, "--filter", "train", "--stages", "counters,instructions")
    assert code == 0 and verdict["compared"] > 0, said
    code, said, _ = compare(without, without, "--filter", "train", "--stages", "instructions")
    assert code == 3, said


def test_other_code_that_does_the_same_passes(compare):
    code, said, verdict = compare(behaviour(), behaviour() | {"seed": 2}, by=in_processes)
    assert code == 0 and not verdict["identical_code"] and not verdict["findings"], said
    assert {row["cell"] for row in verdict["times"]} == {SCAN, CAYLEY}  # neither the baseline nor an untimed case
    assert all(row[metric]["verdict"] == "same" for row in verdict["times"] for metric in ("real_time", "cpu_time"))


def test_five_percent_more_work_is_named_without_a_clock(compare):
    code, said, _ = compare(behaviour(), changed(instructions=105_000), *COUNTS_ONLY)
    assert code == 1 and SCAN in said and "100,000 -> 105,000 (+5.0%)" in said and "more work on the CPU" in said


def test_five_percent_more_work_is_named_on_the_noisiest_machine(compare):
    code, said, _ = compare(behaviour() | {"noise": 3.0},
                            changed(instructions=105_000, wall=1.05e-3, cpu=1.05e-3) | {"noise": 3.0},
                            "--minutes", "0.03")
    assert code == 1 and "fail instructions " + SCAN in said


def test_one_more_dispatch_is_named(compare):
    code, said, _ = compare(behaviour(), changed(counters=COUNTS | {"dispatches": 13}), *COUNTS_ONLY)
    assert code == 1 and "dispatches 12 -> 13" in said and "cause: more operators" in said


def test_a_longer_modelled_time_is_named(compare):
    head = copy.deepcopy(behaviour()) | {"seed": 2}
    head["cells"][KERNEL]["kernels"]["modelled H200"]["microseconds"] = "1.70"
    code, said, _ = compare(behaviour(), head, *COUNTS_ONLY)
    assert code == 1 and "modelled H200.microseconds 1.62 -> 1.7" in said


DRIFTING = {"drift": 0.002, "noise": 0.01}
STILL = "sem.retrieval/optimized/cpu/fp32/train"


@pytest.fixture(scope="module")
def two_slower(tmp_path_factory):
    """One comparison on a machine that drifts: the scan waits 30 % longer, cayley works 5 % more, a third the same."""
    base = behaviour() | DRIFTING
    base["cells"][STILL] = dict(base["cells"][SCAN])
    head = copy.deepcopy(base) | {"seed": 2}
    head["cells"][SCAN]["wall"] = 1.3e-3
    head["cells"][CAYLEY] |= {"wall": 1.05e-3, "cpu": 1.05e-3}
    return compared(tmp_path_factory.mktemp("slower"), base, head)


def test_thirty_percent_more_waiting_is_named_by_time_alone(two_slower):
    code, said, verdict = two_slower
    assert code == 1 and f"fail times {SCAN} [wall time]: slower +" in said
    assert "confirmed by a fresh run" in said and "waiting: the CPU time is not longer" in said
    row = next(row for row in verdict["times"] if row["cell"] == SCAN)
    assert len(row["real_time"]["fresh"]) == 40 and row["cpu_time"]["verdict"] == "same"
    assert 0.25 < math.expm1(np.median(row["real_time"]["fresh"])) < 0.35


def test_five_percent_slower_is_found_under_drift(two_slower):
    code, said, verdict = two_slower
    assert code == 1 and f"fail times {CAYLEY} [CPU time]" in said and f"fail times {STILL}" not in said
    assert "same counts: caches, layout or uncounted work" in said
    row = next(row for row in verdict["times"] if row["cell"] == STILL)
    assert row["cpu_time"]["verdict"] == row["real_time"]["verdict"] == "same"


def test_drift_alone_passes(compare):
    assert compare(behaviour() | DRIFTING, behaviour() | DRIFTING | {"seed": 2})[0] == 0


def test_too_much_noise_is_undecided_and_says_what_would_have_been_seen(compare):
    code, said, verdict = compare(behaviour() | {"noise": 0.6}, behaviour() | {"noise": 0.6, "seed": 2},
                                  "--stages", "times")
    assert code == 3 and "or more would have been seen" in said and verdict["verdict"] == "inconclusive"


def test_a_spent_budget_is_undecided(compare):
    code, said, _ = compare(behaviour(), behaviour() | {"seed": 2}, "--stages", "times", "--minutes", "0.0001")
    assert code == 3 and ("the budget ended" in said or "No time of this run is believed" in said)


def test_nothing_compared_is_no_pass(compare):
    code, said, _ = compare(behaviour(), behaviour(), "--filter", "no_such_cell")
    assert code == 3 and "nothing was compared" in said


def test_vanished_new_and_renamed_cells_are_named(compare):
    head = behaviour() | {"seed": 2}
    other = SCAN.replace("train", "longer")
    head["cells"][other] = head["cells"].pop(SCAN) | {"instructions": 77}
    head["cells"][CAYLEY.replace("fp32", "bf16")] = head["cells"][CAYLEY]
    code, said, _ = compare(behaviour(), head, *COUNTS_ONLY)
    assert code == 3
    assert f"missing instructions {SCAN}: vanished" in said and f"notice instructions {other}: new" in said
    assert f"notice counters cpu {other}: renamed: it was {SCAN}" in said
    assert "missing counters" not in said and f"counters cpu {CAYLEY.replace('fp32', 'bf16')}: new" in said


def test_a_cell_that_is_timed_no_more_is_missing_and_a_new_one_is_named(compare):
    head, other = behaviour() | {"seed": 2}, "sem.sinkhorn/optimized/cpu/fp32/train"
    head["cells"][other] = head["cells"].pop(SCAN)
    for base, now, cell in ((behaviour(), head, SCAN), (head, behaviour(), other)):
        code, said, verdict = compare(base, now, "--stages", "times")
        assert code == 3 and f"missing times {cell}: vanished: base times it, head does not" in said
        assert {row["cell"] for row in verdict["times"]} == {CAYLEY}
    del head["cells"][other]
    code, said, _ = compare(head, behaviour(), "--stages", "times")
    assert code == 0 and f"notice times {SCAN}: new" in said
    head["cells"].pop(CAYLEY)
    code, said, verdict = compare(head, head | {"seed": 2}, "--stages", "times")
    assert code == 3 and "nothing was compared" in said and not verdict["compared"]


def test_what_the_machine_makes_of_equal_programs_is_named_and_fails_nothing(compare):
    code, said, verdict = compare(behaviour() | {"noise": 0.6}, behaviour() | {"noise": 0.6}, "--stages", "times",
                                  "--same-code-too")
    assert code == 0 and verdict["identical_code"] and "both programs are the same code" in said
    assert verdict["findings"] and {one["severity"] for one in verdict["findings"]} == {"notice"}


def test_a_duplicated_cell_is_an_error(compare, tmp_path):
    head = behaviour() | {"seed": 2}
    code, said, _ = compare(behaviour(), head, "--stages", "counters")
    assert code == 0
    text = (tmp_path / "head.py").read_text().replace(
        "json.dumps({\"cells\": found} if engine == \"kernels\" else found)",
        "json.dumps(found)[:-1] + ', ' + json.dumps(found)[1:]")
    (tmp_path / "head.py").write_text(text)
    code, said = in_processes(["--programs", str(tmp_path / "base.py"), str(tmp_path / "head.py"), "--stages",
                               "counters"])
    assert code == 2 and "is there twice" in said


def test_fewer_is_no_failure_and_the_baseline_may_count_more(compare):
    head = changed(instructions=90_000)
    head["cells"][SCAN.replace("optimized", "baseline")]["instructions"] = 200_000
    code, said, _ = compare(behaviour(), head, *COUNTS_ONLY)
    assert code == 0 and "fewer: instructions 100,000 -> 90,000" in said and "changed: instructions" in said


def test_a_count_that_does_not_repeat_is_not_judged(compare):
    code, said, _ = compare(behaviour(), changed() | {"restless": SCAN}, "--stages", "instructions")
    assert code == 0 and "does not repeat, so it is not judged" in said


def test_work_that_is_done_in_some_runs_only_fails(compare):
    """A loop of random length would else hide in head as a count that does not repeat."""
    code, said, _ = compare(behaviour(), changed() | {"restless": SCAN, "moves": 2_000}, "--stages", "instructions")
    assert code == 1 and f"fail instructions {SCAN}: no longer repeats as in base: base 100,000 then 100,000" in said
    restless = {"restless": SCAN, "moves": 2_000}
    code, said, _ = compare(behaviour() | restless, changed() | restless, "--stages", "instructions")
    assert code == 0 and "does not repeat, so it is not judged" in said


def test_what_is_no_longer_checked_fails_unless_a_reviewed_file_excuses_it(tmp_path):
    """Of two trees; what is new, and what only moved, is nothing."""
    sides = []
    for name, lines in (("base", "cell a\npytest b\nrun c\n"), ("head", "run c\npytest d\ncell a\n")):
        (tmp_path / name / "ci").mkdir(parents=True)
        (tmp_path / name / "ci/coverage.txt").write_text(lines)
        sides.append(Side(name, tmp_path / name, FAKE))
    waivers = tmp_path / "waivers.toml"
    waivers.write_text('[[waiver]]\nmatch = "pytest b"\nkind = "coverage"\nlimit = 1\nreason = "b is d now"\n'
                       f'owner = "us"\nexpiry = {datetime.date.today() + datetime.timedelta(days=9)}\n')
    for flags, expected in (([], 1), (["--waivers", str(waivers)], 3), (["--waivers", str(tmp_path / "none")], 2)):
        with mock.patch.object(script, "_sides", lambda *_: (*sides, False)):
            code, out, err = caught(lambda: script.main(ROOT, ["a", "b", "--stages", "coverage", *flags]))
        assert code == expected  # 3: no cell was compared
        assert ("fail coverage pytest b: base's ci/coverage.txt lists it" in out) == (code == 1) and "cell a" not in out


def test_five_percent_more_is_judged_though_the_last_digits_do_not_repeat(compare):
    """A bisection lost its commit to 20 instructions of 600,000."""
    code, said, _ = compare(behaviour(), changed(instructions=105_000) | {"restless": SCAN}, "--stages", "instructions")
    assert code == 1 and "the least difference is judged" in said and "100,000 -> 105,0" in said


def test_a_cell_that_cannot_be_timed_is_missing(compare):
    code, said, _ = compare(behaviour(), changed(error="rejected: wrong answer"), "--stages", "times")
    assert code == 3 and f"missing times {SCAN}: not timed: head: rejected: wrong answer" in said


def test_the_reproduce_command_of_a_failing_row_fails_too(compare):
    _, _, verdict = compare(behaviour(), changed(counters=COUNTS | {"dispatches": 13}), *COUNTS_ONLY)
    row = next(row for row in verdict["findings"] if row["severity"] == "fail")
    named, *command = shlex.split(row["reproduce"])
    assert ROOT / named == SCRIPT
    code, said = in_processes([*command, *COUNTS_ONLY])
    assert code == 1 and SCAN in said and CAYLEY not in said


@pytest.mark.parametrize("arguments, says", [
    (["--minutes", "0"], "positive"), (["--filter", "("], "no regular expression"), (["--stages", "clock"], "no stage"),
    (["--frob"], "--frob")])
def test_wrong_flags_end_with_2(compare, arguments, says):
    code, said, _ = compare(behaviour(), behaviour(), *arguments)
    assert code == 2 and says in said


def test_a_usage_error_is_the_scripts_exit_code_too():
    code, said = in_processes(["base", "head", "--frob"])
    assert code == 2 and "--frob" in said


def test_a_program_that_crashes_ends_with_2(compare):
    code, said, _ = compare(behaviour(), behaviour() | {"crash": "counters"}, by=in_processes)
    assert code == 2 and "planted crash" in said


def test_a_program_that_is_not_there_ends_with_2():
    code, said = in_processes(["--programs", "/nowhere/a", "/nowhere/b"])
    assert code == 2 and "remedy" in said


def test_an_unknown_revision_ends_with_2():
    code, said = in_processes(["no-such-revision", "HEAD"])
    assert code == 2 and "no-such-revision" in said
