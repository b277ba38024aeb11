"""What the blocks of ci/compare_revisions are made of: one-sided noise, the null test, and a budget that ends."""
import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "ci"), str(ROOT / "reports")]
from comparing.side import Side  # noqa: E402
from comparing.timing import METRICS, Budget, CellTimes, Comparison, Series, judge_null, one_sided  # noqa: E402
from comparing.verdicts import cause, time_findings  # noqa: E402

from twinbench_reports.statistics import looks  # noqa: E402
from twinbench_reports.statistics.looks import FASTER, RULE, SAME, SLOWER, UNDECIDED, Rule  # noqa: E402

CELL = "sem.scan/optimized/cpu/fp32/train"


class Clock:
    """A machine whose processes take made-up times, and whose clock they move."""

    def __init__(self, times, seconds=1.0):
        self.now, self.times, self.seconds, self.calls = 0.0, times, seconds, []

    def __call__(self):
        return self.now


def comparison(monkeypatch, times, budget=1e9, seconds=1.0):
    """`times(side, position in the block, base began) -> seconds of the cell`."""
    clock = Clock(times, seconds)
    base, head = (Side(name, Path("."), Path("none")) for name in ("base", "head"))
    made = Comparison(base, head, rule=RULE, budget=Budget(budget, clock), seed=3)

    def slot(side, cells):
        clock.now += clock.seconds
        clock.calls.append(side.name)
        made.processes += 1
        position = (len(clock.calls) - 1) % 4
        began = clock.calls[len(clock.calls) - 1 - position] == "base"
        value = times(side.name, position, began)
        return {cell.name: dict.fromkeys(METRICS, value) for cell in cells}

    monkeypatch.setattr(made, "_slot", slot)
    return made, clock


RNG = np.random.default_rng(4)


def noisy(value, deviation=0.005):
    return value * math.exp(RNG.normal(0, deviation))


def test_blocks_are_balanced_and_both_orders_occur(monkeypatch):
    made, clock = comparison(monkeypatch, lambda side, position, began: noisy(1.0))
    cell = made.run([CELL])[0]
    blocks = ["".join(name[0] for name in clock.calls[start:start + 4]) for start in range(0, len(clock.calls), 4)]
    assert set(blocks) == {"bhhb", "hbbh"} and len(blocks) == 10
    assert cell.series["real_time"].verdict == SAME


def test_a_slowdown_in_both_orders_fails_after_a_fresh_run(monkeypatch):
    made, _ = comparison(monkeypatch, lambda side, position, began: noisy(1.06 if side == "head" else 1.0))
    series = made.run([CELL])[0].series["cpu_time"]
    assert series.verdict == SLOWER and len(series.ratios) == 10 and len(series.fresh) == 40


def test_a_slowdown_in_one_order_only_is_the_machines(monkeypatch):
    # Head is 12 % slower where base began, and not where it began itself: no code does that. Later looks do not
    # reopen what the fresh run has closed.
    made, _ = comparison(monkeypatch, lambda side, position, began: noisy(
        1.12 if side == "head" and began else 1.0))
    series = made.run([CELL])[0].series["real_time"]
    assert series.verdict != SLOWER
    ratios = np.where(np.arange(40) % 2 == 0, 0.11, 0.001)
    assert one_sided(ratios, np.arange(40) % 2 == 0, RULE)
    assert not one_sided(np.full(40, 0.06), np.arange(40) % 2 == 0, RULE)
    shown = Series(ratios=[0.1] * 10, verdict=SLOWER, fresh=list(ratios), base_began=[True] * 10 + [True, False] * 20)
    made._last_word(shown)
    assert shown.verdict == UNDECIDED and "one order" in shown.reason and shown.closed and not shown.open
    assert not one_sided(ratios, np.ones(40, dtype=bool), RULE)


@pytest.mark.parametrize("less, more, noise_floor, machines", [
    (0.0, 0.11, 0, True), (-0.05, 0.11, 0, True), (0.009, 0.11, 0, True), (0.011, 0.11, 0, False),
    (0.025, 0.11, 0, False), (0.02, 0.04, 0, False), (0.06, 0.06, 0, False), (0.011, 0.11, 0.03, True),
    (0.018, 0.11, 0.03, True), (0.021, 0.11, 0.03, False)])
