"""Modelled times: a drop fails and names its figures, nothing modelled is measured, and a card's record stands beside.

Every number here is made up (synthetic.py): neither the model nor a card gave any of them.
"""

from __future__ import annotations

import json

import pytest
import synthetic

from twinbench_reports.judge.judge import judge
from twinbench_reports.merge import merge_records
from twinbench_reports.render.columns import Style
from twinbench_reports.render.html import html_report
from twinbench_reports.render.modelled import gather_modelled
from twinbench_reports.render.table import table_text


def slowed(root, factor=2.0):
    """The record where the model finds the first cell's kernel slower."""
    row = root["twinbench"]["modelled"][0]
    row.update(seconds=row["seconds"] * factor, floor_share=row["floor_share"] / factor,
               limiter="Forward: L2 bandwidth")
    return root


def card_record(card="NVIDIA H200", seconds=3e-5):
    """A MADE-UP record of a card: for the rendering only."""
    root = synthetic.only(synthetic.full(), "timings")
    block = root["twinbench"]
    block["provenance"]["gpu"] = {"name": card}
    block["timings"] = [row for row in block["timings"] if "/optimized/" in row["cell"]][:1]
    for row in block["timings"]:
        row.update(cell=row["cell"].replace("/cpu/", "/cuda/"), gpu_median_s=seconds)
    return synthetic.balance(root)


def assert_names_all(message):
    for part in ("H200", "fell 0.900 -> 0.450", "L2 bandwidth", "memory bandwidth"):
        assert part in message


def test_a_drop_below_the_pin_fails_though_the_row_says_pass(load):
    verdict = judge(load(slowed(synthetic.full())))
    (finding,) = verdict.of("fail")
    assert verdict.exit_code == 1 and finding.kind == "modelled"
    assert finding.subject == "energy_flow.embedding_mapper/optimized/simt/fp32/train on H200"
    assert_names_all(finding.message)
    assert finding.reproduce.startswith("build/cpu/bin/twinbench kernels --filter ")
    assert finding.magnitude == pytest.approx(0.5)


def test_a_drop_against_the_baseline_record_fails_though_it_was_pinned_anew(load):
    now = slowed(synthetic.full())
    row = now["twinbench"]["modelled"][0]
    row["pinned"] = {key: row[key] for key in ("seconds", "floor_share", "limiter")}
    verdict = judge(load(now), load(synthetic.full(), "before.json"))
    assert verdict.exit_code == 1 and [finding.kind for finding in verdict.of("fail")] == ["modelled"]
    assert_names_all(verdict.of("fail")[0].message)


def test_the_gate_exits_1_for_a_slower_kernel(save, cli, capsys):
    assert cli("gate", save(synthetic.full())) == 0
    assert cli("gate", save(slowed(synthetic.full()))) == 1
    assert "floor / modelled fell 0.900 -> 0.450" in capsys.readouterr().out


@pytest.mark.parametrize("change, code", [(-0.0009, 0), (-0.0011, 1), (+0.2, 0)])
def test_rounding_and_gains_are_no_drop(load, change, code):
    root = synthetic.full()
    root["twinbench"]["modelled"][2]["floor_share"] += change
    assert judge(load(root)).exit_code == code


@pytest.mark.parametrize("against", ["pin", "record"])
def test_a_share_that_is_no_longer_there_is_a_drop(load, against):
    now = synthetic.full()
    row = now["twinbench"]["modelled"][0]
    row["floor_share"] = None
    if against == "record":
        row["pinned"] = None
    verdict = judge(load(now), load(synthetic.full(), "before.json") if against == "record" else None)
    assert verdict.exit_code == 1
    assert "there is no floor / modelled, and it was 0.900" in verdict.of("fail")[0].message


def test_a_vanished_row_is_missed(load):
    now = synthetic.full()
    del now["twinbench"]["modelled"][0]
    verdict = judge(load(synthetic.balance(now)), load(synthetic.full(), "before.json"))
    assert verdict.exit_code == 3 and verdict.of("missing")[0].kind == "modelled"


def test_modelled_times_alone_measured_nothing(load):
    verdict = judge(load(synthetic.only(synthetic.full(), "modelled")))
    assert verdict.exit_code == 3 and "only modelled" in verdict.findings[0].message


def test_records_without_the_section_are_read_and_merged(load):
    old = synthetic.only(synthetic.full(), "parity")
    del old["twinbench"]["modelled"]
    new = synthetic.only(synthetic.full(), "modelled")
    merged = merge_records([load(old, "old.json"), load(new, "new.json")])
    assert len(merged["twinbench"]["modelled"]) == 10 and judge(load(old, "old.json")).exit_code == 0


def test_a_cards_record_stands_beside_what_is_modelled_for_it(load):
    record = load(synthetic.full())
    assert all(view.measured_s is None for view in gather_modelled(record))
    views = gather_modelled(record, [load(card_record(), "card.json")])
    measured = [view for view in views if view.measured_s is not None]
    assert [view.row["card"] for view in measured] == ["H200"]
    assert measured[0].measured_over_modelled == pytest.approx(3e-5 / 2e-5)
    assert all(view.measured_s is None
               for view in gather_modelled(record, [load(card_record("Another card"), "other.json")]))


def test_the_page_shows_it_under_its_own_word_and_colour(load, save, cli, tmp_path):
    record = load(synthetic.full())
    page = html_report(record, judge(record), None, [load(card_record(), "card.json")])
    assert '<section id="modelled"' in page and 'class="n strong modelled">20.0 µs' in page
    assert ".modelled{color:var(--ochre)}" in page and "1.50×" in page and "never measured" in page
    assert "Modelled, not measured:" in table_text(record, judge(record), Style(width=10_000))
    out = tmp_path / "page.html"
    assert cli("html", save(synthetic.full()), "--measured", save(card_record(), "card.json"), "-o", out) == 0
    assert "1.50×" in out.read_text()
    assert json.loads(save(synthetic.full()).read_text())["twinbench"]["modelled"]
