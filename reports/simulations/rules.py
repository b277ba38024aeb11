"""How other tools call a benchmark slower, restated in our own words, each on the timings it would have taken.

A rule is given a stream of timings of one benchmark as they come in time and decides for every row of the stream. What
its tool does with the answer, its exit code, stands beside it. No code of any of the tools is here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from twinbench_reports.statistics import looks
from twinbench_reports.statistics.looks import RULE, SLOWER, UNDECIDED
from twinbench_reports.statistics.order import Array

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Outcome:
    """Which rows were called slower, which faster, and how many timings of both sides that took on average."""

    slower: Flags
    faster: Flags
    timings: float


# Takes ln(seconds), (trials, timings), and ln(slowdown), which it adds to what it takes as the second side's.
Decide = Callable[[Array, float], Outcome]


@dataclass(frozen=True)
class Other:
    """A tool's rule: whether it looks at a comparison or at a history, and its exit codes."""

    name: str
    decide: Decide
    history: bool
    exit_slower: str
    exit_faster: str


def _sides(logs: Array, slowdown: float, n: int) -> tuple[Array, Array]:
    """One side after the other, as seconds."""
    return np.exp(logs[:, :n]), np.exp(logs[:, n:2 * n] + slowdown)


def _rank_p(one: Array, other: Array) -> Array:
    return stats.mannwhitneyu(one, other, alternative="two-sided", method="asymptotic", axis=1).pvalue


def asv(logs: Array, slowdown: float) -> Outcome:
    """asv continuous: a rank test at p < 0.002, and the medians differ by the factor 1.1."""
    base, head = _sides(logs, slowdown, 20)
    ratio, sure = np.median(head, axis=1) / np.median(base, axis=1), _rank_p(base, head) < 0.002
    return Outcome(sure & (ratio > 1.1), sure & (ratio < 1 / 1.1), 40)


def google_benchmark(logs: Array, slowdown: float) -> Outcome:
    """compare.py: a rank test over the repetitions at 0.05, whatever the size."""
    base, head = _sides(logs, slowdown, 20)
    sure, later = _rank_p(base, head) < 0.05, np.median(head, axis=1) > np.median(base, axis=1)
    return Outcome(sure & later, sure & ~later, 40)


def nvbench(logs: Array, slowdown: float) -> Outcome:
    """The first comparer: the means differ by more than the smaller relative deviation of the two."""
    base, head = _sides(logs, slowdown, 20)
    change = head.mean(1) / base.mean(1) - 1
    noise = np.minimum(*(side.std(1, ddof=1) / side.mean(1) for side in (base, head)))
    return Outcome(change > noise, change < -noise, 40)


def nvbench_robust(logs: Array, slowdown: float) -> Outcome:
    """The later comparer: [least, third quartile] of the two at least 0.5 % apart; above 2 % of spread it is silent."""
    base, head = _sides(logs, slowdown, 20)
    low = [side.min(1) for side in (base, head)]
    high = [np.percentile(side, 75, axis=1) for side in (base, head)]
    calm = np.maximum(high[0] / low[0], high[1] / low[1]) < 1 + 2 * 0.02
    return Outcome(calm & (low[1] > high[0] * 1.005), calm & (low[0] > high[1] * 1.005), 40)


def criterion(logs: Array, slowdown: float) -> Outcome:
    """A t-test of the means at 0.05 and the 95 % interval of the change beyond 1 %; its bootstrap taken as normal."""
    base, head = _sides(logs, slowdown, 100)
    means = [side.mean(1) for side in (base, head)]
    error = [side.std(1, ddof=1) / side.mean(1) / 10 for side in (base, head)]
    change = means[1] / means[0] - 1
    width = 1.96 * np.hypot(*error) * (1 + change)
    return Outcome(change - width > 0.01, change + width < -0.01, 200)


def rustc_perf(logs: Array, slowdown: float) -> Outcome:
    """One value a commit: the change from the parent beyond Q3 + 3 IQR of the last 30 changes, at least 0.2 %."""
    series = _last_is_slower(logs[:, :32], slowdown, 1)
    steps = np.diff(series, axis=1)
    first, third = np.percentile(np.abs(steps[:, :-1]), [25, 75], axis=1)
    limit = np.maximum(third + 3 * (third - first), 0.002)
    return Outcome(steps[:, -1] > limit, steps[:, -1] < -limit, 1)


