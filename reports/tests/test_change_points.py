"""Change points: the statistic against loops, planted steps found, quiet, short and constant series left alone."""

from __future__ import annotations

import math
import os

import numpy as np
import pytest

from twinbench_reports.statistics import change_points as module
from twinbench_reports.statistics.change_points import change_points, clip_spikes

CASES = 1000 if os.environ.get("TWINBENCH_FULL_SIMULATIONS") else 200


def brute_force_cusum(values):
    n, best = len(values), (-1.0, 0)
    mean = math.fsum(values) / n
    for split in range(module.EACH_SIDE, n - module.EACH_SIDE + 1):
        gap = abs(math.fsum(value - mean for value in values[:split])) / math.sqrt(split * (n - split) / n)
        best = max(best, (gap, split), key=lambda pair: pair[0])
    return best


def test_cusum_agrees_with_brute_force():
    rng = np.random.default_rng(1)
    for _ in range(CASES):
        values = rng.normal(0, 1, int(rng.integers(10, 40)))
        gap, split = module._cusum(values)
        expected, at = brute_force_cusum(values)
        assert gap == pytest.approx(expected, abs=1e-12) and split == at


def test_clipping_agrees_with_brute_force():
    rng = np.random.default_rng(2)
    for _ in range(CASES):
        values = rng.standard_t(2, int(rng.integers(5, 40)))
        mirrored = [*values[2:0:-1], *values, *values[-2:-4:-1]]
        deviation = np.median([abs(b - a) for a, b in zip(values, values[1:])]) / (0.6744897501960817 * math.sqrt(2))
        for index, (value, clipped) in enumerate(zip(values, clip_spikes(values))):
            centre = sorted(mirrored[index:index + 5])[2]
            bound = module.CLIP * deviation
            assert clipped == pytest.approx(min(max(value, centre - bound), centre + bound), abs=1e-12)


def steps(rng, *levels, noise=0.01):
    return np.concatenate([rng.normal(level, noise, count) for level, count in levels])


def test_two_steps_are_both_named_where_they_are():
    found = change_points(steps(np.random.default_rng(3), (0, 30), (0.1, 30), (-0.05, 30)))
    assert [point.index for point in found] == [30, 60]
    assert [point.change for point in found] == pytest.approx([0.1, -0.15], abs=0.02)
    assert all(point.p <= module.ALPHA for point in found)


def test_a_step_is_named_from_its_third_point_on():
    series = steps(np.random.default_rng(4), (0, 40), (0.08, 3))
    assert change_points(series[:42]) == [] and [point.index for point in change_points(series)] == [40]


@pytest.mark.parametrize("near, of_five, agree", [(0.0104, 4, False), (0.0106, 4, True), (0.0106, 3, False)])
def test_most_points_of_a_short_level_have_left_the_other_one(near, of_five, agree):
    """By more than half of the smallest move that is named, and a little."""
    part = np.array([0.0] * 20 + [near] * of_five + [0.0] * (5 - of_five))
    for direction in (1, -1):
        assert module._ends_agree(direction * part, 20, direction * 0.03) is agree
        assert module._ends_agree(direction * part[::-1], 5, -direction * 0.03) is agree


def test_spikes_small_steps_and_constants_are_no_change():
    rng = np.random.default_rng(5)
    spiky = steps(rng, (0, 50))
    spiky[[10, 11, 30, 48, 49]] += 0.5
    assert change_points(spiky) == []
    assert change_points(steps(rng, (0, 30), (0.01, 30), noise=0.001)) == []  # certain, and below what is named
    assert change_points(np.zeros(50)) == [] and change_points(steps(rng, (0, 4), (1, 5))) == []


def test_a_verdict_does_not_change_on_rereading():
    series = steps(np.random.default_rng(6), (0, 25), (0.025, 25), noise=0.015)
    assert change_points(series) == change_points(series.copy())


def test_what_is_no_number_is_refused():
    with pytest.raises(ValueError):
        change_points([0.0] * 20 + [math.nan])
