"""Speedups over time: every record of a folder, in segments of one machine and toolchain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from twinbench_reports import machine
from twinbench_reports.cells import Row, named_rows
from twinbench_reports.errors import ReportError
from twinbench_reports.filters import chosen
from twinbench_reports.load import Record, load_record


@dataclass(frozen=True)
class Point:
    """One speedup of one record."""

    utc: str
    revision: str
    segment: int  # index into History.segments
    row: Row


@dataclass
class History:
    """The points of every matching twin, oldest first. Points of two segments are never compared."""

    segments: list[str] = field(default_factory=list)
    twins: dict[str, list[Point]] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)  # files that are no records, and why


def read_history(folder: Path, pattern: str) -> History:
    """Reads every *.json below the folder; `pattern` is a regular expression on the names of speedups."""
    if not folder.is_dir():
        raise ReportError("it is not a folder", file=str(folder),
                          remedy="give the folder that holds the records, such as reports/records")
    chosen(pattern, [])  # wrong ones are refused before anything is read
    history = History()
    records: list[Record] = []
    for path in sorted(folder.rglob("*.json")):
        try:
            records.append(load_record(path))
        except ReportError as error:
            history.refused.append(str(error))
    keys: list[dict[str, Any]] = []
    for record in sorted(records, key=lambda record: (record.provenance["utc"], record.sha256)):
        key = machine.board(record.provenance) | machine.toolchain(record.provenance)
        if key not in keys:
            keys.append(key)
            history.segments.append(
                f"{machine.label(record.provenance)} · LibTorch {record.provenance['libtorch']} · "
                f"{record.provenance['compiler']}"
            )
        rows = list(named_rows(record.block, "speedups"))
        wanted = set(chosen(pattern, (name for name, _ in rows)))
        for name, row in rows:
            if name in wanted:
                point = Point(record.provenance["utc"], record.provenance["revision"], keys.index(key), row)
                history.twins.setdefault(name, []).append(point)
    return history


def same_segment_change(points: Sequence[Point]) -> float | None:
    """Latest ratio over the first one of the latest segment; null with fewer than two."""
    own = [point.row["ratio"] for point in points if point.segment == points[-1].segment and point.row["ratio"]]
    return own[-1] / own[0] if len(own) > 1 else None