def otava(logs: Array, slowdown: float) -> Outcome:
    """A history of 50 points: the likeliest split, again within its parts, kept where a t-test gives p <= 0.001."""
    series = _last_is_slower(logs[:, :50], slowdown, 12)
    moves = np.array([_otava_row(np.exp(row)) for row in series])
    return Outcome(moves > 0, moves < 0, 1)


def _last_is_slower(logs: Array, slowdown: float, points: int) -> Array:
    series = logs.copy()
    series[:, -points:] += slowdown
    return series


def _otava_row(row: Array) -> float:
    """The change at the last split that is kept, or 0."""
    splits: list[int] = []
    _otava_split(row, 0, len(row), splits)
    while splits:
        edges = [0, *sorted(splits), len(row)]
        weak = [(_t_test(row[a:b], row[b:c]), b) for a, b, c in zip(edges, edges[1:], edges[2:])]
        worst, place = max(weak)
        if worst <= 0.001:
            break
        splits.remove(place)
    if not splits:
        return 0.0
    edges = [0, *sorted(splits)]
    return float(row[edges[-1]:].mean() / row[edges[-2]:edges[-1]].mean() - 1)


def _otava_split(row: Array, first: int, last: int, splits: list[int]) -> None:
    if last - first < 4:
        return
    part = row[first:last]
    apart = np.abs(part[:, None] - part[None, :])
    sums = np.cumsum(np.cumsum(apart, 0), 1)
    total, size = sums[-1, -1], len(part)
    places = np.arange(2, size - 1)
    left = sums[places - 1, places - 1]
    cross = sums[places - 1, -1] - left
    right = total - left - 2 * cross
    n, m = places, size - places
    within = left / np.maximum(n * (n - 1), 1) + right / np.maximum(m * (m - 1), 1)
    energy = n * m / size * (2 * cross / (n * m) - within)
    place = int(places[energy.argmax()])
    if _t_test(part[:place], part[place:]) <= 0.01:
        splits.append(first + place)
        _otava_split(row, first, first + place, splits)
        _otava_split(row, first + place, last, splits)


def _t_test(one: Array, other: Array) -> float:
    """Student's two-sided p, the spread pooled from deviations of the population, which understates short ends."""
    freedom = len(one) + len(other) - 2
    spread = sum((len(side) - 1) * side.var() for side in (one, other)) / freedom
    if not spread:
        return 1.0 if one.mean() == other.mean() else 0.0
    statistic = (one.mean() - other.mean()) / math.sqrt(spread * (1 / len(one) + 1 / len(other)))
    return float(2 * special.stdtr(freedom, -abs(statistic)))


def ours(logs: Array, slowdown: float, seed: int = 1) -> Outcome:
    """ci/compare_revisions: blocks A B B A or B A A B, looks at 10, 20 and 40, and 40 fresh blocks on a slowdown."""
    trials = len(logs)
    coin = np.where(np.random.default_rng(seed).random((trials, logs.shape[1] // 4)) < 0.5, 1, -1)
    four = logs[:, :4 * coin.shape[1]].reshape(trials, -1, 4)
    # One side has the outer two timings; the coin says which.
    blocks = coin * (four[..., [1, 2]].mean(-1) - four[..., [0, 3]].mean(-1)) + slowdown
    first, fresh = blocks[:, :RULE.looks[-1]], blocks[:, RULE.looks[-1]:RULE.looks[-1] + RULE.confirm_blocks]
    verdict, used = np.full(trials, UNDECIDED), np.zeros(trials)
    for look in RULE.looks:
        alive = verdict == UNDECIDED
        if alive.any():
            verdict[alive] = looks.judge(first[alive, :look])
            used[alive] = look
    slower = verdict == SLOWER
    if slower.any():
        verdict[slower] = looks.judge_fresh(fresh[slower])
        used[slower] += RULE.confirm_blocks
    return Outcome(verdict == SLOWER, verdict == looks.FASTER, float(4 * used.mean()))


TIMINGS = 4 * (RULE.looks[-1] + RULE.confirm_blocks)  # the most that a rule takes of a stream
RULES = (
    Other("ours, ci/compare_revisions", ours, False, "1", "0"),
    Other("asv continuous", asv, False, "1", "0"),
    Other("Google Benchmark compare.py", google_benchmark, False, "0", "0"),
    Other("nvbench, first comparer", nvbench, False, "count", "count"),
    Other("nvbench, robust comparer", nvbench_robust, False, "0", "0"),
    Other("criterion", criterion, False, "0", "0"),
    Other("rustc-perf, wall time", rustc_perf, True, "none", "none"),
    Other("Otava", otava, True, "0", "0"),
)
