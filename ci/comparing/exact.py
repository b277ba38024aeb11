"""What needs no clock: counters, instructions, accesses of kernels, modelled times and kernel budgets of both sides.

More of anything in an optimized variant fails, whatever the machine does meanwhile: there is no tolerance.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from comparing.side import Side
from twinbench_reports.judge import causes
from twinbench_reports.judge.completeness import one_part_differs
from twinbench_reports.judge.findings import Finding
from twinbench_reports.load import parse_json, read_bytes

Numbers = dict[str, float]  # by name of the counter
Cells = dict[str, Numbers]

# Maps that say which operators or kernels were called: they explain a total and are not judged beside it.
_EXPLAINING = ("by_name", "forward_calls_by_name", "launches_by_kernel", "products_by_shape", "process_calls")
# Of a kernel: its shape and what it would need at least, and the share, which follows from the time.
_NEUTRAL = ("blocks", "threads", "ideal", "floor_share", "limiter", "warps_per_sm", "most_warps_per_sm")
LIMIT_S = 3600.0
# A count that does not repeat (where memory lies decides some instructions of LibTorch's) is judged where both sides
# are apart by so many times what it moves by.
MOST_SPREADS = 10
# What head's count may move by where base's moves less: 20 instructions of 600,000 are seen of the same program. Work
# that is done in some runs only moves it by more, and is no reason to judge nothing.
MOST_MOVED = 1e-3


def flat(value: Mapping[str, Any], prefix: str = "") -> Numbers:
    """Nested counters as one map; numbers in quotes are numbers."""
    found: Numbers = {}
    for key, entry in value.items():
        if isinstance(entry, Mapping):
            if key not in _EXPLAINING:
                found |= flat(entry, f"{prefix}{key}.")
        elif key not in _NEUTRAL and not isinstance(entry, bool):
            try:
                found[prefix + key] = float(entry)
            except (TypeError, ValueError):
                continue  # words, such as what limits a kernel
    return found


def counters(side: Side, pattern: str, device: str) -> Cells:
    """Dispatches, reads, copies and allocations of every cell."""
    found = side.pins("counters", ["--filter", pattern, "--device", device], LIMIT_S) or {}
    return {cell: flat(values) for cell, values in found.items()}


def instructions(side: Side, pattern: str, device: str = "cpu") -> Cells:
    """Instructions of one run of a small CPU cell of each kind, of one thread."""
    machines = side.pins("instructions", ["--filter", pattern], LIMIT_S) or {}
    # Up to November 2026 a pin was [instructions, those outside operators].
    return {cell: {"instructions": float(count[0] if isinstance(count, list) else count)}
            for cells in machines.values() for cell, count in cells.items()}


def kernels(side: Side, pattern: str, device: str = "simt") -> Cells:
    """Accesses of every kernel as counted on the host, and the modelled times."""
    found = side.pins("kernels", ["--filter", pattern], LIMIT_S) or {}
    return {cell: flat(values) for cell, values in found.get("cells", {}).items()}


def coverage(base: Side, head: Side) -> Iterator[Finding]:
    """A failure for every line of base's ci/coverage.txt that head's has not: what was checked, and is no longer."""
    now, file = _lines(head), "ci/coverage.txt"
    for line in sorted(_lines(base) - now):
        yield Finding("fail", "coverage", line, f"base's {file} lists it, head's does not: bring it back, or excuse it "
                      "in --waivers", f"git diff {base.root.name} {head.root.name} -- {file}", 1.0)


def _lines(side: Side) -> set[str]:
    file = side.root / "ci" / "coverage.txt"
    return set(read_bytes(file).decode(errors="replace").splitlines()) if file.is_file() else set()


def budgets(side: Side) -> Cells:
    """Registers, spills and shared memory of every kernel and architecture, as the tree has them pinned."""
    file = side.root / "ci" / "kernel_budgets.json"
    if not file.is_file():
        return {}
    root = parse_json(read_bytes(file), str(file))
    kernels = root.get("kernels", root)
    return {kernel: flat(by) for kernel, by in kernels.items() if isinstance(by, Mapping)}


def compare(kind: str, base: Cells, head: Cells, reproduce: Callable[[str], str]) -> Iterator[Finding]:
    """A finding for every cell that counts something else, is gone, is new or has another name."""
    gone, new = [cell for cell in base if cell not in head], [cell for cell in head if cell not in base]
    for cell in list(gone):
        twin = next((other for other in new if head[other] == base[cell] and one_part_differs(cell, other)), None)
        if twin:
            gone.remove(cell)
            new.remove(twin)
            yield Finding("notice", kind, twin, f"renamed: it was {cell}, and counts the same")
    for cell in gone:
        yield Finding("missing", kind, cell, "vanished: base counts it, head does not", reproduce(cell))
    for cell in new:
        yield Finding("notice", kind, cell, "new: base does not have it")
    for cell in sorted(base.keys() & head.keys()):
        yield from _differences(kind, cell, base[cell], head[cell], reproduce(cell))


def _differences(kind: str, cell: str, base: Numbers, head: Numbers, command: str) -> Iterator[Finding]:
    worse, other = [], []
    for name in sorted(base.keys() | head.keys()):
        before, now = base.get(name, 0.0), head.get(name, 0.0)
        if before == now:
            continue
        share = f" ({now / before - 1:+.1%})" if before else ""
        (worse if now > before else other).append((name, f"{name} {before:,.10g} -> {now:,.10g}{share}",
                                                   now / before - 1 if before else None))
    if not worse and not other:
        return
    text = "; ".join(line for _, line, _ in [*worse, *other])
    judged = re.search(r"/(baseline|library)/", cell) is None  # the others are not ours to speed up
    if worse and judged:
        sizes = [size for _, _, size in worse if size is not None]
        yield Finding("fail", kind, cell, f"more: {text}", command, max(sizes, default=None),
                      cause=causes.of_counters(name for name, _, _ in worse))
    else:
        yield Finding("notice", kind, cell, f"{'changed' if worse else 'fewer'}: {text}")



def count_twice(base: Side, head: Side, pattern: str,
                reproduce: Callable[[str], str]) -> tuple[Cells, Cells, list[Finding]]:
    """Instructions of both sides. What went up is counted again. A number that does not repeat is judged by the least
    difference of both sides where that is many times its spread. Else it fails where head's moves by much more than
    base's, and is named, not judged, where both move; what a side does not count again is missing."""
    first = instructions(base, pattern), instructions(head, pattern)
    moved = [cell for cell in first[0].keys() & first[1].keys()
             if first[1][cell]["instructions"] > first[0][cell]["instructions"]]
    notes: list[Finding] = []
    if moved:
        chosen = "^(" + "|".join(map(re.escape, sorted(moved))) + ")$"
        again = instructions(base, chosen), instructions(head, chosen)
        for cell in sorted(moved):
            counts = [[side[cell]["instructions"] for side in sides if cell in side] for sides in zip(first, again)]
            spreads = [max(both) - min(both) for both in counts]
            spread = max(spreads)
            lost = [side.name for side, both in zip((base, head), counts) if len(both) < 2]
            if spread == 0 and not lost:
                continue
            said = " ".join(f"{side.name} {' then '.join(f'{count:,.0f}' for count in both)}{mark}"
                            for side, both, mark in zip((base, head), counts, (",", "")))
            if not lost and min(counts[1]) - max(counts[0]) > MOST_SPREADS * spread:
                first[0][cell], first[1][cell] = {"instructions": max(counts[0])}, {"instructions": min(counts[1])}
                notes.append(Finding("notice", "instructions", cell, f"does not repeat: {said}; the least difference "
                                     "is judged"))
                continue
            if lost:
                notes.append(Finding("missing", "instructions", cell,
                                     f"went up, and {' and '.join(lost)} did not count it again", reproduce(cell)))
            elif spreads[1] > max(MOST_SPREADS * spreads[0], MOST_MOVED * max(counts[0])):
                notes.append(Finding("fail", "instructions", cell, f"no longer repeats as in base: {said}",
                                     reproduce(cell), spreads[1] / max(counts[0])))
            else:
                notes.append(Finding("notice", "instructions", cell, f"does not repeat, so it is not judged: {said}"))
            for side in first:
                side.pop(cell, None)
    return *first, notes
