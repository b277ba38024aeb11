"""The decision on a slowdown: when it is called, passed, left open, and what is said beside it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from twinbench_reports.statistics import looks
from twinbench_reports.statistics.looks import FASTER, RULE, SAME, SLOWER, UNDECIDED, WORDS, Rule


def blocks(change, deviation, n=10, seed=1):
    return np.random.default_rng(seed).normal(math.log1p(change), deviation, n)


@pytest.mark.parametrize("change, verdict", [(0.05, SLOWER), (-0.05, FASTER), (0, SAME), (0.01, SAME), (-0.01, SAME)])
def test_clear_cases_are_decided_at_the_first_look(change, verdict):
    assert looks.judge(blocks(change, 0.004)) == verdict


def test_a_slowdown_at_the_limit_or_in_noise_is_left_open():
    assert looks.judge(np.full(10, math.log1p(0.9 * RULE.limit)) + np.linspace(-0.01, 0.01, 10)) == UNDECIDED
    assert looks.judge(blocks(0.05, 0.15)) == UNDECIDED and WORDS[UNDECIDED] == "inconclusive"


def test_one_block_against_nine_is_no_slowdown_at_the_first_look():
    # 0.005 over three looks: nine of ten values and the smallest rank against them is p = 2 / 1024 > 0.005 / 3.
    values = np.array([0.05] * 9 + [-0.001]) + np.arange(10) * 1e-6
    assert looks.judge(values) == UNDECIDED
    assert looks.judge(np.abs(values) + 0.05) == SLOWER


def test_looks_spend_one_budget():
    assert RULE.alpha_per_look * len(RULE.looks) == pytest.approx(RULE.alpha)
    assert [looks.next_look(count) for count in (0, 9, 10, 39, 40)] == [10, 10, 20, 40, None]


def test_the_fresh_run_has_the_last_word():
    assert looks.judge_fresh(blocks(0.05, 0.02, 40)) == SLOWER
    assert looks.judge_fresh(blocks(0.0, 0.02, 40)) == SAME
    assert looks.judge_fresh(blocks(0.029, 0.06, 40, seed=3)) == UNDECIDED


def test_equal_blocks_are_judged():
    assert looks.judge(np.zeros(10)) == SAME and looks.judge(np.full(10, 0.1)) == SLOWER
    assert looks.judge(np.full(5, 0.1)) == UNDECIDED  # five values cannot give so small a p


def test_figures_go_with_the_verdict():
    found = looks.estimate(blocks(0.05, 0.01, 20))
    assert found.lower < found.change < found.upper and found.blocks == 20
    assert found.change == pytest.approx(0.05, abs=0.01)
    assert found.lower > 0.03 and 0.03 < found.detectable < 0.05
    short = looks.estimate(blocks(0.05, 0.01, 4))
    assert short.lower is short.upper is short.detectable is None


def test_the_detectable_slowdown_is_detected_nine_times_in_ten():
    for n, deviation in ((10, 0.04), (20, 0.02), (40, 0.04)):
        slowdown = looks.detectable_slowdown(n, deviation)
        values = np.random.default_rng(n).normal(math.log1p(slowdown), deviation, (5000, n))
        assert (looks.judge(values) == SLOWER).mean() == pytest.approx(0.9, abs=0.03)


def test_another_rule_moves_the_limit():
    assert looks.judge(blocks(0.05, 0.004), Rule(limit=0.08)) == SAME


def test_a_noisy_session_asks_for_more_before_it_fails_and_passes_nothing_more():
    noisy = Rule(noise_floor=0.04)
    assert noisy.least_failing == 0.08
    assert looks.judge(blocks(0.05, 0.004), noisy) == UNDECIDED and looks.judge(blocks(0.1, 0.004), noisy) == SLOWER
    assert looks.judge(blocks(0.0, 0.004), noisy) == SAME
