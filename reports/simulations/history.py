"""Error rates of the change points of a history: quiet series, and series with one step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from simulations import noise
from twinbench_reports.statistics.change_points import change_points

QUIET_POINTS = 50
POINTS_BEFORE = 40


def false_alarms(kind: str, deviation: float, series: int, seed: int = 1) -> int:
    """Of so many quiet series of 50 points, those in which any change is named."""
    rng = np.random.default_rng([seed, noise.KINDS.index(kind), round(1e5 * deviation)])
    return sum(bool(change_points(row)) for row in noise.draw(kind, deviation, (series, QUIET_POINTS), rng))


class Found(NamedTuple):
    """Of so many series with a step, those in which a change is named, and is named within one run of the step."""

    series: int
    named: int
    located: int


def step(kind: str, deviation: float, change: float, after: int, series: int, seed: int = 1) -> Found:
    """40 quiet points, then `after` points at another level (a change on logarithms)."""
    rng = np.random.default_rng([seed, noise.KINDS.index(kind), round(1e5 * deviation), round(1e5 * change), after])
    rows = noise.draw(kind, deviation, (series, POINTS_BEFORE + after), rng)
    rows[:, POINTS_BEFORE:] += change
    found = [change_points(row) for row in rows]
    near = sum(any(abs(point.index - POINTS_BEFORE) <= 1 for point in points) for points in found)
    return Found(series, sum(map(bool, found)), near)
