"""Change points of a history: where the level of a series moved, by a clipped CUSUM with a permutation test."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twinbench_reports.statistics.order import Array, finite

LEAST_POINTS = 10  # fewer tell nothing
EACH_SIDE = 3  # points before a change and after it
SMALLEST = 0.02  # of the level, on natural logarithms: a smaller move is not named
ALPHA = 0.008
PERMUTATIONS = 999
CLIP = 1.25  # deviations from the running median of _WINDOW points
_WINDOW = 5
FEW = 10  # in a level of at most so many points, MOST of them must be AWAY from the other level: two spikes are none
MOST = 0.8
AWAY = SMALLEST / 1.9


class ChangePoint(NamedTuple):
    """`index` is the first point of the new level; `change` the step from the level before, medians of logarithms."""

    index: int
    change: float
    p: float


def change_points(log_values: ArrayLike) -> list[ChangePoint]:
    """Every change of level in a series of logarithms of times, first to last. Give one segment of one machine."""
    values = finite(log_values)
    found: dict[int, float] = {}
    _search(values, 0, len(values), found)
    edges = [0, *sorted(found), len(values)]
    levels = [float(np.median(values[first:last])) for first, last in zip(edges, edges[1:])]
    return [ChangePoint(index, after - before, found[index])
            for index, before, after in zip(edges[1:], levels, levels[1:])]


def _search(values: Array, first: int, last: int, found: dict[int, float]) -> None:
    part = values[first:last]
    if len(part) < LEAST_POINTS:
        return
    clipped = clip_spikes(part)
    statistic, split = _cusum(clipped)
    change = float(np.median(clipped[split:]) - np.median(clipped[:split]))
    if abs(change) < SMALLEST or not _ends_agree(part, int(split), change):
        return
    shuffled, _ = _cusum(clipped[permutations(len(part))])
    p = (1 + int((shuffled >= statistic).sum())) / (1 + PERMUTATIONS)
    if p > ALPHA:
        return
    found[first + int(split)] = p
    _search(values, first, first + split, found)
    _search(values, first + split, last, found)


def _ends_agree(part: Array, split: int, change: float) -> bool:
    """A short level is one only if its points left the other level, not a few of them alone."""
    before, after = part[:split], part[split:]
    short, long = (before, after) if len(before) < len(after) else (after, before)
    direction = np.sign(change) * (1 if short is after else -1)
    return len(short) > FEW or bool((direction * (short - np.median(long)) > AWAY).mean() >= MOST)


def clip_spikes(values: ArrayLike) -> Array:
    """Each value within CLIP deviations of the running median of five; the deviation from successive differences."""
    series = finite(values)
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(series, _WINDOW // 2, mode="reflect"), _WINDOW)
    running = np.median(windows, axis=-1)
    deviation = np.median(np.abs(np.diff(series))) / (0.6744897501960817 * np.sqrt(2))
    return np.clip(series, running - CLIP * deviation, running + CLIP * deviation)


@functools.cache
def permutations(n: int) -> NDArray[np.intp]:
    """The same shuffles for every series of n points, so that a verdict never changes on rereading."""
    rng = np.random.default_rng(n)
    return np.argsort(rng.random((PERMUTATIONS, n)), axis=1)


def _cusum(values: Array) -> tuple[Array, NDArray[np.intp]]:
    """Along the last axis: the largest standardised gap of the cumulative sum from its chord, and where it is."""
    n = values.shape[-1]
    splits = np.arange(EACH_SIDE, n - EACH_SIDE + 1)
    sums = np.cumsum(values, axis=-1)
    before = sums[..., EACH_SIDE - 1:n - EACH_SIDE]  # up to each split
    gaps = np.abs(before - splits / n * sums[..., -1:]) / np.sqrt(splits * (n - splits) / n)
    best = gaps.argmax(axis=-1)
    return np.take_along_axis(gaps, np.expand_dims(best, -1), axis=-1)[..., 0], splits[best]
