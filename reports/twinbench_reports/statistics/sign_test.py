"""The sign test's interval on a median, which assumes independence only; and what it can detect. As the C++ harness."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from twinbench_reports.statistics.order import finite


@functools.cache
def rank(n: int, confidence: float) -> int:
    """r of [x_(r), x_(n + 1 - r)]: the largest whose coverage 1 - 2 P(Binomial(n, 1/2) < r) reaches the confidence."""
    _probability("confidence", confidence)
    log_term, below, found = -n * math.log(2), 0.0, 0
    while 2 * found < n:
        below += math.exp(log_term)
        if 2 * below > 1 - confidence:
            break
        log_term += math.log((n - found) / (found + 1))
        found += 1
    return found


def minimum_count(confidence: float) -> int:
    """The smallest n for which an interval exists: 6 at 0.95, 8 at 0.99."""
    n = 1
    while rank(n, confidence) == 0:
        n += 1
    return n


def interval(values: ArrayLike, confidence: float = 0.99) -> tuple[float, float] | None:
    """The interval on the median; null below minimum_count."""
    array = np.asarray(values, dtype=float)
    found = rank(array.shape[-1], confidence)
    if found == 0:
        return None
    ordered = np.sort(finite(array))
    return float(ordered[found - 1]), float(ordered[len(ordered) - found])


def minimum_detectable(n: int, deviation: float, confidence: float = 0.99, power: float = 0.9) -> float | None:
    """The shift that the two-sided test finds with that power in n values of normal noise; null where none exists."""
    _probability("power", power)
    if not (math.isfinite(deviation) and deviation >= 0):
        raise ValueError(f"deviation {deviation}: give a finite one >= 0")
    found = rank(n, confidence)
    if found == 0:
        return None
    # Found when at most found - 1 values lie on the wrong side: when more than n - found of n lie on the right one.
    p = root_of_decreasing(1e-12, 1 - 1e-12, lambda chance: _binomial_cumulative(n - found, n, chance) - (1 - power))
    return deviation * normal_quantile(p)


def _probability(field: str, value: float) -> None:
    if not 0 < value < 1:
        raise ValueError(f"{field} {value}: give a probability between 0 and 1")


def _binomial_cumulative(k: int, n: int, p: float) -> float:
    log_odds, log_term, total = math.log(p) - math.log1p(-p), n * math.log1p(-p), 0.0
    for i in range(min(k, n) + 1):
        total += math.exp(log_term)
        log_term += (math.log((n - i) / (i + 1)) if i < n else -math.inf) + log_odds
    return min(total, 1.0)


def root_of_decreasing(low: float, high: float, function: Callable[[float], float], steps: int = 200) -> float:
    """Where the decreasing function is zero: to the last bit, or to so many halvings of the range."""
    for _ in range(steps):
        middle = low + (high - low) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if function(middle) > 0 else (low, middle)
    return low + (high - low) / 2


def normal_quantile(p: float) -> float:
    """Phi^-1(p)."""
    return root_of_decreasing(-40.0, 40.0, lambda x: p - 0.5 * math.erfc(-x / math.sqrt(2)))
