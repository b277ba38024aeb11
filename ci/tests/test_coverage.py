"""What is checked may only grow: planted losses and gains, each with its exit code."""
import json
import shutil
from pathlib import Path

import pytest
import warm

ROOT = Path(__file__).parents[2]


def coverage(pins, *flags):
    return warm.run("coverage", "--pins", pins, *flags)


@pytest.fixture
def pins(tmp_path):
    copy = tmp_path / "coverage.txt"
    copy.write_text((ROOT / "ci/coverage.txt").read_text())
    return copy


def test_the_checked_in_list_is_what_there_is():
    result = coverage("ci/coverage.txt")
    assert result.returncode == 0, result.stdout


LOST = [
    "cell energy_flow.simple_neuron/optimized/cpu/fp32/lost_case",
    "energy_flow.simple_neuron proof scalar_reads: one a flow",
    # a tolerance was widened
    "energy_flow.simple_neuron output raw bound 1e-09+1e-09 1e-09+1e-09 1e-09+1e-09 1e-09+1e-09",
    "scenario flow_step criterion optimized.lost_measure = 0",
    "selftest lost_twin caught by oracle",
    "gtest LostSuite.LostTest",
    "pytest test_coverage test_lost",
]


def test_a_pinned_fact_that_is_gone_fails_and_cannot_be_pinned_away_by_accident(pins):
    pins.write_text("\n".join([pins.read_text().rstrip("\n"), *LOST, ""]))
    result = coverage(pins)
    assert result.returncode == 1
    assert [line for line in LOST if f"gone: {line}\n" not in result.stdout] == []
    assert f"{len(LOST)} gone" in result.stdout
    before = pins.read_text()
    assert coverage(pins, "--pin").returncode == 1 and pins.read_text() == before


def test_what_is_gone_is_dropped_where_that_is_asked_for(pins):
    pins.write_text("\n".join([pins.read_text().rstrip("\n"), *LOST, ""]))
    assert coverage(pins, "--pin", "--drop").returncode == 0 and not any(lost in pins.read_text() for lost in LOST)
    assert coverage(pins).returncode == 0


def test_what_is_new_must_be_pinned(pins):
    facts = pins.read_text().splitlines()
    pins.write_text("\n".join(facts[1:]) + "\n")
    result = coverage(pins)
    assert result.returncode == 1 and f"not pinned: {facts[0]}" in result.stdout
    assert coverage(pins, "--pin").returncode == 0 and coverage(pins).returncode == 0


@pytest.mark.parametrize("from_text, to_text", [
    ("dtype: fp32", "dtype: bf16"), ("seed: 1234", "seed: 1235"), ("  replay: 1\n", "  replay: 1\n  dt: 0.01\n"),
    ("[20, 60, 200]", "[2, 6, 20]")])
def test_a_scenario_begins_as_it_did(tmp_path, from_text, to_text):
    scenarios = tmp_path / "scenarios"
    shutil.copytree(ROOT / "scenarios", scenarios, ignore=shutil.ignore_patterns("*.cpp", "*.h"))
    file = scenarios / "sem/skip_rate_on_replay.yaml"
    text = file.read_text()
    assert text.count(from_text) == 1
    file.write_text(text.replace(from_text, to_text))
    result = coverage("ci/coverage.txt", "--folder", scenarios)
    gone = [line for line in result.stdout.splitlines() if line.startswith("  gone: ")]
    assert result.returncode == 1 and gone and all("gone: scenario skip_rate_on_replay" in line for line in gone)


def test_a_missing_list_is_an_error_and_drop_needs_pin(tmp_path):
    result = coverage(tmp_path / "none.txt")
    assert result.returncode == 2 and "write one with --pin" in result.stderr
    assert coverage(tmp_path / "none.txt", "--drop").returncode == 2


def test_every_cell_is_counted():
    """Tier quick samples the large ones, and never those that are too long for it: nobody would miss a pin."""
    facts = (ROOT / "ci/coverage.txt").read_text().splitlines()
    cells = {line.split()[1] for line in facts if line.startswith("cell ")}
    pins = json.loads((ROOT / "ci/counters.json").read_text())
    assert len(cells) > 2000
    assert not sorted(cells - pins.keys()), "pin them with `twinbench counters --pin --time-limit 900 --filter ...`"


def test_what_is_no_list_is_no_list(pins):
    """Neither compared with, nor written over."""
    text = (ROOT / "ci/instructions.json").read_text()
    pins.write_text(text)
    for flags in ([], ["--pin"], ["--pin", "--drop"]):
        result = coverage(pins, *flags)
        assert result.returncode == 2 and "--pins" in result.stderr and not result.stdout, result.stdout
    assert pins.read_text() == text
