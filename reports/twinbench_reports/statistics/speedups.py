"""What becomes of published speedups: the change between two, their mean, and what their pairs could have shown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from twinbench_reports.statistics import order, sign_test

Z95 = 1.959963984540054  # half width of a 95 % normal interval, in standard deviations


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


def geometric_mean(values: Sequence[float]) -> float | None:
    """The mean that treats 2x and 0.5x alike; null for nothing."""
    return float(np.exp(np.mean(np.log(np.asarray(values, dtype=float))))) if len(values) else None


def minimum_detectable(log_ratios: Sequence[float | None], confidence: float = 0.99) -> float | None:
    """The smallest change (a fraction) that the interval of these pairs would have shown with power 0.9."""
    values = [value for value in log_ratios if value is not None]
    if not values:
        return None
    shift = sign_test.minimum_detectable(len(values), float(order.robust_deviation(values)), confidence)
    return None if shift is None else math.expm1(shift)
