"""Nothing about a row but what the rules name lets it off: tables over all that rows can differ in, and each limit."""

from __future__ import annotations

import copy
import functools
import math

import pytest
import synthetic

from twinbench_reports.cells import JUDGED_SECTIONS, named_rows
from twinbench_reports.errors import ReportError
from twinbench_reports.judge.completeness import TURN, judge_completeness
from twinbench_reports.judge.consistency import require_consistent
from twinbench_reports.judge.measured import judge_outputs_against
from twinbench_reports.judge.pins import judge_counters_against, judge_pins
from twinbench_reports.judge.planned import judge_planned
from twinbench_reports.judge.timing import judge_timing

NAME = "sem.scan/cpu/fp32/train [baseline -> optimized]"


@functools.cache
def kept(*sections):
    """A good record, of some sections where they are given; hundreds are made of it."""
    return synthetic.only(synthetic.full(), *sections) if sections else synthetic.full()


@functools.cache
def one_speedup():
    root = copy.deepcopy(kept("timings", "speedups"))
    block = root["twinbench"]
    block["speedups"] = [row for name, row in named_rows(block, "speedups") if name == NAME]
    block["components"], block["timings"] = [row for row in block["components"] if row["id"] in NAME], []
    return root


def of_ratios(load, earlier, later, noise_floor=0.0, **traits):
    """Findings of a speedup with these triples in two records of different code, and with these traits in both."""
    records = []
    for triple, revision in ((later, "another"), (earlier, "before")):
        root = copy.deepcopy(one_speedup())
        block = root["twinbench"]
        block["provenance"]["revision"] = revision
        block["session"]["null_test"]["noise_floor"] = noise_floor
        block["speedups"][0].update(dict(zip(("ratio", "lower", "upper"), triple)), **traits)
        records.append(load(root, f"{revision}.json"))
    return [one for one in judge_timing(*records, advisory=False) if one.kind == "speedups"]


def around(ratio, half_width):
    """A speedup whose interval reaches so far to both sides, in logarithms."""
    return ratio, ratio * math.exp(-half_width), ratio * math.exp(half_width)


@pytest.mark.parametrize("traits", [
    {}, *({"n": n} for n in (1, 5, 100, 501, 1_000, 100_000)),
    *({"dtype": dtype} for dtype in ("bf16", "tf32", "fp16")), {"device": "cuda"}, {"device": "simt"},
    {"regime": "cold"}, {"case": "held_in"}, {"confidence": 0.99}, {"autocorrelation": 0.9},
    *({"verdict": word} for word in ("faster", "slower", "same", "inconclusive")), {"reason": "it is known"},
    {"log_ratios": [0.1] * 1_000}], ids=str)
@pytest.mark.parametrize("ratio", [0.1, 0.99, 1.001, 3.0, 5_000.0])
def test_a_lost_speedup_fails_whatever_else_its_row_says(load, traits, ratio):
    found = [one for one in of_ratios(load, around(ratio, 0.01), around(ratio * 0.9, 0.01), **traits)
             if "against the baseline record" in one.message]
    assert [one.severity for one in found] == ["fail"] and found[0].magnitude == pytest.approx(0.1)
    assert "-10.0 % [-11.3, -8.7]" in found[0].message and "looks for -3.0 %" in found[0].message


@pytest.mark.parametrize("change, half_width, noise_floor, expected", [
    # A loss from 3 % on, or from twice the noise on, fails where its interval is all of losses.
    (-0.0301, 0.001, 0, ["fail"]), (-0.0299, 0.001, 0, []), (-0.0301, 0.02, 0, ["fail"]),
    (-0.0301, 0.022, 0, ["inconclusive"]), (-0.0601, 0.001, 0.03, ["fail"]), (-0.0599, 0.001, 0.03, []),
    (-0.0301, 0.001, 0.015, ["fail"]), (-0.0301, 0.001, 0.0151, []),
    # What could hide three times that loss decides nothing.
    (0.0, math.log(1 / 0.909) / math.sqrt(2), 0, ["inconclusive"]), (0.0, math.log(1 / 0.911) / math.sqrt(2), 0, []),
    (0.0, math.log(1 / 0.819) / math.sqrt(2), 0.03, ["inconclusive"]),
    (0.0, math.log(1 / 0.821) / math.sqrt(2), 0.03, []),
    # A gain is noted where all of its interval is one.
    (0.0310, 0.001, 0, ["notice"]), (0.0300, 0.001, 0, []), (0.0310, 0.022, 0, [])])
def test_each_limit_of_a_speedups_change_stands_where_it_is_said(load, change, half_width, noise_floor, expected):
    found = of_ratios(load, around(3.0, half_width), around(3.0 * (1 + change), half_width), noise_floor)
    assert [one.severity for one in found] == expected, found


