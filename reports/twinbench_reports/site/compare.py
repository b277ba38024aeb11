"""The change between two runs of one machine: speedups by their intervals, counts exactly, times for what they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from twinbench_reports.judge.timing import BLIND, SMALLEST_LOSS
from twinbench_reports.render import numbers
from twinbench_reports.statistics.speedups import log_change
from twinbench_reports.store.run import Run

WORDS = ("worse", "unclear", "better", "same")


@dataclass(frozen=True)
class Change:
    """One row. `change` is a fraction, for speedups a loss is negative; its interval only where there is one."""

    kind: str  # speedup, count, time
    name: str
    before: str
    after: str
    change: float | None
    interval: str
    word: str  # of WORDS; times alone have none: two sessions are not paired

    @property
    def rank(self) -> tuple[int, float, str]:
        size = 0.0 if self.change is None else abs(self.change)
        return (WORDS.index(self.word) if self.word else len(WORDS), -size, self.name)


def changes(before: Run, after: Run) -> list[Change]:
    """What both runs hold, worst first."""
    if before.machine != after.machine:
        raise ValueError("times of two machines are never compared")
    rows = [_speedup(name, before.ratios[name], after.ratios[name]) for name in after.ratios if name in before.ratios]
    rows += [_count(name, before.counts[name], after.counts[name]) for name in after.counts if name in before.counts]
    rows += [_time(name, before.points[name], after.points[name]) for name in after.points
             if name in before.points and (after.source != "twinbench" or "/optimized/" in name)]
    return sorted(rows, key=lambda row: row.rank)


def _speedup(name: str, before: Sequence[float], after: Sequence[float]) -> Change:
    found = log_change(tuple(after), tuple(before))
    beyond = found.estimate <= math.log1p(-SMALLEST_LOSS)
    if beyond and found.upper < 0:
        word = "worse"
    elif beyond or found.lower <= math.log1p(-BLIND * SMALLEST_LOSS):
        word = "unclear"
    else:
        word = "better" if found.estimate >= -math.log1p(-SMALLEST_LOSS) and found.lower > 0 else "same"
    lower, upper = (f"{100 * math.expm1(end):+.1f}" for end in (found.lower, found.upper))
    return Change("speedup", name, numbers.ratio(before[0]), numbers.ratio(after[0]), math.expm1(found.estimate),
                  f"[{lower}, {upper}]", word)


def _count(name: str, before: float, after: float) -> Change:
    counter = name.rpartition("[")[2].rstrip("]")
    word = "same" if after == before else "worse" if after > before else "better"
    return Change("count", name, numbers.counter(counter, before), numbers.counter(counter, after),
                  after / before - 1 if before else None, "", word)


def _time(name: str, before: float, after: float) -> Change:
    return Change("time", name, numbers.seconds(before), numbers.seconds(after), after / before - 1, "", "")


def data(runs: Sequence[Run]) -> dict[str, Any]:
    """The runs as the page's script reads them, to compare any two: names once, values by run."""
    ratios = sorted({name for run in runs for name in run.ratios})
    counts = sorted({name for run in runs for name in run.counts})
    times = sorted({name for run in runs for name in run.points if run.source != "twinbench" or "/optimized/" in name})
    return {
        "smallest": SMALLEST_LOSS, "blind": BLIND, "ratios": ratios, "counts": counts, "times": times, "runs": [{
            "ratios": [[_short(value) for value in run.ratios[name]] if name in run.ratios else 0 for name in ratios],
            "counts": [run.counts.get(name, -1) for name in counts],
            "times": [_short(run.points.get(name, 0)) for name in times]} for run in runs]}


def _short(value: float) -> float:
    """Six digits: a page for a hundred runs stays small."""
    return float(f"{value:.6g}")
