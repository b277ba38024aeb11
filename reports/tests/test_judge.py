"""The rules of the gate, one planted fault each: every exit code, and nothing measured is never 0."""

from __future__ import annotations

import copy
import datetime
import math
from pathlib import Path

import pytest
import synthetic

from twinbench_reports.cells import named_rows
from twinbench_reports.judge.completeness import TURN
from twinbench_reports.judge.findings import Verdict
from twinbench_reports.judge.judge import judge
from twinbench_reports.judge.pins import judge_pins

SECTIONS = ("parity", "counters", "proofs", "timings", "scenarios", "selftest", "modelled")


def subjects(verdict, severity):
    return [finding.subject for finding in verdict.of(severity)]


def test_a_good_record_passes(load):
    verdict = judge(load(synthetic.full()))
    assert (verdict.exit_code, verdict.word, verdict.actions) == (0, "pass", [])


def test_a_good_record_passes_against_itself(load):
    record = load(synthetic.full())
    assert judge(record, record).exit_code == 0


def test_an_empty_record_measured_nothing(load):
    verdict = judge(load(synthetic.empty()))
    assert verdict.exit_code == 3 and "nothing was measured" in verdict.findings[0].message


def test_skips_alone_measured_nothing(load):
    root = synthetic.only(synthetic.full(), *SECTIONS)
    for section in SECTIONS:
        for row in root["twinbench"][section]:
            row.update(verdict="skip", reason="no GPU")
    assert judge(load(synthetic.balance(root))).exit_code == 3


def test_the_self_test_alone_measured_nothing(load):
    assert judge(load(synthetic.only(synthetic.full(), "selftest"))).exit_code == 3


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize("word", ["fail", "error"])
def test_a_failure_in_any_section_fails(load, section, word):
    root = synthetic.full()
    root["twinbench"][section][0].update(verdict=word, reason="planted")
    verdict = judge(load(root))
    assert verdict.exit_code == 1 and verdict.findings[0].kind == section and verdict.findings[0].reproduce


def plant_parity_ratio(block): block["parity"][0]["outputs"][0]["worst_ratio"] = 1.01
def plant_parity_null(block): block["parity"][0]["outputs"][0]["worst_ratio"] = None
def plant_vacuity(block): block["parity"][0]["vacuity"]["rejected"] = 4
def plant_no_vacuity(block): block["parity"][0].update(check="vacuity", vacuity=None)
def plant_negative_error(block): block["parity"][0]["outputs"][0]["worst_ratio"] = -5
def plant_pin(block): block["counters"][0]["pinned"] = {"dispatches": 1}


def plant_leak(block):
    block["counters"][0]["memory"] = {
        "host": {
            "allocations": 3,
            "peak_bytes": 4096,
            "leaked_bytes": 64},
        "device": None}
def plant_lost_counter(block): block["counters"][0]["pinned"] = {"graph_launches": 1}
def plant_sinless_baseline(block): block["proofs"][0]["baseline"]["measured"] -= 1
def plant_uncounted(block): block["proofs"][0]["optimized"]["measured"] = None
def plant_too_fast(block): block["timings"][0]["impossible_below_s"] = block["timings"][0]["median_s"] * 1.01
def plant_no_samples(block): block["timings"][0]["n"] = 0
def plant_criterion(block): block["scenarios"][0]["criteria"][0]["verdict"] = "fail"
def plant_crashed_criterion(block): block["scenarios"][0]["criteria"][1]["verdict"] = "error"
def plant_no_criterion(block): block["scenarios"][0]["criteria"] = block["scenarios"][0]["criteria"][2:]
def plant_blind_harness(block): block["selftest"][0]["got"] = "pass"
def plant_part_of_a_word(block): block["selftest"][0].update(expected="late", got="oracle,late_too,translated")


@pytest.mark.parametrize("plant", [value for name, value in sorted(globals().items()) if name.startswith("plant_")])
def test_a_pass_that_contradicts_its_numbers_fails(load, plant):
    root = synthetic.full()
    plant(root["twinbench"])
    verdict = judge(load(root))
    assert verdict.exit_code == 1 and "says pass, but" in verdict.findings[0].message


def rejected(cell):
    root = synthetic.full()
    synthetic.reject(root, cell)
    return synthetic.balance(root)


