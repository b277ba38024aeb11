"""Each limit of the judge stands where it is said: the last number that passes, and the first that does not."""

from __future__ import annotations

import copy
import datetime
import functools
import json
import math
import statistics

import pytest
import synthetic

from twinbench_reports.cells import Cell
from twinbench_reports.errors import ReportError
from twinbench_reports.judge.completeness import count_rows, judge_completeness
from twinbench_reports.judge.consistency import require_consistent
from twinbench_reports.judge.correctness import judge_correctness, magnitude
from twinbench_reports.judge.findings import Finding
from twinbench_reports.judge.measured import OF_BATCHES, OF_EVERY, ORACLE_SKIPS, demanded, judge_measured
from twinbench_reports.judge.pins import load_pins
from twinbench_reports.judge.timing import disbelief, judge_timing, usable_triple
from twinbench_reports.judge.waivers import Waiver, apply_waivers

CELL = synthetic.cell("sem.scan", "optimized")
MAPS = ("by_name", "forward_calls_by_name", "launches_by_kernel", "products_by_shape", "process_calls", "layout")
JUST, BEYOND = 5e-7, 2e-6  # of numbers as written: what rounding does, and what it does not


@functools.cache
def kept():
    return synthetic.only(synthetic.full(), "parity", "counters", "timings", "speedups")


def good():
    return copy.deepcopy(kept())


def scaled(section, key, factor):
    def change(block):
        block[section][0][key] *= factor
    return change


def of_output(**values):
    def change(block):
        block["parity"][0]["outputs"][0].update(values)
    return change


def with_confidence(value):
    def change(block):
        row = block["speedups"][0]
        row["confidence"] = value
        synthetic.measured(row, row["ratio"], 0.02)
    return change


def medians_apart(factor):
    """The pairs of the first speedup say so many times more than the medians of its variants."""
    def change(block):
        row = block["timings"][0]
        row.update(median_s=row["median_s"] / factor, samples_s=[one / factor for one in row["samples_s"]],
                   impossible_below_s=None)
    return change


def of_sample(value, place=0):
    """Places 0 and 3 lie below and above the median, which stays."""
    def change(block):
        block["timings"][0]["samples_s"][place] = value
    return change


def below(factor):
    def change(block):
        block["timings"][0]["impossible_below_s"] = block["timings"][0]["median_s"] * factor
    return change


def shown(wrong_answers, accepted=0):
    def change(block):
        vacuity = {"checked": wrong_answers, "rejected": wrong_answers - accepted}
        block["parity"][0].update(check="vacuity", vacuity=vacuity)
    return change


def leaked(side, count):
    def change(block):
        use = {"allocations": 3, "peak_bytes": 4096, "leaked_bytes": count}
        block["counters"][0]["memory"] = {"host": None, "device": None} | {side: use}
    return change


EVEN = {"elements": 100, "max_absolute_error": 1e-6, "rmse": 1e-6}
CORRECTNESS = {  # by what is wrong: a change that is let through, and one that fails
    "times the allowed one": (of_output(worst_ratio=1.0), of_output(worst_ratio=1.0001)),
    "is no error of": (of_output(worst_ratio=0.0), of_output(worst_ratio=-1e-9)),
    "is no error of 0 elements": (
        of_output(worst_ratio=0.0, elements=0, max_absolute_error=0.0, rmse=0.0),
        of_output(worst_ratio=1e-9, elements=0)),
    "cannot both be of": (
        of_output(**EVEN | {"max_absolute_error": 1e-6 * (1 - JUST)}),
        of_output(**EVEN | {"max_absolute_error": 1e-6 * (1 - BEYOND)})),
    "cannot both be of 100 elements": (
        of_output(**EVEN | {"max_absolute_error": 1e-5 * (1 + JUST)}),
        of_output(**EVEN | {"max_absolute_error": 1e-5 * (1 + BEYOND)})),
    "no planted wrong answer was shown": (shown(1), shown(0)),
    "rejected only 4 of 5 planted": (shown(5), shown(5, 1)),
    "an error of 0 at most and one of 0.5": (
        of_output(max_absolute_error=0.0, rmse=0.0), of_output(max_absolute_error=0.0, rmse=0.5)),
    "only one was measured": (
        of_output(max_absolute_error=None, rmse=None), of_output(max_absolute_error=None, rmse=1e9)),
    "largest error and the mean one": (
        of_output(max_absolute_error=None, rmse=None), of_output(max_absolute_error=1e9, rmse=None)),
    "an error of 0.5 at most and one of 0": (
        of_output(max_absolute_error=0.5, rmse=0.5), of_output(max_absolute_error=0.5, rmse=0.0)),
    "a confidence of 0.899": (with_confidence(0.9), with_confidence(0.899)),
    "and the medians of its two variants": (medians_apart(4.99), medians_apart(5.01)),
    "medians of its two variants": (medians_apart(1 / 4.99), medians_apart(1 / 5.01)),
    "ratio is": (scaled("speedups", "ratio", 1 + JUST), scaled("speedups", "ratio", 1 + BEYOND)),
    "lower is": (scaled("speedups", "lower", 1 + JUST), scaled("speedups", "lower", 1 + BEYOND)),
    "upper is": (scaled("speedups", "upper", 1 - JUST), scaled("speedups", "upper", 1 - BEYOND)),
    "its median is": (scaled("timings", "median_s", 1 - JUST), scaled("timings", "median_s", 1 - BEYOND)),
    "not all are times": (of_sample(1e-12), of_sample(0.0)),
    "samples not all are times": (of_sample(1e12, 3), of_sample(math.inf, 3)),
    "faster than possible": (below(1.0), below(1.000001)),
    "of the host's memory outlive": (leaked("host", 0), leaked("host", 1)),
    "of the device's memory outlive": (leaked("device", 0), leaked("device", 1)),
}