def test_of_many_speedups_each_lost_one_fails(load):
    """Also where a chance is allowed for each: all are beyond it."""
    roots = [copy.deepcopy(kept()), copy.deepcopy(kept())]
    lost = []
    for row in roots[1]["twinbench"]["speedups"]:
        synthetic.measured(row, row["ratio"] * 0.8, 0.02)
        lost += [row] if row["from"] == "baseline" else []
    for row in roots[0]["twinbench"]["speedups"]:
        synthetic.measured(row, row["ratio"], 0.02)
    roots[1]["twinbench"]["provenance"]["revision"] = "another"
    found = judge_timing(load(roots[1]), load(roots[0], "before.json"), advisory=False)
    assert len([one for one in found if one.severity == "fail"]) == len(lost) > 14


@pytest.mark.parametrize("section", (*JUDGED_SECTIONS, "speedups"))
@pytest.mark.parametrize("word", ["pass", "fail", "error", "rejected", "inconclusive", "same", "slower", "skip"])
def test_a_vanished_row_is_missed_whatever_its_verdict_was(section, word):
    """All but skipped ones: who removes what failed has not repaired it."""
    before, now, skipped = (copy.deepcopy(kept()["twinbench"]) for _ in range(3))
    old = before[section][0]
    name = next(iter(named_rows(before, section)))[0]
    old.update(verdict=word, reason="planted")
    now[section] = now[section][1:]
    skipped[section][0].update(verdict="skip", reason="no card")
    for block, said in ((now, "vanished: the baseline record has it"), (skipped, "skipped now: no card")):
        found = [one for one in judge_completeness(block, before) if "vanished" in one.message]
        assert [(one.severity, one.kind, one.subject) for one in found] == (
            [] if word == "skip" else [("missing", section, name)]), found
        assert all(said in one.message and one.reproduce for one in found)


@pytest.mark.parametrize("reason, excused", [
    (f"{TURN}: one in 2, by --sample", True), ("not sampled: tier quick", False), ("not", False), ("", False),
    (f"it is {TURN}", False), ("budget: spent", False), ("no card", False)])
@pytest.mark.parametrize("section", (*JUDGED_SECTIONS, "speedups"))
def test_nothing_but_another_cases_turn_excuses_a_row_that_is_skipped_now(section, reason, excused):
    before, now = (copy.deepcopy(kept()["twinbench"]) for _ in range(2))
    name = next(iter(named_rows(now, section)))[0]
    now[section][0].update(verdict="skip", reason=reason)
    found = [one for one in judge_completeness(now, before) if one.severity != "notice"]
    assert [(one.severity, one.subject) for one in found] == ([] if excused else [("missing", name)]), found


@pytest.mark.parametrize("section", (*JUDGED_SECTIONS, "speedups"))
def test_a_row_that_is_given_twice_is_refused_in_every_section(load, section):
    record = load(kept())
    require_consistent(record)
    name, row = next(iter(named_rows(record.block, section)))
    record.block[section].append(copy.deepcopy(row))
    with pytest.raises(ReportError) as error:
        require_consistent(record)
    assert f"it holds the row {name} 2 times" in str(error.value)


@pytest.mark.parametrize("word", ["skip", "inconclusive"])
def test_rows_that_decided_nothing_measured_nothing(word):
    block = copy.deepcopy(kept()["twinbench"])
    for section in (*JUDGED_SECTIONS, "speedups"):
        assert not list(judge_completeness(block, None))
        for row in block[section]:
            row["verdict"] = word
    finding, = judge_completeness(block, None)
    assert (finding.severity, finding.subject) == ("missing", "the record")
    assert "nothing was measured" in finding.message


@pytest.mark.parametrize("seed", [synthetic.SEED, 8])
@pytest.mark.parametrize("of_case", [
    {}, {"sizes": {"flows": 200}}, {"options": {"steps": 2}}, {"name": "other"}], ids=str)
def test_another_tolerance_class_than_in_the_baseline_record_fails_whatever_the_inputs_are(seed, of_case):
    before, now = (copy.deepcopy(kept("parity")["twinbench"]) for _ in range(2))
    row = now["parity"][0]
    row["seed"] = seed
    now["components"][0]["cases"][0].update(of_case)
    assert not list(judge_outputs_against(now, before))
    row["outputs"][0]["tolerance_class"] = "chain"
    finding, = judge_outputs_against(now, before)
    assert (finding.severity, finding.subject) == ("fail", f"{row['cell']} [{row['check']}]")
    assert "tolerance_class of output is 'chain', and 'op' in the baseline record" in finding.message


MAPS = ("by_name", "launches_by_kernel", "products_by_shape", "process_calls", "layout")


@pytest.mark.parametrize("device, variant", [("cpu", "optimized"), ("simt", "optimized"), ("cpu", "baseline"),
                                             ("cpu", "library")])
@pytest.mark.parametrize("map_name", MAPS)
@pytest.mark.parametrize("counted, said", [
    ({"b": 3}, "0 where 2 is pinned (fewer"), ({}, "0 where 2 is pinned (fewer"), (None, "0 where 2 is pinned (fewer"),
    ({"a": 1, "b": 3}, "1 where 2 is pinned (fewer"), ({"a": 3, "b": 3}, "3 where 2 is pinned (more)"),
    ({"a": 2, "b": 3}, "")])