def test_a_rejected_timing_fails_once_and_has_no_speedup(load):
    cell = synthetic.full()["twinbench"]["timings"][1]["cell"]
    verdict = judge(load(rejected(cell)))
    assert verdict.exit_code == 1 and subjects(verdict, "fail") == [cell]
    assert "answer_after_timing" in verdict.of("fail")[0].message and verdict.of("fail")[0].magnitude is None


def test_a_rejected_timing_fails_where_times_are_advisory(load):
    root = rejected(synthetic.full()["twinbench"]["timings"][1]["cell"])
    assert judge(load(root), timing_advisory=True).exit_code == 1


@pytest.mark.parametrize("side", [0, 1])
def test_a_speedup_on_a_rejected_timing_fails(load, side):
    root = synthetic.full()
    root["twinbench"]["timings"][side].update(verdict="rejected", reason="planted")
    verdict = judge(load(synthetic.balance(root)))
    assert sorted(finding.kind for finding in verdict.of("fail")) == ["speedups", "timings"]


def test_a_rejected_speedup_fails_by_itself(load):
    root = synthetic.full()
    root["twinbench"]["speedups"][0].update(verdict="rejected", reason="optimized: planted", ratio=None, lower=None,
                                             upper=None, log_ratios=[])
    verdict = judge(load(root))
    assert verdict.exit_code == 1 and [finding.kind for finding in verdict.of("fail")] == ["speedups"]
    root["twinbench"]["speedups"][0]["ratio"] = 3.0
    assert "holds a speedup" in judge(load(root)).of("fail")[0].message


def test_a_time_below_a_floor_that_does_not_bind_is_fast_and_not_wrong(load):
    root = synthetic.full()
    root["twinbench"]["timings"][0].update(floor_s=root["twinbench"]["timings"][0]["median_s"] * 2,
                                           impossible_below_s=None)
    assert judge(load(root)).exit_code == 0


def test_failures_without_a_row_and_lost_work_are_seen(load):
    root = synthetic.full()
    root["twinbench"]["ledger"]["planned"] += 4
    assert judge(load(root)).exit_code == 3
    root["twinbench"]["ledger"]["failed"] += 1
    assert judge(load(root)).exit_code == 1


def test_a_skip_needs_a_reason(load):
    root = synthetic.full()
    next(row for row in root["twinbench"]["parity"] if row["verdict"] == "skip")["reason"] = ""
    assert judge(load(root)).exit_code == 3


@pytest.mark.parametrize("section", (*SECTIONS, "speedups"))
def test_a_vanished_row_is_missing_by_name(load, section):
    before, root = load(synthetic.full(), "before.json"), synthetic.full()
    del root["twinbench"][section][0]
    verdict = judge(load(synthetic.balance(root)), before)
    assert verdict.exit_code == 3
    assert [finding for finding in verdict.of("missing") if finding.kind == section and "vanished" in finding.message]


def test_cells_that_a_tier_left_out_are_one_line():
    root = synthetic.full()
    block = root["twinbench"]
    pins = {}
    for row in block["counters"]:
        pins[row["cell"]] = {"dispatches": 1}
        row.update(verdict="skip", reason="not sampled: tier quick", values={}, by_name={}, pinned=None)
    found = [finding for finding in judge_pins(block, pins) if finding.kind == "pins"]
    assert len(pins) > 1 and len(found) == 1 and found[0].severity == "missing"
    assert f"{len(pins) - 1} more cells" in found[0].subject and "not sampled" in found[0].message


def test_a_row_that_is_skipped_now_is_missing(load):
    before, root = load(synthetic.full(), "before.json"), synthetic.full()
    root["twinbench"]["parity"][0].update(verdict="skip", reason="quietly dropped")
    assert judge(load(synthetic.balance(root)), before).exit_code == 3


def test_a_rule_that_is_another_cases_turn_is_not_missing(load):
    before, root = load(synthetic.full(), "before.json"), synthetic.full()
    root["twinbench"]["parity"][1].update(verdict="skip", reason=f"{TURN}: one in 2, by --sample")
    found = judge(load(synthetic.balance(root)), before).findings
    assert not [finding for finding in found if finding.kind == "parity" and finding.severity != "notice"]
    program = (Path(__file__).parents[2] / "harness/parity/parity.cpp").read_text()
    assert f'"{TURN}: ' in program


