"""Wilcoxon's signed-rank test and its interval, exact at any n, with ties and zeros."""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.typing import ArrayLike

from twinbench_reports.statistics.order import Array, finite, walsh_averages
from twinbench_reports.statistics.sign_test import root_of_decreasing


@functools.cache
def upper_tail(n: int) -> Array:
    """P(W >= w) for w = 0 .. n (n + 1) / 2, W the sum of the ranks 1 .. n whose coin shows heads."""
    return _tail(tuple(range(1, n + 1)))


def _tail(ranks: tuple[int, ...]) -> Array:
    chances = np.ones(1)
    for rank in ranks:
        longer = np.zeros(len(chances) + rank)
        longer[:len(chances)] += chances
        longer[rank:] += chances
        chances = longer / 2
    return np.cumsum(chances[::-1])[::-1]


def p_greater(values: ArrayLike, shift: float = 0.0) -> Array:
    """One-sided p for "the centre is at most `shift`": small where the values lie above it. Along the last axis.

    Zeros are left out (Wilcoxon's rule). With ties the ranks are means, and p is exact given those ranks.
    """
    rows = finite(values) - shift
    flat = rows.reshape(-1, rows.shape[-1])
    sizes = np.abs(flat)
    order = np.argsort(sizes, axis=1)
    sizes = np.take_along_axis(sizes, order, axis=1)
    plain = (sizes[:, 0] > 0) & (sizes[:, 1:] > sizes[:, :-1]).all(axis=1)
    p = np.ones(len(flat))
    if plain.any():
        positive = np.take_along_axis(flat > 0, order, axis=1)[plain]
        p[plain] = upper_tail(flat.shape[1])[positive @ np.arange(1, flat.shape[1] + 1)]
    for index in np.flatnonzero(~plain):
        p[index] = _p_with_ties(flat[index])
    return np.minimum(p, 1).reshape(rows.shape[:-1])


def p_less(values: ArrayLike, shift: float = 0.0) -> Array:
    """One-sided p for "the centre is at least `shift`"."""
    return p_greater(-finite(values), -shift)


def _p_with_ties(values: Array) -> float:
    values = values[values != 0]
    if not len(values):
        return 1.0
    sizes = np.abs(values)
    _, place, counts = np.unique(sizes, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    doubled = (2 * last - counts + 1)[place]  # twice the mean rank: a whole number
    return float(_tail(tuple(int(rank) for rank in doubled))[int(doubled[values > 0].sum())])


@functools.cache
def interval_rank(n: int, confidence: float) -> int:
    """k of the interval [A_(k), A_(M + 1 - k)] of the M ordered pairwise means; 0: none exists for so few values."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence {confidence}: give a probability between 0 and 1")
    # P(W <= k - 1) = P(W >= M - k + 1) by symmetry.
    tail = upper_tail(n)[::-1]
    return int(np.searchsorted(tail, (1 - confidence) / 2 * (1 + 1e-12), side="right"))


def interval(values: ArrayLike, confidence: float) -> tuple[Array, Array] | None:
    """The two-sided interval on the centre that belongs to the test; null where n is too small for the confidence."""
    array = finite(values)
    rank = interval_rank(array.shape[-1], confidence)
    if rank == 0:
        return None
    means = walsh_averages(array)
    last = means.shape[-1]
    means = np.partition(means, (rank - 1, last - rank), axis=-1)
    return means[..., rank - 1], means[..., last - rank]


@functools.cache
def detectable_shift(n: int, alpha: float, power: float) -> float | None:
    """The shift, in standard deviations of normal noise, that p_greater <= alpha finds with that power.

    From 4,000 samples of a fixed seed, to about 2 %. null where n values can never give so small a p.
    """
    if math.ldexp(1.0, -n) > alpha:
        return None
    samples = np.random.default_rng(20).normal(0, 1, (4000, n))
    return root_of_decreasing(0.0, 16.0, lambda shift: power - float((p_greater(samples + shift) <= alpha).mean()), 12)
