"""What each page of a machine shows: the templates' contexts."""

from __future__ import annotations

import base64
import hashlib
import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from twinbench_reports.documents.load import Documents
from twinbench_reports.judge.findings import Finding, Verdict
from twinbench_reports.judge.timing import smallest_loss
from twinbench_reports.load import Record
from twinbench_reports.render import numbers
from twinbench_reports.render.figures.levels import Track, level_drawings
from twinbench_reports.render.figures.speedups import speedup_finding
from twinbench_reports.render.html import look, record_context
from twinbench_reports.render.twins import VERDICT_ORDER, gather_twins
from twinbench_reports.site import compare
from twinbench_reports.site.gather import Level, Machine
from twinbench_reports.site.rows import ComponentRow, optimized_cell

_SCRIPTS = Path(__file__).resolve().parents[1] / "render" / "templates" / "site"
_MOST_TRACKS = 3  # of a component's history
_MOST_FINDINGS = 20
_MOST_CHANGES = 40  # on the overview; the compare page has all


def frame(page: str, here: str, *scripts: str) -> dict[str, Any]:
    """What every page has: its style, its scripts with their checksum, and where the machine's pages begin."""
    script = "\n".join((_SCRIPTS / name).read_text(encoding="utf-8") for name in scripts)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return look() | {"change_text": change_text, "level_text": level_text, "page": page, "here": here,
                     "script": script, "script_hash": f"sha256-{digest}" if script else ""}


def change_text(change: float | None) -> str:
    """+5.2 %, or a dash."""
    return numbers.DASH if change is None else f"{100 * change:+.1f} %"


def level_text(level: Level) -> str:
    return change_text(math.expm1(level.point.change))


def overview(machine: Machine, components: Sequence[ComponentRow], scenario_slugs: dict[str, str]) -> dict[str, Any]:
    """The machine's newest run at a glance."""
    record, verdict = machine.record, machine.verdict
    rows = compare.changes(machine.runs[-2], machine.last) if len(machine.runs) > 1 else []
    changed = [row for row in rows if row.word not in ("", "same")]
    scenarios = sorted(record.block["scenarios"], key=lambda row: (VERDICT_ORDER.index(row["verdict"]), row["name"]))
    return record_context(record, verdict, machine.before) | frame("index.html", "", "site.js") | {
        "components": components, "components_finding": speedup_finding([row.twin for row in components if row.twin]),
        "changed": changed[:_MOST_CHANGES], "changed_finding": _changed_finding(machine, rows, len(changed)),
        "levels": machine.levels, "smallest_loss": smallest_loss(record.block),
        "scenarios": scenarios, "scenario_slugs": scenario_slugs, "scenarios_finding": _passes(scenarios)}


def _changed_finding(machine: Machine, rows: Sequence[compare.Change], changed: int) -> str:
    if len(machine.runs) < 2:
        return "This is the first run of this machine."
    text = f"Since {machine.runs[-2].revision[:12] or 'the run before'}: {count_words(rows)}"
    if changed > _MOST_CHANGES:
        text += f" The first {_MOST_CHANGES} are here."
    levels = numbers.plural(len(machine.levels), "change") if machine.levels else "No change"
    return f"{text} {levels} of level in {numbers.plural(len(machine.runs), 'run')}."


def count_words(rows: Sequence[compare.Change]) -> str:
    """2 worse, 1 unclear, 0 better, 40 the same."""
    count = {word: sum(row.word == word for row in rows) for word in compare.WORDS}
    return f"{count['worse']} worse, {count['unclear']} unclear, {count['better']} better, {count['same']} the same."


def _passes(scenarios: Sequence[dict[str, Any]]) -> str:
    passed = sum(row["verdict"] == "pass" for row in scenarios)
    return f"{passed} of {numbers.plural(len(scenarios), 'scenario')} pass." if scenarios else ""


def component(machine: Machine, part: Record, row: ComponentRow, elsewhere: Sequence[tuple[str, str, ComponentRow]],
              sources: Sequence[str], source_url: str) -> dict[str, Any]:
    """All about one component on one machine."""
    findings = [finding for finding in machine.verdict.findings if _is_about(finding, row.id)]
    context = record_context(part, Verdict(machine.verdict.exit_code, findings, counts=machine.verdict.counts))
    tracks = _tracks(machine, part)
    context["drawings"]["history"] = level_drawings(tracks)
    context["drawings"]["parity"] = []  # one component is one row of that figure: the table says more
    return context | frame("", "../", "site.js") | {
        "row": row, "edge": _edge(row.right), "component_tiles": _tiles(row), "tracks": tracks,
        "component_findings": [finding for finding in findings if finding.severity != "notice"][:_MOST_FINDINGS],
        "elsewhere": elsewhere, "sources": sources, "source_url": source_url, "track_rows": _track_rows}