def test_an_output_that_is_no_longer_compared_is_missing(load):
    before, root = synthetic.full(), synthetic.full()
    row = before["twinbench"]["parity"][0]
    row["outputs"].append({**row["outputs"][0], "name": "gone"})
    found = judge(load(root), load(before, "before.json")).of("missing")
    assert [finding.subject for finding in found if "more outputs: gone" in finding.message] == [
        next(iter(named_rows(root["twinbench"], "parity")))[0]]


@pytest.mark.parametrize("change, said", [({"pairs": 0}, "of no pair"), ({"cells": []}, "of no pair"),
                                          ({"noise_floor": 0.2}, "no loss can be told")])
def test_a_null_test_of_nothing_or_of_noise_decides_nothing(load, change, said):
    root = synthetic.full()
    root["twinbench"]["session"]["null_test"].update(change)
    verdict = judge(load(root), load(slower(synthetic.full(), 1.5), "before.json"))
    assert verdict.exit_code == 3 and any(said in finding.message for finding in verdict.of("inconclusive"))


def slower(root, factor, revision="another"):
    """The record with every optimized speedup divided by the factor, from another revision."""
    root = copy.deepcopy(root)
    root["twinbench"]["provenance"]["revision"] = revision
    for row in root["twinbench"]["speedups"]:
        if row["to"] == "optimized":
            synthetic.measured(row, row["ratio"] / factor, synthetic.spread_of(row))
    return root


def test_a_fallen_speedup_fails_against_the_baseline(load):
    verdict = judge(load(slower(synthetic.full(), 1.5)), load(synthetic.full(), "before.json"))
    assert verdict.exit_code == 1
    assert all(finding.kind == "speedups" and finding.magnitude == pytest.approx(1 / 3)
               for finding in verdict.of("fail"))


def test_a_risen_speedup_and_a_small_change_pass(load):
    before = load(synthetic.full(), "before.json")
    assert judge(load(slower(synthetic.full(), 0.7)), before).exit_code == 0
    narrow = synthetic.full()
    for row in narrow["twinbench"]["speedups"]:
        synthetic.measured(row, row["ratio"], 0.001)
    assert judge(load(slower(narrow, 1.005)), load(narrow, "before.json")).exit_code == 0


def test_a_wide_interval_is_inconclusive(load):
    root = slower(synthetic.full(), 1.02)
    for row in root["twinbench"]["speedups"]:
        synthetic.measured(row, row["ratio"], 0.25)
    assert judge(load(root), load(synthetic.full(), "before.json")).exit_code == 3


@pytest.mark.parametrize("word", ["slower", "faster", "inconclusive", None])
def test_a_bad_null_test_silences_the_timing_gate(load, word):
    root, before = slower(synthetic.full(), 1.5), load(synthetic.full(), "before.json")
    if word:
        root["twinbench"]["session"]["null_test"]["verdict"] = word
    else:
        root["twinbench"]["session"] = None
    record = load(root)
    assert judge(record, before).exit_code == 3
    # Advisory times decide nothing; times that nobody may believe are not even advice.
    assert judge(record, before, timing_advisory=True).exit_code == 3


def test_a_noisy_session_looks_for_larger_losses(load):
    root = slower(synthetic.full(), 1.2)
    root["twinbench"]["session"]["null_test"]["noise_floor"] = 0.15
    assert judge(load(root), load(synthetic.full(), "before.json")).exit_code in (0, 3)


def test_times_of_another_machine_are_not_compared(load):
    root = slower(synthetic.full(), 1.5)
    root["twinbench"]["provenance"]["cpu_model"] = "another"
    verdict = judge(load(root), load(synthetic.full(), "before.json"))
    assert verdict.exit_code == 3 and not verdict.of("fail")


def test_the_same_code_cannot_regress(load):
    same = slower(synthetic.full(), 1.5, synthetic.full()["twinbench"]["provenance"]["revision"])
    verdict = judge(load(same), load(synthetic.full(), "before.json"))
    assert verdict.exit_code == 0 and any("environment drifted" in finding.message for finding in verdict.of("notice"))


def test_pins(load):
    record = load(synthetic.full())
    cell = synthetic.cell("sem.scan", "optimized")
    assert judge(record, pins={cell: {"dispatches": 5}}).exit_code == 0
    assert judge(record, pins={cell: {"dispatches": 4}}).exit_code == 1
    assert judge(record, pins={cell: {"dispatches": 6}}).exit_code == 1
    assert judge(record, pins={cell: {"kernels": 1}}).exit_code == 3
    assert judge(record, pins={"no.such/optimized/cpu/fp32/train": {"dispatches": 5}}).exit_code == 3


