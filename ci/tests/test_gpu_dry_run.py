"""The GPU suite's dry run: a stage that is dropped, out of its order, failing, or that swallows a failure is named."""
import re

import pytest
from fake_suite import Suite, script
from suite.dry_run import BROKEN, STAGES
from suite.plan import Step
from suite.state import StepResult


@pytest.fixture
def suite(tmp_path):
    made = Suite(tmp_path)
    tests = tmp_path / "bin/kernel_tests"
    tests.write_text("#!/bin/sh\necho '[  PASSED  ] 1 test.'\n")
    tests.chmod(0o755)
    return made


def test_every_stage_begins_in_its_order_and_none_lets_a_failure_pass(suite):
    run = suite("--dry-run", as_user=True)
    page = (suite.out / "dry_run.md").read_text()
    assert run.returncode == 0, run.stdout + run.stderr
    assert re.findall(r"^## \d+\. (\w+)$", page, re.MULTILINE) == list(STAGES)
    for stage in STAGES:
        text = page.split(f". {stage}\n")[1].split("\n## ")[0]
        assert "no command" not in text.split("Here")[0], f"{stage} has no command line on a card"
        assert all(f"| {what} | {stage}" in text for what in ("here", *BROKEN)), stage
    assert "    twinbench counters --device cuda --filter ^energy_flow\\.first/" in page
    assert "    twinbench counters --device simt" in page and "    twinbench bench --device cpu" in page
    assert "ended by SIGSEGV" in page and "refused as planted" in page and "energy_flow.second" not in page
    assert re.search(r"parity[.]energy_flow[.]first[.]json: (\d+) planned, \1 passed", page)


def test_stages_that_are_dropped_are_named(suite):
    run = suite("--dry-run", "--only", "^(?!bits|null|unit)")
    assert run.returncode == 1
    assert all(f"here: stage {stage} did not begin" in run.stdout for stage in ("bits", "null", "unit"))


def test_stages_out_of_their_order_are_named(suite, monkeypatch):
    plan = script.make_plan
    monkeypatch.setattr(script, "make_plan", lambda *given, **named: sorted(
        plan(*given, **named), key=lambda step: step.group != "bench"))
    run = suite("--dry-run")
    assert run.returncode == 1 and "here: the stages began in the order bench, ceilings" in run.stdout


RUNNERS = ("run_bits", "run_counters", "run_sectors", "run_engine", "run_second_timer", "run_sanitizer",
           "run_unit_tests")


@pytest.mark.parametrize("verdict", ["pass", "skip"])
def test_a_swallowed_failure_is_named_in_every_stage(suite, monkeypatch, verdict):
    def swallowing(run_it):
        def swallows(bench, *given):
            if "broken" not in bench.work.parts:
                return run_it(bench, *given)
            step = next(one for one in given if isinstance(one, Step))
            return StepResult(step.name, "done", verdict, "as always")
        return swallows

    for runner in RUNNERS:
        monkeypatch.setattr(script, runner, swallowing(getattr(script, runner)))
    run = suite("--dry-run")
    said = [line for line in run.stdout.splitlines() if line.startswith("dry run: ")]
    assert run.returncode == 1
    for what in BROKEN:
        for stage in STAGES:
            words = f"dry run: a program that {what} is called {verdict} by {stage}"
            assert any(line.startswith(words) for line in said), words
    assert not any(line.startswith("dry run: here") for line in said), "what ran here is as it was"


def test_a_stage_that_fails_here_or_is_cut_is_named(suite):
    run = suite("--dry-run", behaviour={"parity.energy_flow.first": "fail"})
    assert run.returncode == 1 and "here: parity.energy_flow.first: fail" in run.stdout


def test_it_goes_through_the_whole_plan_anew(suite):
    assert suite("--dry-run", "--resume").returncode == 2
    assert suite("--dry-run", "--list").returncode == 2
