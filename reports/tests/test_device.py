"""The card in the report: traced work, memory and its leaks, timelines, facts; each absent with its reason."""

from __future__ import annotations

import copy

import pytest
import synthetic

from twinbench_reports.judge.judge import judge
from twinbench_reports.merge import merge_records
from twinbench_reports.render.device import (activity_rows, card_facts, device_finding, joined_timelines, memory_rows,
                                             timeline_rows)
from twinbench_reports.render.figures.timeline import timeline_drawings
from twinbench_reports.render.html import html_report


def page_of(record):
    return html_report(record, judge(record))


def section(page):
    return page[page.index('<section id="device"'):page.index('<section id="roofline"')]


def test_activity_is_of_one_run_and_the_idlest_comes_first():
    root = synthetic.on_a_card()
    block = root["twinbench"]
    block["counters"][5]["device_activity"]["busy_share"] = 0.1
    rows = activity_rows(block)
    assert rows[0]["cell"] == block["counters"][5]["cell"] and len(rows) == len(block["counters"])
    assert rows[0]["kernels"] == block["counters"][5]["values"]["dispatches"] and rows[0]["copies"] == 2
    said = "33 cells traced, the device busy 10.0 % to 80.0 % of its span. None of 33 cells left memory behind."
    assert device_finding(block) == said


def test_a_leak_is_first_and_counted():
    root = synthetic.on_a_card()
    block = root["twinbench"]
    block["counters"][9]["memory"]["device"]["leaked_bytes"] = 512
    assert memory_rows(block)[0]["cell"] == block["counters"][9]["cell"] and memory_rows(block)[0]["leaks"]
    assert "1 of 33 cells left memory behind" in device_finding(block)


@pytest.mark.drawn
def test_a_timeline_in_words_and_lines(load):
    record = load(synthetic.on_a_card())
    bench, parity = timeline_rows(joined_timelines(record.block))
    assert bench["power_w"] == (sum(250 + 5 * (index % 9) for index in range(40)) / 40, 250, 290)
    assert bench["throttle_reasons"] == "sw_power_cap"
    assert parity["reason"].startswith("nvml_absent") and "seconds" not in parity
    drawings = timeline_drawings(joined_timelines(record.block))
    assert [drawing.title for drawing in drawings] == ["The card during bench"]
    assert "power 250 to 290 W" in drawings[0].finding
    page = section(page_of(record))
    assert page.count("<figure>") == 1 and "nvml_absent: the management library" in page and "sw_power_cap" in page
    assert "2,600 J" in page


def test_timelines_of_one_engine_are_one_line_in_time():
    block = synthetic.on_a_card()["twinbench"]
    other = copy.deepcopy(block["timelines"][0])
    other["samples"].pop("power_w")
    block["timelines"] += [{"engine": "bench", "reason": "nvml_absent: lost", "samples": None, "jobs": []}, other]
    bench = joined_timelines(block)[0]
    seconds = bench["samples"]["seconds"]
    assert len(seconds) == 80 and seconds == sorted(seconds) and seconds[-1] == 2 * 9.75 + 0.25
    assert bench["reason"] == "" and len(bench["jobs"]) == 2
    assert bench["samples"]["energy_j"] == 5200 and bench["samples"]["power_w"][40:] == [None] * 40
    other["samples"]["energy_j"] = None
    assert joined_timelines(block)[0]["samples"]["energy_j"] is None
    assert len(timeline_drawings(joined_timelines(block))) == 1


def test_absence_is_said_with_its_reason(load):
    root = synthetic.full()
    for row in root["twinbench"]["counters"]:
        row |= {
            "device_activity": None,
            "device_activity_reason": "cupti_busy: another tool traces this process already"}
    root["twinbench"]["provenance"]["gpu_reason"] = "no_driver: there is none"
    page = page_of(load(root))
    assert "No device work was traced: cupti_busy" in section(page) and "<figure>" not in section(page)
    assert "(no_driver: there is none)" in page


def test_an_earlier_record_without_these_fields_renders(load):
    assert "No device work was traced." in section(page_of(load(synthetic.full())))


def test_facts_of_the_card_are_flat_and_leave_out_what_it_does_not_give():
    facts = dict(card_facts(synthetic.on_a_card()["twinbench"]["provenance"]["gpu"]))
    assert facts["clocks sm mhz"] == "1980.0" and "clocks max sm mhz" not in facts and facts["ecc"] == "on"
    assert facts["mig"] == "off" and facts["findings"] == "none"
    assert facts["memory bytes"] == "32.0 GiB" and card_facts(None) == []


def test_merging_keeps_every_timeline_and_one_of_each_absence(load):
    root = synthetic.on_a_card()
    first, second = synthetic.only(root, "counters"), synthetic.only(copy.deepcopy(root), "scenarios")
    second["twinbench"]["timelines"][0]["engine"] = "scenario"
    merged = merge_records([load(first), load(second)])["twinbench"]["timelines"]
    assert sorted(row["engine"] for row in merged) == ["bench", "parity", "scenario"]