def test_regions_of_library_products_are_the_processors_own_and_others_are_not(load):
    root, cell = synthetic.full(), synthetic.cell("sem.scan", "optimized")
    row = next(row for row in root["twinbench"]["counters"] if row["cell"] == cell)
    row["process_calls"] = {"heap": 9, "parallel": 3}
    pins = {cell: {"process_calls.heap": 9, "process_calls.parallel": 12}}
    assert judge(load(root), pins=pins).exit_code == 1
    row["by_name"] = {"aten::mm": 2}
    assert judge(load(root), pins=pins).exit_code == 0
    assert judge(load(root), pins={cell: {"process_calls.heap": 8}}).exit_code == 1


def test_views_of_a_baseline_are_pinned(load):
    root, cell = synthetic.full(), synthetic.cell("sem.scan", "baseline")
    row = next(row for row in root["twinbench"]["counters"] if row["cell"] == cell)
    row["layout"] = {"views": 9, "strided": 2, "spanned_bytes": 640, "each_operand": 12345}
    right = {f"layout.{name}": count for name, count in row["layout"].items()}
    assert judge(load(root), pins={cell: right}).exit_code == 0
    assert judge(load(root), pins={cell: {"layout.views": 8}}).exit_code == 1
    assert judge(load(root), pins={cell: {"layout.each_operand": 12344}}).exit_code == 1
    del row["layout"]
    assert judge(load(root), pins={cell: {"layout.views": 9}}).exit_code == 1


def test_more_counted_than_in_the_baseline_record_fails(load):
    before, root = load(synthetic.full(), "before.json"), synthetic.full()
    row = next(row for row in root["twinbench"]["counters"] if row["cell"] == synthetic.cell("sem.scan", "optimized"))
    row["values"]["allocations"] = 1
    assert judge(load(root), before).exit_code == 1
    root["twinbench"]["provenance"]["libtorch"] = "2.12.0"
    assert judge(load(root), before).exit_code == 0


def test_a_failure_outranks_a_gap(load):
    root = synthetic.failing()
    root["twinbench"]["session"] = None
    verdict = judge(load(root))
    assert verdict.exit_code == 1 and verdict.of("inconclusive")
    assert verdict.findings[0].severity == "fail"


def test_judging_uses_the_day_of_the_run_unless_told(load):
    assert judge(load(synthetic.full()), today=datetime.date(2030, 1, 1)).exit_code == 0


QUALIFIED = {"comparisons": 600, "false_verdicts": 0, "undecided": 3, "planted": 300, "planted_share": 0.05,
             "misses": 0, "planted_too_noisy": 4, "planted_wrong": 0, "noise_limit": 0.02, "confidence": 0.95,
             "false_rate_at_most": 0.00498, "power_at_least": 0.9901}


@pytest.mark.parametrize("field", ["false_verdicts", "misses", "planted_wrong"])
def test_a_gate_that_judged_wrongly_decides_nothing(load, field):
    root = slower(synthetic.full(), 1.5)
    root["twinbench"]["session"]["qualification"] = dict(QUALIFIED)
    assert judge(load(root), load(synthetic.full(), "before.json")).exit_code == 1
    root["twinbench"]["session"]["qualification"][field] = 1
    assert judge(load(root), load(synthetic.full(), "before.json")).exit_code == 3


def test_every_rule_of_timing_rejects_and_gates(load):
    for rule in ("sleeps: in 80 % of its time", "clock: it differs", "global_state: it changes: number of threads"):
        root = rejected(synthetic.full()["twinbench"]["timings"][0]["cell"])
        row = next(row for row in root["twinbench"]["timings"] if row["verdict"] == "rejected")
        row["reason"] = rule
        verdict = judge(load(root))
        assert verdict.exit_code == 1
        assert any(rule in finding.message for finding in verdict.of("fail"))


def test_a_held_out_case_is_not_compared_with_another_revisions(load):
    root, before = slower(synthetic.full(), 1.5), synthetic.full()
    for record in (root, before):
        for section in ("timings", "speedups"):
            for row in record["twinbench"][section]:
                if section == "speedups":
                    row["case"] = "held_out"
                else:
                    row["cell"] = row["cell"].rsplit("/", 1)[0] + "/held_out"
    assert not judge(load(root), load(before, "before.json")).of("fail")