@pytest.mark.parametrize("base_began_less", [True, False])
def test_a_slowdown_that_the_other_order_shows_in_part_is_the_codes(monkeypatch, less, more, noise_floor, machines,
                                                                    base_began_less):
    """A third of what fails is enough: caches that one program leaves to the other change a slowdown's size."""
    made, _ = comparison(monkeypatch, lambda side, position, began: 1.0)
    made._rule = Rule(noise_floor=noise_floor)
    began = np.arange(40) % 2 == 0
    fresh = np.log1p(np.where(began == base_began_less, less, more)) + 1e-5 * np.arange(40)
    series = Series(ratios=[0.1] * 10, verdict=SLOWER, fresh=list(fresh), base_began=[True] * 10 + list(began))
    made._last_word(series)
    assert one_sided(fresh, began, made._rule) == machines
    assert (series.verdict == SLOWER) != machines and series.closed


def slot_times(tmp_path, monkeypatch, rows):
    """What a process that wrote these repetitions of a cell comes to."""
    def call(side, words, **_):
        out = next(word.split("=", 1)[1] for word in words if word.startswith("--benchmark_out="))
        Path(out).write_text(json.dumps({"benchmarks": [
            {"run_name": f"{CELL}/real_time", "run_type": "iteration"} | row for row in rows]}))

    monkeypatch.setattr(Side, "call", call)
    side, cell = Side("base", tmp_path, tmp_path / "none"), CellTimes(CELL)
    return Comparison(side, side, rule=RULE, budget=Budget(1e9), seed=3)._slot(side, [cell]).get(CELL), cell.error


@pytest.mark.parametrize("waits", range(16))
def test_a_wait_in_most_repetitions_is_in_the_wall_time_and_others_load_is_not_in_the_cpu_time(tmp_path, monkeypatch,
                                                                                               waits):
    """Of 15 repetitions 8 decide the wall time; of the CPU time the one that others disturbed least."""
    rows = [{"real_time": 1.3 if repetition < waits else 1.0, "cpu_time": 1.3 if repetition < waits else 1.0}
            for repetition in np.random.default_rng(waits).permutation(15)]
    times, error = slot_times(tmp_path, monkeypatch, rows)
    assert times == {"real_time": 1.3 if waits >= 8 else 1.0, "cpu_time": 1.3 if waits >= 15 else 1.0} and not error


def test_only_repetitions_that_read_both_clocks_are_times(tmp_path, monkeypatch):
    """Neither what Google Benchmark makes of them, nor a clock that stood still; an error is the cell's."""
    good = {"real_time": 2.0, "cpu_time": 2.0}
    others = [{"run_type": "aggregate", "real_time": 1.0, "cpu_time": 1.0}, {"real_time": 1.0, "cpu_time": 0.0},
              {"real_time": 0.0, "cpu_time": 1.0}]
    assert slot_times(tmp_path, monkeypatch, [*others * 9, good]) == (good, "")
    assert slot_times(tmp_path, monkeypatch, others) == (None, "")
    error = {"error_occurred": True, "error_message": "rejected"}
    assert slot_times(tmp_path, monkeypatch, [error])[1] == "base: rejected"


@pytest.mark.parametrize("side", ["base", "head"])
@pytest.mark.parametrize("call", [1, 4, 17, 60])
def test_a_cell_that_one_process_of_either_side_does_not_time_is_missing(monkeypatch, side, call):
    made, clock = comparison(monkeypatch, lambda name, position, began: 1.06 if name == "head" else 1.0, budget=400)
    whole, lost = made._slot, []

    def slot(one, cells):
        times = whole(one, cells)
        if not lost and one.name == side and len(clock.calls) >= call:
            lost.append(times.clear())
        return times

    monkeypatch.setattr(made, "_slot", slot)
    cells = made.run([CELL])
    assert cells[0].error == f"{side} did not time it" and len(clock.calls) < call + 6
    assert [one.severity for one in time_findings(cells, RULE, {}, {}, "")] == ["missing"]