@pytest.mark.parametrize("said", CORRECTNESS)
def test_a_pass_is_a_failure_from_the_limit_on(said):
    for change, fails in zip(CORRECTNESS[said], (False, True)):
        block = good()["twinbench"]
        change(block)
        found = list(judge_correctness(block))
        assert [one.severity for one in found] == ["fail"] * fails, found
        assert not fails or said in found[0].message, found


def of_null_test(**values):
    def change(block):
        block["session"]["null_test"]["cells"][0].update(values)
    return change


def noise(value):
    def change(block):
        block["session"]["null_test"]["noise_floor"] = value
    return change


def pairs(count):
    def change(block):
        block["session"]["null_test"]["pairs"] = count
    return change


def shifted_pair(by):
    def change(block):
        block["speedups"][0]["log_ratios"][0] += by
    return change


def at(moment):
    def change(block):
        block["provenance"]["utc"] = moment if isinstance(moment, str) else (
            datetime.datetime.now(datetime.timezone.utc) + moment).strftime("%Y-%m-%dT%H:%M:%SZ")
    return change


def merged_at(moment):
    def change(block):
        run = {"engines": block["engines"], "command_line": "", "seed": synthetic.SEED}
        block["merged_from"] = [{**run, "sha256": utc, "utc": utc}
                                for utc in ("2026-11-21T09:40:00Z", moment)]
    return change


HOURS = functools.partial(datetime.timedelta)
def drawn_again(by, step=1_000_003):
    """All rows of a cell are of a seed so many draws later, and one says so."""
    def change(block):
        rows = [row for row in block["parity"] if row["cell"] == block["parity"][0]["cell"]]
        for row in rows:
            row["seed"] += by * step
        block["parity"].append({**rows[0], "check": "drawn_again", "outputs": [], "vacuity": None, "reason": "close"})
        synthetic.balance({"twinbench": block})
    return change


CONSISTENCY = {  # by where it is wrong
    "null_test": (of_null_test(upper=1.0199), of_null_test(upper=1.0201)),
    "session.null_test": (of_null_test(lower=1 / 1.0199), of_null_test(lower=1 / 1.0201)),
    "noise_floor": (noise(0.006 + JUST), noise(0.006 - BEYOND)),
    "pairs": (pairs(60), pairs(59)),
    "timings": (scaled("timings", "q1_s", 1 + JUST), scaled("timings", "q1_s", 1 + BEYOND)),
    "twinbench.timings": (scaled("timings", "q3_s", 1 + JUST), scaled("timings", "q3_s", 1 - BEYOND)),
    "$.twinbench.timings": (scaled("timings", "minimum_s", 1 + JUST), scaled("timings", "minimum_s", 1 + BEYOND)),
    "speedups": (shifted_pair(JUST), shifted_pair(3 * BEYOND)),
    "seed of": (drawn_again(1), drawn_again(-1)),
    "parity, seed of": (drawn_again(3), drawn_again(1, 1_000_004)),
    "utc": (at("2026-11-01T00:00:00Z"), at("2026-10-31T23:59:59Z")),
    "merged_from[1].utc": (merged_at("2026-11-01T00:00:00Z"), merged_at("2026-10-31T23:59:59Z")),
    "provenance.utc": (at(datetime.timedelta(hours=23)), at(datetime.timedelta(hours=25))),
}