def test_new_and_renamed_rows_are_named(load):
    before, root = load(synthetic.full(), "before.json"), synthetic.full()
    block = root["twinbench"]
    old = dict(block["speedups"][0])
    block["speedups"][0]["case"] = "longer"
    block["components"][0]["cases"].append({**block["components"][0]["cases"][0], "name": "longer"})
    verdict = judge(load(root), before)
    messages = {(finding.severity, finding.kind): finding for finding in verdict.findings
                if finding.severity != "notice" or finding.message.startswith("new:")}
    name = "/".join(old[key] for key in ("component", "device", "dtype", "case"))
    vanished = messages["missing", "speedups"]
    assert vanished.subject.startswith(name) and f"renamed to {name.replace('/train', '/longer')}" in vanished.message
    assert messages["notice", "speedups"].subject.startswith(name.replace("/train", "/longer"))
    assert verdict.exit_code == 3


@pytest.mark.parametrize("section", SECTIONS)
def test_every_failure_carries_a_cause_and_a_command(load, section):
    root = synthetic.full()
    root["twinbench"][section][0].update(verdict="fail", reason="planted")
    finding = judge(load(root)).findings[0]
    assert finding.severity == "fail" and finding.cause and finding.reproduce and finding.cause in finding.text


def test_a_lost_speedup_names_the_counter_that_moved(load):
    root, before = slower(synthetic.full(), 1.5), load(synthetic.full(), "before.json")
    lost = [finding for finding in judge(load(root), before).findings if finding.kind == "speedups"][0]
    assert lost.severity == "fail" and "no count of this component moved" in lost.cause
    component = lost.subject.split("/")[0]
    row = next(row for row in root["twinbench"]["counters"]
               if row["cell"].startswith(component) and "/optimized/" in row["cell"])
    row["values"]["scalar_reads"] += 3
    findings = judge(load(root), before).findings
    assert next(finding for finding in findings if finding.subject == lost.subject).cause == "scalar reads"
    assert next(finding for finding in findings if finding.kind == "counters").cause == "scalar reads"


@pytest.mark.parametrize("section, change, said", [
    ("speedups", {"ratio": 241.0}, "ratio is 241.0, and its pairs give"),
    ("speedups", {"lower": 14.19}, "lower is 14.19"),
    ("speedups", {"log_ratios": [0.0] * 20}, "ratio is 14.2, and its pairs give 1"),
    ("speedups", {"n": 5}, "n is 5, and its pairs give 20"),
    ("speedups", {"n": 3, "log_ratios": [math.log(14.2)] * 3}, "and its pairs give none"),
    ("speedups", {"confidence": 0.01}, "a confidence of 0.01"),
    ("timings", {"samples_s": [-1.0] * 20}, "not all are times"),
    ("timings", {"samples_s": []}, "of 0 samples"),
    ("timings", {"n": 19}, "n is 19, and of 20 samples"), ("timings", {"n": 21}, "n is 21, and of 20 samples"),
    ("timings", {"median_s": 1e-12, "impossible_below_s": None}, "its median is 1e-12 s, and its samples give"),
    ("speedups", {"ratio": 1420.0, "lower": 1420.0, "upper": 1420.0, "log_ratios": [math.log(1420)] * 20},
     "the medians of its two variants"),
    ("parity", {"outputs": []}, "no output was compared"),
    ("parity", {"reason": "output differs"}, "says output differs"),
])
def test_figures_that_do_not_follow_from_what_they_rest_on_fail(load, section, change, said):
    root = synthetic.full()
    assert judge(load(root)).exit_code == 0
    row = root["twinbench"][section][0]
    assert row.get("check", "oracle") == "oracle"
    row.update(change)
    verdict = judge(load(root))
    assert verdict.exit_code == 1 and any(said in finding.message for finding in verdict.of("fail")), verdict.findings


@pytest.mark.parametrize("judged, words", [(0, "0 checks"), (1, "1 check"), (2, "2 checks"), (1234, "1,234 checks")])
def test_the_verdict_counts_in_words_that_agree(judged, words):
    assert Verdict(0, [], counts={"judged": judged}).headline == f"{words} judged: all passed"
