"""Every statistic against SciPy, or against brute force where SciPy has no exact answer: 1e-12, 200 random cases, and
1,000 with TWINBENCH_FULL_SIMULATIONS=1."""

from __future__ import annotations

import itertools
import json
import math
import os

import interval_fixtures
import numpy as np
import pytest
from scipy import stats as scipy_stats

from twinbench_reports.statistics import multiple, order, paired, sign_test, signed_rank

CASES = 1000 if os.environ.get("TWINBENCH_FULL_SIMULATIONS") else 200
EXACT = 1e-12


def random_values(rng, n=None):
    """A sample of 1 to 24 values: continuous, with ties, with zeros, or constant."""
    n = n or int(rng.integers(1, 25))
    kind = rng.integers(0, 4)
    if kind == 0:
        return rng.normal(0.3, 1, n)
    if kind == 1:
        return rng.integers(-3, 5, n) / 4
    if kind == 2:
        return np.where(rng.random(n) < 0.4, 0.0, rng.normal(0, 1, n))
    return np.full(n, rng.choice([-0.5, 0.0, 0.25]))


def test_order_statistics_agree_with_scipy():
    rng = np.random.default_rng(1)
    for _ in range(CASES):
        values = random_values(rng)
        first, middle, third = np.percentile(values, [25, 50, 75])
        assert order.quartiles(values) == pytest.approx((first, middle, third), abs=EXACT)
        assert order.median(values) == pytest.approx(middle, abs=EXACT)
        assert order.robust_deviation(values) == pytest.approx(
            scipy_stats.iqr(values) / (2 * scipy_stats.norm.ppf(0.75)), abs=EXACT)
        means = [(a + b) / 2 for a, b in itertools.combinations_with_replacement(values, 2)]
        assert order.hodges_lehmann(values) == pytest.approx(np.median(means), abs=EXACT)
        assert sorted(order.walsh_averages(values)) == pytest.approx(sorted(means), abs=EXACT)


def test_autocorrelation_agrees_with_its_definition():
    rng = np.random.default_rng(2)
    for _ in range(CASES):
        values = random_values(rng)
        found = order.lag_one_autocorrelation(values)
        if len(values) < 3 or np.ptp(values) == 0:
            assert found is None
        else:
            d = [value - math.fsum(values) / len(values) for value in values]
            assert found == pytest.approx(
                math.fsum(a * b for a, b in zip(d, d[1:])) / math.fsum(a * a for a in d), abs=EXACT)


def brute_force_p(values):
    """P(the sum of positive ranks is at least what it is) over all signs, the ranks of SciPy."""
    values = [value for value in values if value != 0]
    if not values:
        return 1.0
    ranks = scipy_stats.rankdata(np.abs(values))
    seen = sum(rank for rank, value in zip(ranks, values) if value > 0)
    signs = np.array(list(itertools.product((0, 1), repeat=len(values))))
    return float((signs @ ranks >= seen - 1e-9).mean())


def test_signed_rank_p_agrees_with_scipy_without_ties():
    rng = np.random.default_rng(3)
    for _ in range(CASES):
        values = rng.normal(rng.normal(0, 0.5), 1, int(rng.integers(1, 60)))
        assert signed_rank.p_greater(values) == pytest.approx(
            scipy_stats.wilcoxon(values, alternative="greater", method="exact").pvalue, abs=EXACT)
        shift = rng.normal(0, 0.3)
        assert signed_rank.p_less(values, shift) == pytest.approx(
            scipy_stats.wilcoxon(values - shift, alternative="less", method="exact").pvalue, abs=EXACT)


def test_signed_rank_p_agrees_with_all_signs_where_there_are_ties_and_zeros():
    rng = np.random.default_rng(4)
    for _ in range(CASES):
        values = random_values(rng, int(rng.integers(1, 11)))
        assert signed_rank.p_greater(values) == pytest.approx(brute_force_p(values), abs=EXACT)
        assert signed_rank.p_less(values) == pytest.approx(brute_force_p(-values), abs=EXACT)