@pytest.mark.parametrize("where", CONSISTENCY)
def test_a_record_is_refused_from_the_limit_on(load, where):
    for change, refused in zip(CONSISTENCY[where], (False, True)):
        root = good()
        change(root["twinbench"])
        record = load(root)
        if not refused:
            require_consistent(record)
            continue
        with pytest.raises(ReportError) as error:
            require_consistent(record)
        assert where in str(error.value)


@pytest.mark.parametrize("count", [2, 3, 19, 20])
@pytest.mark.parametrize("key", ["q1_s", "q3_s", "minimum_s"])
def test_the_quartiles_of_few_samples_are_theirs_too(load, key, count):
    root = good()
    block = root["twinbench"]
    block["speedups"], row = [], block["timings"][0]
    samples = [1e-3 + 1e-5 * index for index in range(count)]
    low, middle, high = statistics.quantiles(samples, n=4, method="inclusive")
    row.update(samples_s=samples, n=count, q1_s=low, median_s=middle, q3_s=high, minimum_s=samples[0])
    require_consistent(load(synthetic.balance(root)))
    row[key] *= 1.001
    with pytest.raises(ReportError) as error:
        require_consistent(load(root))
    assert f"{key} of {row['cell']}" in str(error.value)


@pytest.mark.parametrize("triple, usable", [
    ((2.0, 1.0, 3.0), True), ((2.0, 2.0, 2.0), True), ((2.0, 1.0, 1.9), False), ((2.0, 2.1, 3.0), False),
    *((tuple(wrong if place == index else value for index, value in enumerate((2.0, 1.0, 3.0))), False)
      for place in range(3) for wrong in (None, 0.0, -1.0, math.inf, math.nan))])
def test_a_speedup_is_usable_with_three_numbers_above_0_in_their_order(triple, usable):
    row = dict(zip(("ratio", "lower", "upper"), triple))
    assert usable_triple(row) == (triple if usable else None)


def test_a_row_is_as_far_beyond_the_allowed_as_its_worst_number():
    """A waiver's limit is held against it: the best one would excuse all others."""
    block = good()["twinbench"]
    parity, counted = block["parity"][0], block["counters"][0]
    proof = synthetic.proof_row("sem.scan", "9", 9, 9)
    for turn in (1, -1):
        parity["outputs"] = [{"worst_ratio": ratio} for ratio in (1.5, 2.5, 2.0)[::turn]]
        proof["baseline"]["measured"], proof["optimized"]["measured"] = (4, 11)[::turn]
        names = ("dispatches", "copies")[::turn]
        counted["pinned"] = {name: counted["values"][name] + more for name, more in zip(names, (7, -3))}
        found = [magnitude(section, row) for section, row in (
            ("parity", parity), ("proofs", proof), ("counters", counted))]
        assert found == [2.5, 5.0, 7.0]
    parity["outputs"].append({"worst_ratio": None})
    assert magnitude("parity", parity) is None


def test_nothing_is_counted_of_a_record_without_rows():
    assert set(count_rows(synthetic.empty()["twinbench"]).values()) == {0}


@pytest.mark.parametrize("outcome", ["passed", "failed", "errors", "skipped", "inconclusive"])
@pytest.mark.parametrize("planned, lost", [(9, False), (10, True), (18, True), (19, True)])
def test_one_unit_of_work_without_a_result_is_lost_whatever_the_others_came_to(outcome, planned, lost):
    block = good()["twinbench"]
    block["ledger"].update(dict.fromkeys(("passed", "failed", "errors", "skipped", "inconclusive"), 0))
    block["ledger"].update({"planned": planned, outcome: 9})
    found = [one for one in judge_completeness(block, None) if one.subject == "planned work"]
    assert [(one.severity, one.kind) for one in found] == [("missing", "ledger")] * lost, found