def test_every_entry_of_every_pinned_map_is_held_to_its_number(map_name, device, variant, counted, said):
    """One that is no longer called was called 0 times."""
    row = synthetic.counters_row("sem.scan", variant, 5)
    row["cell"] = row["cell"].replace("/cpu/", f"/{device}/")
    row["by_name"] = {}
    if counted is not None:
        row[map_name] = counted
    pinned = {f"{map_name}.a": 2, f"{map_name}.b": 3} if counted and "b" in counted else {f"{map_name}.a": 2}
    found = list(judge_pins({"counters": [row]}, {row["cell"]: pinned}))
    assert [one.severity for one in found] == (["fail"] if said else []), found
    for one in found:
        assert said in one.message and one.subject == f"{row['cell']} [{map_name}.a]"


@pytest.mark.parametrize("map_name", MAPS)
def test_what_is_called_and_not_pinned_was_called_more_often_than_never(map_name):
    row = synthetic.counters_row("sem.scan", "optimized", 5)
    row["by_name"] = {}
    row[map_name] = {"pinned": 2, "another": 1}
    finding, = judge_pins({"counters": [row]}, {row["cell"]: {f"{map_name}.pinned": 2}})
    assert finding.severity == "fail" and finding.subject == f"{row['cell']} [{map_name}.another]"
    assert "1 where 0 is pinned (more)" in finding.message


def test_a_kernel_that_is_launched_in_a_cell_that_pins_none_was_launched_more_often_than_never():
    row = synthetic.counters_row("sem.scan", "optimized", 5) | {"launches_by_kernel": {"scan": 1}}
    finding, = judge_pins({"counters": [row]}, {row["cell"]: {"dispatches": 5}})
    assert (finding.severity, finding.subject) == ("fail", f"{row['cell']} [launches_by_kernel.scan]")


@pytest.mark.parametrize("variant", ["optimized", "baseline", "library"])
@pytest.mark.parametrize("counter", ["dispatches", "scalar_reads", "peak_bytes"])
def test_a_counter_that_is_no_longer_counted_is_missing(load, counter, variant):
    now, before = (copy.deepcopy(kept("counters")) for _ in range(2))
    row = next(row for row in now["twinbench"]["counters"] if f"/{variant}/" in row["cell"])
    row["values"][counter] = None
    found = list(judge_counters_against(load(now), load(before, "before.json")))
    assert [(one.severity, one.subject) for one in found] == [("missing", f"{row['cell']} [{counter}]")]
    pinned = {row["cell"]: {counter: 5}}
    assert [one.severity for one in judge_pins(now["twinbench"], pinned)] == ["missing"]


@pytest.mark.parametrize("lines, missing", [
    (("parity --filter movement", "parity --filter cayley"), 1),
    (("parity --filter cayley", "parity --filter movement"), 1),
    (("parity", "parity --filter cayley"), 1), (("parity --filter cayley", "parity --filter scan"), 0),
    (("parity --filter movement --shard 1/2", "parity --filter cayley"), 0),
    (("parity --filter movement --seed 3",), 1),
    (("counters --filter movement", "parity --filter cayley"), 0)])
def test_a_cell_is_missed_where_any_run_of_a_merged_record_had_to_have_it(lines, missing):
    block = copy.deepcopy(kept("parity", "counters")["twinbench"])
    gone = synthetic.cell("energy_flow.movement", "optimized")
    block["parity"] = [row for row in block["parity"] if row["cell"] != gone]
    block["merged_from"] = [{"engines": [line.split()[0]], "command_line": line} for line in lines]
    found = [one for one in judge_planned(block) if one.kind == "parity"]
    assert [(one.severity, one.subject) for one in found] == [("missing", gone)] * missing


@pytest.mark.parametrize("counter", synthetic.counters_row("sem.scan", "baseline", 5)["values"])
@pytest.mark.parametrize("device, dtype", [("cpu", "fp32"), ("simt", "fp32"), ("cpu", "bf16"), ("cuda", "tf32")])
def test_one_more_of_any_counter_than_in_the_baseline_record_fails(load, counter, device, dtype):
    """Of optimized variants; pins hold both numbers of every variant."""
    for variant, severity in (("optimized", "fail"), ("baseline", "notice")):
        records = []
        for more in (1, 0):
            root = copy.deepcopy(kept("counters"))
            row = next(row for row in root["twinbench"]["counters"]
                       if row["cell"] == synthetic.cell("sem.scan", variant))
            row["cell"] = synthetic.cell("sem.scan", variant, dtype, device=device)
            row["values"][counter] += more
            records.append(load(root, f"{more}.json"))
        subject = f"{row['cell']} [{counter}]"
        assert [(one.severity, one.subject, one.magnitude) for one in judge_counters_against(*records)] == [
            (severity, subject, 1.0 if severity == "fail" else None)]
        for record, expected in zip(records, (["fail"], [])):
            by_name = {f"by_name.{name}": count for name, count in row.get("by_name", {}).items()}
            found = judge_pins(record.block, {row["cell"]: row["values"] | by_name})
            assert [one.severity for one in found] == expected
