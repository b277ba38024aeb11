"""The HTML report: one file that needs no network and no script. Same inputs, same bytes. The site's pages reuse it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2

from twinbench_reports import machine
from twinbench_reports.documents.coverage import MEANING, STAGES, Coverage, coverage, stages_text
from twinbench_reports.documents.load import Documents
from twinbench_reports.documents.measured import LedgerRow, ledger_rows
from twinbench_reports.judge.findings import SEVERITIES, Finding, Verdict
from twinbench_reports.judge.reproduce import program
from twinbench_reports.judge.timing import disbelief, null_test_word, qualification_text, smallest_loss
from twinbench_reports.load import Record
from twinbench_reports.render import numbers
from twinbench_reports.render.claims import claim_rows
from twinbench_reports.render.device import (activity_rows, card_facts, device_finding, joined_timelines, memory_rows,
                                             timeline_rows)
from twinbench_reports.render.figures.claims import claim_drawings, claim_finding
from twinbench_reports.render.figures.counters import counter_drawings, counter_finding
from twinbench_reports.render.figures.drawing import Drawing
from twinbench_reports.render.figures.parity import parity_drawings, parity_finding
from twinbench_reports.render.figures.roofline import roofline_drawings, roofline_finding
from twinbench_reports.render.figures.scenarios import scenario_drawings
from twinbench_reports.render.figures.speedups import speedup_drawings, speedup_finding
from twinbench_reports.render.figures.stages import coverage_drawings, ledger_drawings
from twinbench_reports.render.figures.theme import DARK, LIGHT, css_variables
from twinbench_reports.render.figures.timeline import timeline_drawings
from twinbench_reports.render.findings import alike
from twinbench_reports.render.glossary import GLOSSARY, METHOD
from twinbench_reports.render.ledger import account
from twinbench_reports.render.modelled import gather_modelled, limiter_parts, modelled_finding
from twinbench_reports.render.twins import Twin, gather_claims, gather_parity, gather_twins
from twinbench_reports.statistics.speedups import geometric_mean, minimum_detectable

_TEMPLATES = Path(__file__).parent / "templates"
MOST_ACTIONS = 50
MOST_COUNTED, MOST_SCENARIOS = 40, 3  # rows of all counters, and scenarios drawn: one page for 88 components is 2 MB
DECIDED = ("faster", "same", "slower")  # verdicts on time that stand; what is said beside them is about the method
COUNTERS = ("dispatches", "scalar_reads", "sync_calls", "copies", "allocations", "peak_bytes")


def all_drawings(record: Record, documents: Documents | None = None) -> dict[str, list[Drawing]]:
    """Every figure of the report, by section."""
    block = record.block
    twins = gather_twins(block)
    ledger, covered = _documented(documents, block, twins)
    return {
        "ledger": ledger_drawings(ledger),
        "coverage": coverage_drawings(covered) if covered else [],
        "speedups": speedup_drawings(twins),
        "claims": claim_drawings(gather_claims(block, twins)),
        "counters": counter_drawings(twins),
        "parity": parity_drawings(gather_parity(block)),
        "roofline": roofline_drawings(twins, block),
        "scenarios": scenario_drawings(block["scenarios"]),
        "device": timeline_drawings(joined_timelines(block)), }


def html_report(record: Record, verdict: Verdict, before: Record | None = None,
                measured: Sequence[Record] = (), documents: Documents | None = None) -> str:
    """The whole report. Everything is escaped."""
    return environment().get_template("report.html.j2").render(
        look() | record_context(record, verdict, before, measured, documents))


def look() -> dict[str, str]:
    """What every page has in its head: the style and the colours of both themes."""
    return {"style": (_TEMPLATES / "style.css").read_text(encoding="utf-8"), "light": css_variables(LIGHT),
            "dark": css_variables(DARK), "script": "", "script_hash": ""}


def record_context(record: Record, verdict: Verdict, before: Record | None = None, measured: Sequence[Record] = (),
                   documents: Documents | None = None) -> dict[str, Any]:
    """What the templates of the sections ask for; `measured`: records of cards, for their times beside modelled ones;
    `documents`: for ledger and coverage. No figure is drawn before a template asks for it."""
    block = record.block
    twins = gather_twins(block)
    claims = gather_claims(block, twins)
    parity = gather_parity(block)
    modelled = gather_modelled(record, measured)
    proofs = [row for twin in twins for row in twin.proofs]
    ledger, covered = _documented(documents, block, twins)
    counted = sorted((twin for twin in twins if "baseline" in twin.counters and "optimized" in twin.counters),
                     key=lambda twin: twin.speedup is None)  # what is timed first
    drawings = all_drawings(record, documents)
    drawings["scenarios"] = _first_drawn(drawings["scenarios"], block["scenarios"])
    return {
        "ledger": ledger,
        "coverage": covered,
        "record": record,
        "block": block,
        "provenance": record.provenance,
        "before": before,
        "verdict": verdict,
        "actions": first_actions(verdict),
        "program": program("cuda" if record.provenance["gpu"] else "cpu"),
        "machine": machine.label(record.provenance),
        "null_test": (block["session"] or {}).get("null_test"),
        "null_test_word": null_test_word(block),
        "qualification": qualification_text(block),
        "smallest_loss": smallest_loss(block),
        "tiles": _tiles(record, verdict, twins),
        "twins": twins,
        "timed": [twin for twin in twins if twin.speedup],
        "proved": sorted((twin for twin in twins if twin.proofs),
                         key=lambda twin: all(row["verdict"] == "pass" for row in twin.proofs)),
        "counted": counted[:MOST_COUNTED],
        "counted_more": len(counted[MOST_COUNTED:]),
        "counter_names": COUNTERS,
        "roofed": [twin for twin in twins if twin.timings],
        "modelled": modelled,
        "claims": claim_rows(claims),
        "parity": sorted(parity, key=lambda view: (view.verdict in ("pass", "skip"), -(view.worst_ratio or 0))),
        "drawings": drawings,
        "undrawn": max(len(block["scenarios"]) - MOST_SCENARIOS, 0),
        "specimens": [row for row in block["parity"] if row["check"] == "specimen"],
        "account": account(record),
        "glossary": GLOSSARY,
        "method": [(word, f"{text} The limit of this record is {numbers.percent(smallest_loss(block))}."
                    if word == "Gate" else text) for word, text in METHOD],
        "activity": activity_rows(block),
        "memory": memory_rows(block),
        "timelines": timeline_rows(joined_timelines(block)),
        "card": card_facts(record.provenance["gpu"]),
        "findings": {
            "device": device_finding(block),
            "speedups": speedup_finding(twins),
            "claims": claim_finding(claims),
            "counters": counter_finding(proofs),
            "parity": parity_finding(parity),
            "modelled": modelled_finding(modelled),
            "roofline": roofline_finding([twin for twin in twins if twin.roofline("optimized")])}, }


def _first_drawn(drawings: list[Drawing], rows: Sequence[dict[str, Any]]) -> list[Drawing]:
    """Curves of the first scenarios, of those that do not pass before the others."""
    order = sorted(range(len(rows)), key=lambda number: rows[number]["verdict"] == "pass")
    chosen = {f"scenario-{number}" for number in order[:MOST_SCENARIOS]}
    return [drawing for drawing in drawings if drawing.key in chosen]


def first_actions(verdict: Verdict, most: int = MOST_ACTIONS) -> list[tuple[list[Finding], list[Finding]]]:
    """What to do, the worst first, in groups of alike findings; the first fifty."""
    groups, shown = [], 0
    for severity in SEVERITIES[:-1]:
        for first, more in alike(verdict.of(severity)):
            if shown < most:
                groups.append((first[:most - shown], more))
            shown += len(first)
    return groups


def _documented(documents: Documents | None, block: dict[str, Any],
                twins: list[Twin]) -> tuple[list[LedgerRow], Coverage | None]:
    if documents is None:
        return [], None
    return ledger_rows(documents, block, twins), coverage(documents, block, twins)


@functools.cache
def environment() -> jinja2.Environment:
    """The templates, with the filters that write numbers. Names and texts of records are escaped."""
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(_TEMPLATES), autoescape=True,
                                     undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
                                     keep_trailing_newline=True)
    for function in (numbers.significant, numbers.ratio, numbers.interval, numbers.integer, numbers.seconds,
                     numbers.percent, numbers.rate, numbers.binary_size):
        environment.filters[function.__name__] = function
    environment.globals.update(plural=numbers.plural, minimum_detectable=minimum_detectable, interval=numbers.interval,
                               counter=numbers.counter, limiter_parts=limiter_parts,
                               stages_text=stages_text, STAGES=STAGES, MEANING=MEANING, DECIDED=DECIDED)
    return environment


def _tiles(record: Record, verdict: Verdict, twins: list[Twin]) -> list[dict[str, str]]:
    """The few numbers under the banner. A mean never stands without the count it hides."""
    block = record.block
    tiles = [{"value": numbers.integer(verdict.counts["passed"]), "label": "checks passed",
              "note": f"{verdict.counts['failed']} failed, {verdict.counts['skipped']} skipped"}]
    ratios = [twin.ratio for twin in twins if twin.ratio]
    if disbelief(block):
        tiles.append({"value": numbers.DASH, "label": "geometric mean speedup", "note": "no time is believed"})
    if ratios:
        slower = sum(1 for twin in twins if twin.speedup and twin.speedup["verdict"] != "faster")
        tiles.append({
            "value": numbers.ratio(geometric_mean(ratios)),
            "label": "geometric mean speedup",
            "note": f"{len(ratios)} pairs, {slower} not faster"})
    if block["proofs"]:
        held = sum(1 for row in block["proofs"] if row["verdict"] == "pass")
        tiles.append({
            "value": f"{held:,} / {len(block['proofs']):,}",
            "label": "proof counters hold",
            "note": "exact, on both sides"})
    worst = max((view.worst_ratio for view in gather_parity(block) if view.worst_ratio is not None), default=None)
    if worst is not None:
        tiles.append({
            "value": numbers.significant(worst),
            "label": "worst error over allowed",
            "note": "at most 1 passes"})
    if block["scenarios"]:
        passed = sum(1 for row in block["scenarios"] if row["verdict"] == "pass")
        tiles.append({
            "value": f"{passed} / {len(block['scenarios'])}",
            "label": "scenarios pass",
            "note": "end to end"})
    if block["selftest"]:
        caught = sum(1 for row in block["selftest"] if row["verdict"] == "pass")
        tiles.append({
            "value": f"{caught} / {len(block['selftest'])}",
            "label": "planted bugs judged right",
            "note": "the harness tests itself"})
    return tiles