@pytest.mark.parametrize("items, several", [(None, False), (0, False), (1, False), (2, True), (3, True)])
@pytest.mark.parametrize("variant", ["baseline", "optimized", "library"])
def test_a_case_of_two_items_on_is_a_batch(items, several, variant):
    component = good()["twinbench"]["components"][0]
    case = component["cases"][0]
    case.pop("items")
    case.update({} if items is None else {"items": items})
    asked = set(demanded(Cell(component["id"], variant, "cpu", "fp32", case["name"]), component))
    assert asked & set(OF_BATCHES) == (set(OF_BATCHES) if several and variant != "baseline" else set())


@pytest.mark.parametrize("variant, device, skipped, excused", [
    ("library", "cuda", "oracle", True), ("library", "cpu", "oracle", False), ("library", "simt", "oracle", False),
    ("optimized", "cuda", "oracle", False), ("optimized", "cpu", "oracle", False), ("library", "cuda", "late", False)])
def test_only_the_librarys_own_way_on_a_card_needs_no_other_check(variant, device, skipped, excused):
    reason = f"{ORACLE_SKIPS[0]}it pads"
    rows = [synthetic.parity_row("", "", "", "determinism", 0.0),
            synthetic.parity_row("", "", "", skipped, 0.0, "skip", reason)]
    for row in rows:
        row["cell"] = synthetic.cell("sem.scan", variant, device=device)
    found = list(judge_measured({"components": [], "parity": rows}))
    assert any(one.severity == "missing" for one in found) != excused, found


@pytest.mark.parametrize("variant, device, excused", [
    ("library", "cuda", True), ("library", "cpu", False), ("library", "simt", False), ("optimized", "cuda", False),
    ("optimized", "cpu", False), ("baseline", "cpu", False)])
@pytest.mark.parametrize("reason, of_all", [(ORACLE_SKIPS[0], False), (ORACLE_SKIPS[1], True)])
def test_only_the_librarys_own_way_on_a_card_needs_no_oracle(variant, device, excused, reason, of_all):
    rows = [synthetic.parity_row("", "", "", check, 0.0) for check in OF_EVERY]
    rows.append(synthetic.parity_row("", "", "", "oracle", 0.0, "skip", reason + "it pads"))
    for row in rows:
        row["cell"] = synthetic.cell("sem.scan", variant, device=device)
    found = [one for one in judge_measured({"components": [], "parity": rows}) if one.severity == "inconclusive"]
    assert bool(found) != (excused or of_all), found


@pytest.mark.parametrize("checks, missing", [(["specimen"], False), (["specimen", "late"], True), (["late"], True)])
def test_only_a_cell_that_shows_nothing_but_a_documented_mistake_needs_no_other_check(checks, missing):
    rows = [synthetic.parity_row("sem.scan", "baseline", "fp32", check, 0.0) for check in checks]
    found = [one.severity for one in judge_measured({"components": [], "parity": rows})]
    assert found == ["missing"] * missing


@pytest.mark.parametrize("more, codes", [
    ({}, {0}), ({"planned": 1}, {3}), ({"planned": 1, "inconclusive": 1}, {3}), ({"planned": 1, "failed": 1}, {1}),
    ({"planned": 1, "errors": 1}, {1, 4}), ({"planned": 2, "failed": 1, "errors": 1}, {1}),
    ({"planned": 3, "failed": 1, "inconclusive": 1}, {1})], ids=str)
def test_a_record_with_another_exit_code_than_its_results_make_is_refused(load, more, codes):
    record = load(good())
    ledger = record.block["ledger"]
    ledger.update({key: ledger[key] + count for key, count in more.items()})
    for code in range(6):
        ledger["exit_code"] = code
        if code in codes:
            require_consistent(record)
            continue
        with pytest.raises(ReportError) as error:
            require_consistent(record)
        assert f"its exit code is {code}" in str(error.value)


def test_a_record_in_which_nothing_passed_has_not_the_exit_code_of_a_pass(load):
    record = load(synthetic.empty())
    require_consistent(record)
    record.block["ledger"]["exit_code"] = 0
    with pytest.raises(ReportError) as error:
        require_consistent(record)
    assert "its exit code is 0, and its results make 3" in str(error.value)


@pytest.mark.parametrize("floor, believed", [(0.0, True), (0.166, True), (1 / 6, False), (0.17, False), (0.5, False)])
def test_a_null_test_from_which_on_no_loss_can_be_told(floor, believed):
    """Three times twice the noise is all of a speedup."""
    block = good()["twinbench"]
    noise(floor)(block)
    assert bool(disbelief(block)) == (not believed)


