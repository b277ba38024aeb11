"""Many tests at once: how many may be false alarms, over every hypothesis that was tested, shown or not."""

from __future__ import annotations

import math
from collections.abc import Sequence


def benjamini_hochberg(p_values: Sequence[float], rate: float = 0.05) -> list[bool]:
    """Which hypotheses are rejected with at most this share of false ones among them."""
    adjusted = adjusted_rates(p_values)
    return [value <= rate for value in adjusted]


def adjusted_rates(p_values: Sequence[float]) -> list[float]:
    """For each p the smallest false discovery rate at which Benjamini and Hochberg's rule rejects it."""
    count = _checked(p_values)
    order = sorted(range(count), key=lambda index: p_values[index])
    adjusted, least = [1.0] * count, 1.0
    for place in range(count, 0, -1):
        least = min(least, p_values[order[place - 1]] * count / place)
        adjusted[order[place - 1]] = least
    return adjusted


def holm(p_values: Sequence[float]) -> list[float]:
    """For each p the smallest chance of any false alarm at all at which Holm's rule rejects it."""
    count = _checked(p_values)
    order = sorted(range(count), key=lambda index: p_values[index])
    adjusted, largest = [1.0] * count, 0.0
    for place, index in enumerate(order):
        largest = max(largest, min(1.0, (count - place) * p_values[index]))
        adjusted[index] = largest
    return adjusted


def _checked(p_values: Sequence[float]) -> int:
    for p in p_values:
        if math.isnan(p) or not 0 <= p <= 1:
            raise ValueError(f"p = {p}: give probabilities")
    return len(p_values)


def rate_at_most(events: int, n: int, confidence: float = 0.95) -> float:
    """The largest rate that so few events in n leave possible: Clopper and Pearson's one-sided bound."""
    if events >= n:
        return 1.0
    choose = [math.log(math.comb(n, k)) for k in range(events + 1)]
    low, high = 0.0, 1.0
    for _ in range(100):
        middle = (low + high) / 2
        few = sum(math.exp(ways + k * math.log(middle) + (n - k) * math.log1p(-middle))
                  for k, ways in enumerate(choose))
        low, high = (middle, high) if few > 1 - confidence else (low, middle)
    return high

