"""Which cells a run had to have a row for: those that its --filter matches, of the cases that its record describes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from typing import Any

from twinbench_reports.cells import Cell, parse_cell
from twinbench_reports.judge.findings import Finding
from twinbench_reports.judge.reproduce import reproduce_cell

_FILTER = re.compile(r"(?:^|\s)--filter[= ](\S+)")
_SHARD = re.compile(r"(?:^|\s)--shard\b")


def judge_planned(block: dict[str, Any]) -> Iterator[Finding]:
    """A finding for every cell of parity and counters without a row, of the variants of a component that has rows in
    that mode on the CPU. What a run leaves out has a row that says so. A documented mistake has a baseline only, and
    none of the checks of a case."""
    components = {component["id"]: component for component in block["components"]}
    for section in ("parity", "counters"):
        filters = _filters(block, section)
        if not filters:
            continue
        present = {parse_cell(row["cell"]) for row in block[section]}
        of_all = {cell[::4] for cell in present if cell.variant != "baseline"} | {
            parse_cell(row["cell"])[::4] for row in block["parity"] if row["check"] == "determinism"}
        modes = {(cell.component, cell.dtype) for cell in present if cell.device == "cpu"}
        for name, dtype in sorted(mode for mode in modes if mode[0] in components):
            component = components[name]
            for variant, case in product(component["variants"], component["cases"]):
                cell = Cell(name, variant, "cpu", dtype, case["name"])
                if cell in present or not any(one.search(str(cell)) for one in filters):
                    continue
                if cell.variant == "baseline" or cell[::4] in of_all:
                    yield Finding("missing", section, str(cell), "it has no row, and the run's --filter matches it: "
                                  "nothing says that it was left out", reproduce_cell(section, str(cell)))


def _filters(block: dict[str, Any], engine: str) -> list[re.Pattern[str]]:
    """Of the runs of that engine whose cells are known: those of a shard are drawn by the program."""
    found = []
    for run in block.get("merged_from") or [{"engines": block["engines"], **block["provenance"]}]:
        line = run["command_line"]
        if engine not in run["engines"] or _SHARD.search(line):
            continue
        given = _FILTER.search(line)
        try:
            found.append(re.compile(given.group(1) if given else ""))
        except re.error:
            continue  # another dialect's
    return found
