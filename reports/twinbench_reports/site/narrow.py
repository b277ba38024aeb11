"""Parts of a record that are records themselves: one component, or one scenario, so that a page reuses the sections."""

from __future__ import annotations

from typing import Any

from twinbench_reports.cells import parse_cell
from twinbench_reports.judge.timing import disbelief
from twinbench_reports.load import Record

_BY_CELL = ("parity", "counters", "timings", "modelled")
_BY_COMPONENT = ("proofs", "speedups")
_NOT_OF_ONE = ("scenarios", "selftest", "timelines")


def by_component(record: Record) -> dict[str, Record]:
    """The record of each component, in the order of the component list."""
    block = record.block
    parts: dict[str, dict[str, Any]] = {}
    for component in block["components"]:
        parts[component["id"]] = {section: [] for section in (*_BY_CELL, *_BY_COMPONENT)} | {"components": [component]}
    for section in _BY_CELL:
        for row in block.get(section, []):
            _put(parts, parse_cell(row["cell"]).component, section, row)
    for section in _BY_COMPONENT:
        for row in block[section]:
            _put(parts, row["component"], section, row)
    if disbelief(block):  # a part without a speedup would not know that no time of the session is believed
        for part in parts.values():
            part["timings"] = part["timings"] if part["speedups"] else []
    empty = dict.fromkeys(_NOT_OF_ONE, [])
    return {name: _with(record, empty | part) for name, part in parts.items()}


def by_scenario(record: Record) -> dict[str, Record]:
    """The record of each scenario on all devices that ran it."""
    names = dict.fromkeys(row["name"] for row in record.block["scenarios"])
    empty = dict.fromkeys((*_BY_CELL, *_BY_COMPONENT, "components", "selftest", "timelines"), [])
    return {name: _with(record, empty | {"scenarios": [row for row in record.block["scenarios"]
                                                       if row["name"] == name]}) for name in names}


def _put(parts: dict[str, dict[str, Any]], component: str, section: str, row: dict[str, Any]) -> None:
    if component in parts:
        parts[component][section].append(row)


def _with(record: Record, changes: dict[str, Any]) -> Record:
    return Record(record.path, record.sha256, record.root | {"twinbench": record.block | changes})
