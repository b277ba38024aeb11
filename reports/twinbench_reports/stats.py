"""The few statistics that judging and reporting need. Measuring statistics live in the harness, beside the samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

Z95 = 1.959963984540054  # half width of a 95 % normal interval, in standard deviations
_MDE_FACTOR = 2.5758 + 1.2816  # one-sided alpha 0.005 and power 0.9


class Change(NamedTuple):
    """A ratio against an earlier ratio, as natural logarithms: negative is a loss."""

    estimate: float
    lower: float
    upper: float

    @property
    def percent(self) -> float:
        return 100 * math.expm1(self.estimate)


def log_change(now: tuple[float, float, float], before: tuple[float, float, float]) -> Change:
    """The change between two (ratio, lower, upper) triples measured independently.

    Half widths add in quadrature, each side with the sides that push that way, so that skewed intervals stay skewed.
    """
    ratio, lower, upper = (math.log(value) for value in now)
    ratio_before, lower_before, upper_before = (math.log(value) for value in before)
    estimate = ratio - ratio_before
    down = math.hypot(ratio - lower, upper_before - ratio_before)
    up = math.hypot(upper - ratio, ratio_before - lower_before)
    return Change(estimate, estimate - down, estimate + up)


def loss_p_value(change: Change) -> float:
    """One-sided p for "no loss", taking the interval for a 95 % normal one."""
    deviation = (change.upper - change.estimate) / Z95
    if deviation <= 0:
        return 0.0 if change.estimate < 0 else 1.0
    return 0.5 * math.erfc(-change.estimate / deviation / math.sqrt(2))


def benjamini_hochberg(p_values: Sequence[float], rate: float = 0.05) -> list[bool]:
    """Which hypotheses are rejected at the false discovery rate, over every one tested."""
    count = len(p_values)
    order = sorted(range(count), key=lambda index: p_values[index])
    last = max((rank for rank, index in enumerate(order, 1) if p_values[index] <= rate * rank / count), default=0)
    rejected = [False] * count
    for index in order[:last]:
        rejected[index] = True
    return rejected


def rate_at_most(events: int, n: int, confidence: float = 0.95) -> float:
    """The largest rate that so few events in n leave possible: Clopper and Pearson's one-sided bound."""
    if events >= n:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(100):
        middle = (low + high) / 2
        few = sum(math.comb(n, k) * middle**k * (1 - middle)**(n - k) for k in range(events + 1))
        low, high = (middle, high) if few > 1 - confidence else (low, middle)
    return high


def geometric_mean(values: Sequence[float]) -> float | None:
    """The mean that treats 2x and 0.5x alike; null for nothing."""
    return float(np.exp(np.mean(np.log(np.asarray(values, dtype=float))))) if len(values) else None


def minimum_detectable(log_ratios: Sequence[float | None]) -> float | None:
    """The smallest slowdown (a fraction) that these pairs would have shown with power 0.9."""
    values = np.asarray([value for value in log_ratios if value is not None], dtype=float)
    if len(values) < 3:
        return None
    return float(math.expm1(_MDE_FACTOR * np.std(values, ddof=1) / math.sqrt(len(values))))