def test_a_slowdown_that_the_fresh_run_does_not_see_is_no_failure(monkeypatch):
    made, clock = comparison(monkeypatch, lambda side, position, began: noisy(
        1.06 if side == "head" and len(clock.calls) <= 40 else 1.0))
    assert made.run([CELL])[0].series["real_time"].verdict == SAME


def test_a_budget_that_ends_before_the_confirmation_is_undecided(monkeypatch):
    made, _ = comparison(monkeypatch, lambda side, position, began: noisy(1.06 if side == "head" else 1.0), budget=60)
    series = made.run([CELL])[0].series["real_time"]
    assert series.verdict == UNDECIDED and "budget ended before a fresh run" in series.reason and not series.fresh


@pytest.mark.parametrize("fresh", [0, 1, 19, 20, 21, 39, 40])
def test_a_slowdown_is_confirmed_by_as_many_fresh_blocks_as_the_rule_says_and_by_no_fewer(monkeypatch, fresh):
    # Each block takes four seconds, and the budget ends with the last one.
    made, clock = comparison(monkeypatch, lambda side, position, began: 1.06 if side == "head" else 1.0,
                             budget=4 * (RULE.looks[0] + fresh))
    series = made.run([CELL])[0].series
    assert RULE.confirm_blocks == 40 and len(clock.calls) == 4 * (10 + fresh)
    confirmed = fresh == 40
    for one in series.values():
        assert one.verdict == (SLOWER if confirmed else UNDECIDED) and one.closed
        assert len(one.fresh) == (40 if confirmed else 0) and ("fresh run could confirm" in one.reason) != confirmed


def test_the_budget_goes_to_undecided_cells(monkeypatch):
    """Of two cells only the noisy one is measured beyond the first look: 80 % of all blocks and more."""
    noisy_cell, quiet = CELL, CELL.replace("scan", "cayley")
    made, clock = comparison(monkeypatch, lambda side, position, began: 1.0)
    measured = {noisy_cell: 0, quiet: 0}

    def slot(side, cells):
        for cell in cells:
            measured[cell.name] += 1
        return {cell.name: dict.fromkeys(METRICS, noisy(1.0, 0.2 if cell.name == noisy_cell else 0.002))
                for cell in cells}

    monkeypatch.setattr(made, "_slot", slot)
    made.run([noisy_cell, quiet])
    assert measured == {noisy_cell: 160, quiet: 40}


@pytest.mark.parametrize("noisy_clock", METRICS)
def test_a_cell_is_measured_until_both_clocks_are_decided(monkeypatch, noisy_clock):
    """Neither clock is a substitute for the other: a wait shows in one alone."""
    made, clock = comparison(monkeypatch, lambda side, position, began: 1.0)

    def slot(side, cells):
        clock.calls.append(side.name)
        by_turns = 1.0 if side.name == "base" else 1.4 if (len(clock.calls) - 1) // 4 % 2 else 0.77
        return {cell.name: dict.fromkeys(METRICS, 1.0) | {noisy_clock: by_turns} for cell in cells}

    monkeypatch.setattr(made, "_slot", slot)
    series = made.run([CELL])[0].series
    assert {metric: len(one.ratios) for metric, one in series.items()} == dict.fromkeys(METRICS, 40)
    assert [one.verdict for metric, one in series.items() if metric != noisy_clock] == [SAME]


@pytest.mark.parametrize("later", METRICS)
def test_a_clock_that_shows_a_slowdown_later_has_a_fresh_run_of_its_own(monkeypatch, later):
    """What the first one's fresh run has shown stays as it is."""
    made, clock = comparison(monkeypatch, lambda side, position, began: 1.0)

    def slot(side, cells):
        clock.calls.append(side.name)
        block = (len(clock.calls) - 1) // 4
        times = dict.fromkeys(METRICS, 1.06 if side.name == "head" else 1.0)
        if block < RULE.looks[0] and side.name == "head":
            times[later] = 1.4 if block % 2 else 0.77
        return {cell.name: times for cell in cells}

    monkeypatch.setattr(made, "_slot", slot)
    series = made.run([CELL])[0].series
    assert len(clock.calls) == 4 * (RULE.looks[-1] + 2 * RULE.confirm_blocks)
    for one in series.values():
        assert one.verdict == SLOWER and len(one.ratios) == 40 and one.fresh == pytest.approx([math.log(1.06)] * 40)