def test_signed_rank_takes_many_rows_at_once():
    rng = np.random.default_rng(5)
    rows = np.stack([random_values(rng, 12) for _ in range(200)])
    assert signed_rank.p_greater(rows) == pytest.approx([float(signed_rank.p_greater(row)) for row in rows], abs=EXACT)


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
def test_signed_rank_interval_is_the_set_of_centres_that_the_test_keeps(confidence):
    rng = np.random.default_rng(6)
    for _ in range(CASES // 3 + 1):
        values = rng.normal(0, 1, int(rng.integers(3, 15)))
        found = signed_rank.interval(values, confidence)
        means = np.sort(order.walsh_averages(values))
        centres = np.concatenate([(means[1:] + means[:-1]) / 2, [means[0] - 1, means[-1] + 1]])
        moved = values - centres[:, None]
        kept = centres[np.minimum(signed_rank.p_greater(moved), signed_rank.p_less(moved)) > (1 - confidence) / 2]
        if found is None:
            assert means[0] - 1 in kept and means[-1] + 1 in kept
            continue
        lower, upper = found
        assert all(lower <= centre <= upper for centre in kept)
        inner = [centre for centre in (means[1:] + means[:-1]) / 2 if lower <= centre <= upper]
        assert set(inner) <= set(kept)


def test_sign_test_interval_agrees_with_scipy():
    rng = np.random.default_rng(7)
    for _ in range(CASES):
        n, confidence = int(rng.integers(1, 130)), float(rng.choice([0.8, 0.9, 0.95, 0.99]))
        values = np.round(rng.normal(0, 1, n), int(rng.integers(1, 9)))
        below = scipy_stats.binom.cdf(np.arange(-1, n // 2 + 1), n, 0.5)
        rank = max(int(np.searchsorted(2 * below, (1 - confidence) * (1 + EXACT), side="right")) - 1, 0)
        assert sign_test.rank(n, confidence) == rank
        ordered = np.sort(values)
        assert sign_test.interval(values, confidence) == (
            (ordered[rank - 1], ordered[n - rank]) if rank else None)
    assert [sign_test.minimum_count(c) for c in (0.95, 0.99)] == [6, 8]


def test_minimum_detectable_effect_agrees_with_scipy():
    rng = np.random.default_rng(8)
    for _ in range(CASES):
        n, power = int(rng.integers(1, 200)), float(rng.uniform(0.5, 0.99))
        confidence, deviation = float(rng.choice([0.9, 0.95, 0.99])), float(rng.uniform(0, 0.1))
        rank = sign_test.rank(n, confidence)
        found = sign_test.minimum_detectable(n, deviation, confidence, power)
        if not rank:
            assert found is None
            continue
        expected = deviation * scipy_stats.norm.ppf(scipy_stats.beta.ppf(power, n - rank + 1, rank))
        assert found == pytest.approx(expected, abs=EXACT)


def test_detectable_shift_is_the_one_that_all_signs_equal_needs():
    # At 10 values and 0.005 / 3 only ten positive values are enough: the power is Phi(shift)^10.
    exact = scipy_stats.norm.ppf(0.9**0.1)
    assert signed_rank.detectable_shift(10, 0.005 / 3, 0.9) == pytest.approx(exact, rel=0.03)
    assert signed_rank.detectable_shift(9, 0.005 / 3, 0.9) is None
    samples = np.random.default_rng(9).normal(signed_rank.detectable_shift(20, 0.005 / 3, 0.9), 1, (20_000, 20))
    assert (signed_rank.p_greater(samples) <= 0.005 / 3).mean() == pytest.approx(0.9, abs=0.01)


def test_multiple_testing_agrees_with_scipy_and_brute_force():
    rng = np.random.default_rng(10)
    for _ in range(CASES):
        p_values = [float(p) for p in np.round(rng.uniform(0, 1, rng.integers(1, 14))**3, int(rng.integers(1, 8)))]
        expected = scipy_stats.false_discovery_control(p_values)
        assert multiple.adjusted_rates(p_values) == pytest.approx(expected, abs=EXACT)
        assert multiple.benjamini_hochberg(p_values) == [p <= 0.05 for p in multiple.adjusted_rates(p_values)]
        ranked = sorted(p_values)
        steps = [min(1.0, (len(ranked) - place) * p) for place, p in enumerate(ranked)]
        holm = [max(steps[:ranked.index(p) + ranked.count(p)]) for p in p_values]
        assert multiple.holm(p_values) == pytest.approx(holm, abs=EXACT)
    assert multiple.benjamini_hochberg([]) == multiple.holm([]) == []


def test_rate_bound_agrees_with_scipy():
    rng = np.random.default_rng(11)
    for _ in range(CASES):
        n = int(rng.integers(1, 3000))
        events, confidence = int(rng.integers(0, min(n, 20) + 1)), float(rng.uniform(0.8, 0.99))
        expected = scipy_stats.beta.ppf(confidence, events + 1, n - events) if events < n else 1.0
        assert multiple.rate_at_most(events, n, confidence) == pytest.approx(expected, abs=EXACT)


def test_block_medians_take_the_place_of_pairs_that_lean_on_their_neighbours():
    rng = np.random.default_rng(12)
    walk = np.cumsum(rng.normal(0, 0.01, 64))
    leaning, alone = paired.estimate_ratio(walk, 0.95), paired.estimate_ratio(rng.normal(0, 0.01, 64), 0.95)
    assert leaning.block_size == 4 and leaning.count == 16 and leaning.autocorrelation > 0.8
    plain = sign_test.interval([np.median(walk[i:i + 4]) for i in range(0, 64, 4)], 0.95)
    assert leaning.interval[1] - leaning.interval[0] >= plain[1] - plain[0]
    assert alone.block_size == 1 and alone.count == 64


@pytest.mark.parametrize("wrong", [[math.nan], [1.0, math.inf], [], [[0.1, 0.2], [math.nan, 0.1]]])
def test_what_is_no_number_is_refused_by_every_statistic(wrong):
    for statistic in (order.median, order.quartiles, order.hodges_lehmann, order.robust_deviation,
                      signed_rank.p_greater, signed_rank.p_less, lambda values: paired.estimate_ratio(values, 0.95),
                      lambda values: signed_rank.interval(values, 0.95)):
        with pytest.raises(ValueError):
            statistic(wrong)


@pytest.mark.parametrize("call", [lambda: sign_test.rank(10, 1.0), lambda: sign_test.minimum_detectable(10, -1),
                                  lambda: sign_test.minimum_detectable(10, 1, power=0),
                                  lambda: signed_rank.interval_rank(10, 0), lambda: multiple.holm([0.1, math.nan]),
                                  lambda: multiple.adjusted_rates([1.5])])
def test_impossible_questions_are_refused(call):
    with pytest.raises(ValueError):
        call()


def test_the_fixtures_that_the_harness_reads_too_are_what_is_computed_here():
    rows = json.loads(interval_fixtures.FILE.read_text(encoding="utf-8"))
    samples = interval_fixtures.samples()
    assert [row["values"] for row in rows] == samples and len(rows) >= 50
    for row, values in zip(rows, samples):
        now = json.loads(json.dumps(interval_fixtures.expected(values)))
        assert list(_numbers(row)) == pytest.approx(list(_numbers(now)), abs=EXACT)


def _numbers(value):
    if isinstance(value, dict):
        value = [value[key] for key in sorted(value)]
    if not isinstance(value, list):
        return [math.inf if value is None else value]  # inf equals nothing but itself
    return [number for entry in value for number in _numbers(entry)]
