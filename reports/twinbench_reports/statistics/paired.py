"""The estimate of a paired ratio from its log ratios, as the C++ harness makes it: block medians and exact interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from twinbench_reports.statistics import order, sign_test

DEPENDENT = 0.2  # lag-1 autocorrelation from which pairs carry less than they seem to
LARGEST_BLOCK = 8


class Estimate(NamedTuple):
    """Natural logarithms: the median, its interval (null with too few values) and what they rest on."""

    log_ratio: float
    interval: tuple[float, float] | None
    count: int
    block_size: int
    autocorrelation: float | None


def estimate_ratio(log_ratios: Sequence[float], confidence: float) -> Estimate:
    """Pairs that lean on their neighbours give way to medians of 2, 4 or 8; what dependence is left widens the
    interval by sqrt((1 + r) / (1 - r))."""
    values = [float(value) for value in order.finite(log_ratios)]
    needed, block = sign_test.minimum_count(confidence), 1
    first = correlation = order.lag_one_autocorrelation(values)
    dependent = correlation is not None and abs(correlation) > DEPENDENT
    while dependent and block < LARGEST_BLOCK and len(log_ratios) // (2 * block) >= needed:
        block *= 2
        values = _block_medians(log_ratios, block)
        correlation = order.lag_one_autocorrelation(values)
        dependent = correlation is not None and abs(correlation) > max(DEPENDENT, 2 / math.sqrt(len(values)))
    centre = float(order.median(values))
    found = sign_test.interval(values, confidence)
    if found and dependent and correlation is not None and correlation > 0:
        r = min(correlation, 0.95)
        factor = math.sqrt((1 + r) / (1 - r))
        found = centre - factor * (centre - found[0]), centre + factor * (found[1] - centre)
    return Estimate(centre, found, len(values), block, first)


def _block_medians(values: Sequence[float], size: int) -> list[float]:
    return [float(order.median(values[start:start + size])) for start in range(0, len(values) - size + 1, size)]