@pytest.mark.parametrize("value, wrong", [(1.0, ""), (1.08, "slower than itself"), (0.92, "faster than itself")])
def test_the_null_test_sees_a_machine_that_treats_equal_programs_differently(monkeypatch, value, wrong):
    made, _ = comparison(monkeypatch, lambda side, position, began: noisy(value if side == "head" else 1.0))
    said, floor = judge_null(made.run([CELL]))
    assert wrong in said and bool(said) == bool(wrong) and floor == pytest.approx(abs(value - 1), abs=0.01)


def test_a_null_test_without_a_block_is_no_null_test():
    assert "0 of 10 blocks" in judge_null([CellTimes(CELL)])[0] and looks.WORDS[UNDECIDED] == "inconclusive"


@pytest.mark.parametrize("counts, wrong", [
    ((0, 0), "0 of 10 blocks"), ((9, 9), "9 of 10 blocks"), ((9, 1), "9 of 10 blocks"), ((10, 0), ""), ((10, 10), "")])
def test_a_null_test_needs_the_blocks_of_a_first_look_in_one_cell(counts, wrong):
    cells = [CellTimes(f"{CELL}_{place}") for place in range(len(counts))]
    for cell, count in zip(cells, counts):
        for series in cell.series.values():
            series.ratios, series.verdict = [0.0] * count, SAME
    said, floor = judge_null(cells)
    assert wrong in said and bool(said) == bool(wrong) and floor == 0


@pytest.mark.parametrize("wall, cpu, said", [
    (0.30, 0.00, "waiting: the CPU time is not longer"),
    (0.27, 0.09, "waiting, most of it: the CPU time is +9.0% only"),
    (0.09, 0.09, "same counts: caches, layout or uncounted work")])
def test_a_wait_that_costs_work_too_is_called_a_wait(wall, cpu, said):
    """A sleep of 60 us took 20 us of the processor: its cause was called uncounted work."""
    cell = CellTimes(CELL)
    for (metric, series), change in zip(cell.series.items(), (wall, cpu), strict=True):
        series.ratios = [math.log1p(change) + 0.01 * (turn - 9.5) / 9.5 for turn in range(20)]
        series.verdict = SLOWER if change else SAME
    assert cause(cell, "real_time", {}) == said
    assert cause(cell, "real_time", {CELL: "more operators (counters)"}) == "more operators (counters)"
    assert cause(cell, "cpu_time", {}) == "same counts: caches, layout or uncounted work"


BY_VERDICT = {SLOWER: "fail", UNDECIDED: "inconclusive", FASTER: "notice", SAME: ""}


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("verdict", BY_VERDICT)
def test_each_verdict_of_each_clock_has_its_severity(metric, verdict):
    """Where no time is believed neither a slowdown nor its absence is one, and a cell without times is missing."""
    cell = CellTimes(CELL)
    for name, series in cell.series.items():
        series.ratios, series.verdict = [0.05] * 10, verdict if name == metric else SAME
        series.fresh = [0.07] * 40 if series.verdict == SLOWER else []
    found = list(time_findings([cell], RULE, {}, {CELL: "again"}, ""))
    assert [one.severity for one in found] == [BY_VERDICT[verdict]] * bool(BY_VERDICT[verdict])
    assert verdict != SLOWER or found[0].magnitude == pytest.approx(math.expm1(0.07)) and found[0].reproduce == "again"
    found = list(time_findings([cell], RULE, {}, {}, "base is slower than itself"))
    assert [one.severity for one in found] == ["inconclusive"] * (2 if verdict == UNDECIDED else 3)
    assert found[-1].subject == "null test" and all("base is slower than itself" in one.message for one in found)
    cell.error = "rejected"
    for disbelieved, severities in (("", ["missing"]), ("why", ["missing", "inconclusive"])):
        assert [one.severity for one in time_findings([cell], RULE, {}, {}, disbelieved)] == severities