def _is_about(finding: Finding, component: str) -> bool:
    return finding.subject == component or finding.subject.startswith(component + "/")


def _edge(word: str) -> str:
    """The colour of the banner's edge."""
    return {"pass": "pass", "": "inconclusive"}.get(word, "fail")


def _tracks(machine: Machine, part: Record) -> list[Track]:
    twins = [twin for twin in gather_twins(part.block) if twin.speedup or twin.timings.get("optimized")]
    twins.sort(key=lambda twin: (twin.key[1] != "cuda", twin.key[3] != "train", twin.key[2] != "fp32", twin.key))
    runs = machine.runs
    tracks = []
    for twin in twins:
        cell = optimized_cell(twin)
        places = {id(run): place for place, run in enumerate(runs)}
        track = Track(twin.setting, [run.revision for run in runs], [run.points.get(cell) for run in runs],
                      [run.ratios.get(twin.name) for run in runs],
                      sorted((places[id(level.run)], level.point.change) for level in machine.levels_of(cell)))
        if sum(value is not None for value in track.seconds) > 1:
            tracks.append(track)
    return tracks[:_MOST_TRACKS]


def _track_rows(track: Track) -> list[tuple[Any, ...]]:
    return list(zip(track.revisions, track.seconds, track.ratios))[::-1]


def _tiles(row: ComponentRow) -> list[dict[str, str]]:
    tiles = []
    twin = row.twin
    if twin:
        tiles.append({"value": numbers.ratio(twin.ratio), "label": "speedup",
                      "note": f"{numbers.interval(twin.speedup['lower'], twin.speedup['upper'])} on {twin.setting}"})
    if twin and twin.library:
        tiles.append({"value": numbers.ratio(twin.library["ratio"]), "label": "over the library's way",
                      "note": numbers.interval(twin.library["lower"], twin.library["upper"])})
    if twin and twin.gap_closed is not None:
        tiles.append({"value": numbers.percent(twin.gap_closed), "label": "of the gap to the floor closed",
                      "note": f"{numbers.percent(twin.roofline('optimized'))} of the roof is reached"})
    for proof in itertools.islice(row.proofs, 1):
        before, after = (numbers.counter(proof["counter"], proof[side]["measured"])
                         for side in ("baseline", "optimized"))
        tiles.append({"value": f"{before} → {after}", "label": proof["counter"].replace("_", " "),
                      "note": f"{proof['device']} · {proof['dtype']} · {proof['case']}, exact"})
    if row.parity:
        tiles.append({"value": numbers.significant(row.parity.worst_ratio), "label": "worst error over allowed",
                      "note": f"{row.parity.worst_output} in {row.parity.dtype}, at most 1 passes"})
    return tiles


def scenario(machine: Machine, name: str, part: Record) -> dict[str, Any]:
    """One scenario, on all devices that ran it."""
    worst = min((row["verdict"] for row in part.block["scenarios"]), key=VERDICT_ORDER.index)
    return record_context(part, machine.verdict) | frame("", "../", "site.js") | {
        "name": name, "scenarios_title": "Curves and criteria", "edge": _edge("" if worst == "skip" else worst)}


def claims(machine: Machine, documents: Documents | None) -> dict[str, Any]:
    """Every claim, and the coverage of the documents."""
    return record_context(machine.record, machine.verdict, documents=documents) | frame("claims.html", "", "site.js")


def machines(own: Machine, everyone: Sequence[Machine], links: dict[str, str],
             refused: Sequence[str]) -> dict[str, Any]:
    """All machines, and what this one is."""
    context = record_context(own.record, own.verdict, own.before) if own.record else {"program": ""}
    return context | frame("machines.html", "", "site.js") | {
        "own": own, "machines": everyone, "links": links, "refused": refused}


def compared(own: Machine, pair: Sequence[Any] | None) -> dict[str, Any]:
    """The newest two runs, or those that were asked for, and the data of all."""
    rows = compare.changes(*pair) if pair else []
    return frame("compare.html", "", "site.js", "compare.js") | {
        "own": own, "pair": pair, "compared": rows, "compare_finding": count_words(rows),
        "runs_data": compare.data(own.runs) if pair else {}}