@pytest.mark.parametrize("change, severity", [
    ({"verdict": "faster", "ratio": 2.0, "lower": 1.0, "upper": 3.0}, "inconclusive"),
    ({"verdict": "faster", "ratio": 2.0, "lower": 1.0001, "upper": 3.0}, ""),
    ({"verdict": "faster", "lower": None}, "inconclusive"), ({"verdict": "faster", "upper": None}, "inconclusive"),
    ({"verdict": "faster", "lower": 0.0}, "inconclusive"), ({"verdict": "faster", "upper": 1.5, "lower": 1.6,
                                                            "ratio": 1.7}, "inconclusive"),
    ({"verdict": "slower"}, "notice"), ({"verdict": "inconclusive"}, "notice")])
def test_a_speedup_that_its_interval_does_not_show_decides_nothing(load, change, severity):
    root = good()
    root["twinbench"]["speedups"] = [root["twinbench"]["speedups"][0] | change]
    found = list(judge_timing(load(root), None, advisory=False))
    assert [one.severity for one in found] == [severity] * bool(severity), found


@pytest.mark.parametrize("gone", ["ratio", "lower", "upper"])
def test_a_speedup_that_has_no_interval_any_more_is_undecided(load, gone):
    """It could else be lost by being measured less."""
    root, before = good(), good()
    for one in (root, before):
        del one["twinbench"]["speedups"][1:]
    root["twinbench"]["speedups"][0].update({"verdict": "same", gone: None})
    found = list(judge_timing(load(root), load(before, "before.json"), advisory=False))
    assert [one.severity for one in found] == ["inconclusive"] and "it has no interval now" in found[0].message


@pytest.mark.parametrize("pins, says", [
    ({CELL: {"dispatches": 0, "by_name": {"aten::add": 1}}}, ""), ({}, "pins nothing"), ([], "pins nothing"),
    ([{}], "pins nothing"), ({CELL: 5}, "not an object"), ({CELL: []}, "not an object"),
    *(({CELL: {"dispatches": count}}, "is not an integer") for count in (5.0, "5", True, None, [5])),
    *(({CELL: {name: {"a": count}}}, "that is not above 0 pins nothing") for count in (0, -1) for name in MAPS),
    *(({CELL: {name: {"a": 1.5}}}, "is not an integer") for name in MAPS),
    *(({CELL: {name: 5}}, "not an object") for name in MAPS)], ids=str)
def test_what_pins_nothing_is_no_file_of_pins(tmp_path, pins, says):
    """A cell whose pins are lost would else pass with any count."""
    file = tmp_path / "pins.json"
    file.write_text(json.dumps(pins))
    if not says:
        assert load_pins(file) == {CELL: {"dispatches": 0, "by_name.aten::add": 1}}
        return
    with pytest.raises(ReportError) as error:
        load_pins(file)
    assert says in str(error.value)


TODAY = datetime.date(2026, 11, 21)


@pytest.mark.parametrize("days, limit, severity, kind, magnitude, excused", [
    (0, 2.0, "fail", "parity", 2.0, True), (90, 2.0, "fail", "parity", 2.0, True),
    (-1, 2.0, "fail", "parity", 2.0, False), (91, 2.0, "fail", "parity", 2.0, False),
    (9, 1.999999, "fail", "parity", 2.0, False), (9, 2.0, "inconclusive", "parity", 2.0, True),
    (9, 1e100, "missing", "parity", 2.0, False), (9, 1e100, "fail", "parity", None, False),
    (9, 2.0, "fail", "speedups", 2.0, False), (9, 0.0, "fail", "parity", 0.0, True)])
def test_a_waiver_excuses_to_its_limit_its_last_day_and_no_further(days, limit, severity, kind, magnitude, excused):
    waiver = Waiver("a.b/*", "parity", limit, "old", "ada", TODAY + datetime.timedelta(days=days))
    finding = Finding(severity, kind, "a.b/optimized/cpu/fp32/train [oracle]", "too far off", magnitude=magnitude)
    standing, waived = apply_waivers([finding], [waiver], TODAY)
    assert (finding in standing) != excused and len(waived) == excused
    other = Finding("fail", "parity", "a.bc/optimized/cpu/fp32/train [oracle]", "too far off", magnitude=0.0)
    assert other in apply_waivers([other], [waiver], TODAY)[0]
