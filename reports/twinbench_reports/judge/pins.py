"""Counters against checked-in pins, and against those of an earlier record. Counters have no tolerance."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from twinbench_reports import machine
from twinbench_reports.cells import Row, parse_cell
from twinbench_reports.errors import ReportError
from twinbench_reports.filters import chosen
from twinbench_reports.judge.correctness import counter_differences
from twinbench_reports.judge.findings import Finding
from twinbench_reports.judge.reproduce import reproduce_cell
from twinbench_reports.load import Record, parse_json, read_bytes

Counters = dict[str, int]
Pins = dict[str, Counters]  # by cell; a count of one operator is named by_name.<operator>
# Maps of a pin, and whether a record holds them too.
_NESTED = {"by_name": True, "forward_calls_by_name": False, "launches_by_kernel": True, "products_by_shape": True,
           "process_calls": True, "layout": True}
_PRODUCTS, _REGIONS = ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm"), "process_calls.parallel"


def load_pins(path: str | Path) -> Pins:
    """Reads the file that `twinbench counters --pin` writes: an object of cells, each an object of counters."""
    root = parse_json(read_bytes(path), str(path))
    if not isinstance(root, dict) or not root:
        raise ReportError("it pins nothing", file=str(path), path="$",
                          remedy="write it with `twinbench counters --pin`")
    return {cell: _counters(value, str(path), f"$.{cell}") for cell, value in root.items()}


def _counters(value: Any, file: str, path: str) -> Counters:
    if not isinstance(value, dict):
        raise ReportError("not an object of counters", file=file, path=path,
                          remedy="write it with `twinbench counters --pin`")
    counters: Counters = {}
    for name, count in value.items():
        if name in _NESTED:
            nested = _counters(count, file, f"{path}.{name}")
            if nothing := next((key for key, number in nested.items() if number <= 0), None):
                raise ReportError("a count that is not above 0 pins nothing", file=file,
                                  path=f"{path}.{name}.{nothing}",
                                  remedy="write it with `twinbench counters --pin`, which leaves it out")
            counters.update({f"{name}.{key}": number for key, number in nested.items()} if _NESTED[name] else {})
        elif isinstance(count, bool) or not isinstance(count, int):
            raise ReportError(f"{count!r} is not an integer", file=file, path=f"{path}.{name}",
                              remedy="counters are exact integers")
        else:
            counters[name] = count
    return counters


def _counted(row: Row, pinned: Counters) -> dict[str, int | None]:
    """The row's counters under the names of pins. An operator or a kernel that is not there was called 0 times."""
    maps = [name for name, held in _NESTED.items() if held]
    counts = {f"{map_name}.{name}": count for map_name in maps for name, count in row.get(map_name, {}).items()}
    absent = (name for name in pinned if name.partition(".")[0] in maps)
    found = dict.fromkeys(absent, 0) | counts | row["values"]
    # Into how many regions a library product is cut is the library's choice by the processor's vendor.
    if any(found.get(f"by_name.{product}") for product in _PRODUCTS):
        found.pop(_REGIONS, None)
        if _REGIONS in pinned:
            found[_REGIONS] = pinned[_REGIONS]
    return found


def matching(pins: Pins, pattern: str) -> Pins:
    """The pins of cells that match: what a run with that --filter had to count."""
    kept = {cell: pins[cell] for cell in chosen(pattern, pins)}
    if not kept:
        raise ReportError(f"{pattern!r} matches no pinned cell", path="--filter",
                          remedy="give the expression that the engines were given")
    return kept


def judge_pins(block: dict[str, Any], pins: Pins | None) -> Iterator[Finding]:
    """A finding for every pinned counter that is another number, better ones too: pins change on purpose only."""
    if pins is None:
        return
    rows = {row["cell"]: row for row in block["counters"] if row["verdict"] != "skip"}
    reasons = {row["cell"]: row["reason"] for row in block["counters"] if row["verdict"] == "skip"}
    left_out: dict[str, list[str]] = {}
    for cell, pinned in sorted(pins.items()):
        command = reproduce_cell("counters", cell)
        if cell not in rows and reasons.get(cell, "").startswith("not sampled"):  # one line for all
            left_out.setdefault(reasons[cell], []).append(cell)
            continue
        if cell not in rows:
            yield Finding("missing", "pins", cell, "pinned, and not counted in this record", command)
            continue
        counted = _counted(rows[cell], pinned)
        maps = {"launches_by_kernel"} | {name.partition(".")[0] for name in pinned if "." in name}
        unpinned = (name for name in counted if name.partition(".")[0] in maps and name not in pinned)
        for name, now, pin in counter_differences(counted, dict.fromkeys(unpinned, 0) | pinned):
            if now is None:
                yield Finding("missing", "pins", f"{cell} [{name}]", f"pinned at {pin}, and not counted here", command)
            else:
                hint = "fewer: pin it anew on purpose" if now < pin else "more"
                yield Finding("fail", "pins", f"{cell} [{name}]", f"{now:,} where {pin:,} is pinned ({hint})", command,
                              float(abs(now - pin)))
    for reason, cells in left_out.items():
        yield Finding("missing", "pins", f"{cells[0]} and {len(cells) - 1} more cells", f"pinned, but {reason}",
                      "build/cpu/bin/twinbench counters --tier full")


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
            subject, command = f"{row['cell']} [{name}]", reproduce_cell("counters", row["cell"])
            if value is None:
                yield Finding("missing", "counters", subject,
                              f"was {earlier:,} in the baseline record, and is not counted now", command)
                continue
            text = f"{value:,} where the baseline record has {earlier:,}"
            if other_tools:
                yield Finding("notice", "counters", subject, f"{text}, under another toolchain ({other_tools[0]})",
                              command)
            elif value > earlier and parse_cell(row["cell"]).variant == "optimized":
                yield Finding("fail", "counters", subject, text, command, float(value - earlier))
            else:
                yield Finding("notice", "counters", subject, text, command)
