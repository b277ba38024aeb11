"""Counters against checked-in pins, and against those of an earlier record. Counters have no tolerance."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from twinbench_reports import machine
from twinbench_reports.cells import parse_cell
from twinbench_reports.errors import ReportError
from twinbench_reports.judge.correctness import counter_differences
from twinbench_reports.judge.findings import Finding, reproduce
from twinbench_reports.load import Record, parse_json, read_bytes

Pins = dict[str, dict[str, int]]


def load_pins(path: str | Path) -> Pins:
    """Reads {"cells": {cell: {counter: value}}}, or the inner object alone."""
    root = parse_json(read_bytes(path), str(path))
    cells = root.get("cells", root) if isinstance(root, dict) else None
    if not isinstance(cells, dict) or not cells:
        raise ReportError("it pins nothing", file=str(path), path="$.cells", remedy='give {"cells": {"<cell>": {"<counter>": <integer>}}}')
    for cell, counters in cells.items():
        if not isinstance(counters, dict):
            raise ReportError("not an object of counters", file=str(path), path=f"$.cells.{cell}", remedy="give counter names and integers")
        for name, value in counters.items():
            if isinstance(value, bool) or not isinstance(value, int):
                raise ReportError(f"{value!r} is not an integer", file=str(path), path=f"$.cells.{cell}.{name}", remedy="counters are exact integers")
    return cells


def judge_pins(block: dict[str, Any], pins: Pins | None) -> Iterator[Finding]:
    """A finding for every pinned counter that is another number, better ones too: pins change on purpose only."""
    if pins is None:
        return
    rows = {row["cell"]: row for row in block["counters"] if row["verdict"] != "skip"}
    for cell, pinned in sorted(pins.items()):
        command = reproduce("counters", cell)
        if cell not in rows:
            yield Finding("missing", "pins", cell, "pinned, and not counted in this record", command)
            continue
        for name, now, pin in counter_differences(rows[cell]["values"], pinned):
            if now is None:
                yield Finding("missing", "pins", f"{cell} [{name}]", f"pinned at {pin}, and not counted here", command)
            else:
                hint = "fewer: pin it anew on purpose" if now < pin else "more"
                yield Finding("fail", "pins", f"{cell} [{name}]", f"{now:,} where {pin:,} is pinned ({hint})", command, float(abs(now - pin)))


def judge_counters_against(now: Record, before: Record | None) -> Iterator[Finding]:
    """Optimized variants may not count more than in the baseline record. With another toolchain that is a notice."""
    if before is None:
        return
    other_tools = machine.differences(machine.toolchain(now.provenance), machine.toolchain(before.provenance))
    old_rows = {row["cell"]: row for row in before.block["counters"]}
    for row in now.block["counters"]:
        old = old_rows.get(row["cell"])
        if old is None or "skip" in (row["verdict"], old["verdict"]):
            continue
        for name, value, earlier in counter_differences(row["values"], old["values"]):
            subject, command = f"{row['cell']} [{name}]", reproduce("counters", row["cell"])
            if value is None:
                yield Finding("missing", "counters", subject, f"was {earlier:,} in the baseline record, and is not counted now", command)
                continue
            text = f"{value:,} where the baseline record has {earlier:,}"
            if other_tools:
                yield Finding("notice", "counters", subject, f"{text}, under another toolchain ({other_tools[0]})", command)
            elif value > earlier and parse_cell(row["cell"]).variant == "optimized":
                yield Finding("fail", "counters", subject, text, command, float(value - earlier))
            else:
                yield Finding("notice", "counters", subject, text, command)
