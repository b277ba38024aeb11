"""Rows must name what there is: a component that the record describes, its variants, modes and cases, a device that the
machine has, the engine that writes such rows. What nobody knows was judged by nobody."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from twinbench_reports.cells import ENGINE_OF, Cell, Row, named_rows, parse_cell
from twinbench_reports.judge.findings import Finding

HELD_OUT = "held_out"  # the case that a revision draws for itself
_ENGINES = frozenset(ENGINE_OF.values()) | {"instructions", "ceilings"}


def judge_known(block: dict[str, Any], components: Collection[str] | None) -> Iterator[Finding]:
    """`components`: all that are pinned, where pins are given. Old records may lack cells that are there today, so that
    each record is held against its own list, and that list against the pins."""
    described = {row["id"]: row for row in block["components"]}
    for name in described:
        if components is not None and name not in components:
            yield Finding("fail", "components", name, "the record describes a component of which no cell is pinned")
        if name not in block["provenance"]["source_hashes"]:
            yield Finding("fail", "components", name, "the record describes a component without a source")
    for engine in block["engines"]:
        if engine not in _ENGINES:
            yield Finding("fail", "ledger", engine, "no such engine: it cannot have measured anything")
    no_card = block["provenance"]["gpu"] is None and not block.get("merged_from")
    for section, engine in {**ENGINE_OF, "instructions": "instructions"}.items():
        rows = block.get(section, [])
        if rows and engine not in block["engines"]:
            yield Finding("fail", section, engine, f"{len(rows)} rows of this engine, which is none of the record's")
        for subject, cell, verdict in _cells(block, section):
            wrong = _unknown(cell, described)
            if not wrong and cell.device == "cuda" and no_card and verdict not in ("skip", "error", "inconclusive"):
                wrong = "measured on a card, by a machine without one"
            if wrong:
                yield Finding("fail", section, subject, wrong)
    pipelines = {name.partition(".")[0] for name in described}
    for name, row in named_rows(block, "scenarios"):
        if row["pipeline"] not in pipelines:
            yield Finding("fail", "scenarios", name, f"no component belongs to the pipeline {row['pipeline']!r}")


def _cells(block: dict[str, Any], section: str) -> Iterator[tuple[str, Cell, str]]:
    """The cells that a section's rows are about, with the rows' names and verdicts."""
    if section in ("scenarios", "selftest"):
        return
    rows = [(row["cell"], row) for row in block.get(section, [])] if section == "instructions" else named_rows(
        block, section)
    for name, row in rows:
        for cell in [parse_cell(row["cell"])] if "cell" in row else _sides(row):
            yield name, cell, row["verdict"]


def _sides(row: Row) -> list[Cell]:
    variants = (row["from"], row["to"]) if "from" in row else ("baseline", "optimized")
    return [Cell(row["component"], variant, row["device"], row["dtype"], row["case"]) for variant in variants]


def _unknown(cell: Cell, described: dict[str, Row]) -> str:
    """Empty, or what of the cell's name nobody knows."""
    component = described.get(cell.component)
    if component is None:
        return f"no such component: the record does not describe {cell.component}"
    if cell.variant not in component["variants"]:
        return f"{cell.component} has no variant {cell.variant}"
    if cell.dtype not in component["dtypes"]:
        return f"{cell.component} has no mode {cell.dtype}"
    if cell.case != HELD_OUT and all(one["name"] != cell.case for one in component["cases"]):
        return f"{cell.component} has no case {cell.case}"
    return ""
