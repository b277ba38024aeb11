"""The change between two published speedups, against worked values."""

from __future__ import annotations

import math

import numpy as np
import pytest

from twinbench_reports.statistics.multiple import benjamini_hochberg
from twinbench_reports.statistics.speedups import geometric_mean, log_change, loss_p_value, minimum_detectable


def test_change_of_equal_ratios_is_nothing():
    change = log_change((2, 1.9, 2.1), (2, 1.9, 2.1))
    assert change.estimate == 0 and change.lower < 0 < change.upper


def test_half_widths_add_in_quadrature():
    change = log_change((math.exp(1), math.exp(1 - 0.03), math.exp(1 + 0.03)), (1, math.exp(-0.04), math.exp(0.04)))
    assert change.estimate == pytest.approx(1)
    assert change.upper - change.estimate == pytest.approx(0.05)
    assert change.estimate - change.lower == pytest.approx(0.05)
    skewed = log_change((math.e, math.exp(1 - 0.03), math.exp(1 + 0.05)), (1, math.exp(-0.12), math.exp(0.04)))
    assert skewed.estimate - skewed.lower == pytest.approx(0.05), "less: what now lay below and before above"
    assert skewed.upper - skewed.estimate == pytest.approx(0.13)


def test_p_value_is_a_half_without_change_and_small_for_a_loss():
    same, loss = log_change((2, 1.9, 2.1), (2, 1.9, 2.1)), log_change((1, 0.98, 1.02), (2, 1.9, 2.1))
    assert loss_p_value(same) == pytest.approx(0.5)
    assert loss_p_value(loss) < 1e-9
    assert loss_p_value(log_change((1, 1, 1), (2, 2, 2))) == 0 and loss_p_value(log_change((2, 2, 2), (1, 1, 1))) == 1


def test_false_regressions_are_rare_on_unchanged_speedups():
    rng = np.random.default_rng(11)
    alarms = 0
    for _ in range(200):
        changes = []
        for _ in range(30):
            now, before = np.exp(rng.normal(0, 0.02, 2))
            half = math.exp(0.02 * 1.96)
            changes.append(log_change((now, now / half, now * half), (before, before / half, before * half)))
        flags = benjamini_hochberg([loss_p_value(change) for change in changes])
        alarms += any(flag and change.upper < 0 and change.estimate <= math.log1p(-0.03)
                      for flag, change in zip(flags, changes))
    assert alarms <= 20  # 5 % of runs of 30 pairs, with the slack of 200 trials


def test_small_helpers():
    assert geometric_mean([2, 0.5]) == pytest.approx(1) and geometric_mean([]) is None
    assert minimum_detectable([]) is None and minimum_detectable([0.1, 0.1]) is None
    # Quartiles -0.01 and 0.01, so a deviation of 0.02 / 1.349; the C++ harness's worked value for 12 pairs of 0.01.
    pairs = [0.01, -0.01] * 6
    assert minimum_detectable(pairs + [None]) == pytest.approx(
        math.expm1(0.01692863626080416 * 2 / 1.3489795003921634), rel=1e-9)
