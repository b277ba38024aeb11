"""The rules of other tools as restated: what each can and cannot see, and what the page of figures says of them."""

from __future__ import annotations

import math
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from simulations import head_to_head, noise, rules, streams  # noqa: E402

PAGE = Path(__file__).resolve().parents[1] / "head_to_head.md"
FULL = bool(os.environ.get("TWINBENCH_FULL_SIMULATIONS"))
OURS, *OTHERS = rules.RULES
TRIALS = 300


def shares(rule, kind, slowdown=0.0, seed=1):
    return head_to_head.rates(rule, head_to_head.synthetic_logs(rule, kind, TRIALS, seed), slowdown)


def test_ours_is_silent_on_unchanged_code_and_sees_five_percent():
    for kind in streams.KINDS:
        assert sum(shares(OURS, kind)[:2]) == 0, kind
    for kind in ("quiet", "spikes"):
        assert shares(OURS, kind, 0.05)[0] >= 0.98
    assert shares(OURS, "quiet")[2] == pytest.approx(40, abs=2)


def test_ours_takes_one_side_of_a_block_for_the_other_by_the_coin_only():
    """A drift cancels in every block; a slowdown does not: the estimate is the slowdown, whichever side began."""
    logs = np.tile(np.linspace(0, 0.05, rules.TIMINGS), (50, 1))
    assert not rules.ours(logs, 0.0).slower.any() and rules.ours(logs, math.log1p(0.05)).slower.all()


@pytest.mark.parametrize("name, kind, least", [
    ("Google Benchmark compare.py", "quiet", 0.03), ("Google Benchmark compare.py", "warming up", 0.5),
    ("nvbench, first comparer", "warming up", 0.4), ("criterion", "warming up", 0.9), ("Otava", "clock steps", 0.5),
    ("Otava", "leaning on neighbours", 0.5)])
def test_rules_without_pairs_call_unchanged_code_changed(name, kind, least):
    rule = next(rule for rule in OTHERS if rule.name == name)
    assert sum(shares(rule, kind)[:2]) >= least


def test_asv_does_not_see_what_is_under_its_factor():
    rule = next(rule for rule in OTHERS if rule.name.startswith("asv"))
    assert shares(rule, "quiet", 0.05)[0] == 0 and shares(rule, "quiet", 0.2)[0] == 1


def test_every_rule_sees_half_as_slow_again_and_calls_it_by_its_direction():
    for rule in rules.RULES:
        slower, faster, _ = shares(rule, "quiet", 0.5)
        assert slower >= 0.9 and faster <= 0.01, rule.name
        slower, faster, _ = shares(rule, "quiet", -1 / 3)
        assert faster >= 0.9 and slower <= 0.01, rule.name


def test_otavas_false_alarms_are_those_seen_of_otava_itself():
    """3 % of quiet series of 50 points and 40 % of those that lean on their neighbours (0.5), by its own program."""
    rng = np.random.default_rng(5)
    assert 0.005 <= shares(next(rule for rule in OTHERS if rule.name == "Otava"), "quiet")[0] * 2 <= 0.06
    found = rules.otava(noise.draw("autocorrelated", 0.01, (TRIALS, 50), rng), 0.0)
    assert 0.3 <= (found.slower | found.faster).mean() <= 0.55


def test_recorded_streams_are_long_enough_and_ours_is_silent_on_them():
    logs = streams.recorded(rules.TIMINGS)
    assert logs.shape[1] == rules.TIMINGS and len(logs) >= 60 and np.isfinite(logs).all()
    found = rules.ours(logs, 0.0)
    assert not found.slower.any() and not found.faster.any()
    assert rules.google_benchmark(logs, 0.0).slower.any()


def test_a_rule_that_always_fires_is_seen_in_the_table(monkeypatch, capsys):
    def always(logs, slowdown):
        return rules.Outcome(np.ones(len(logs), bool), np.zeros(len(logs), bool), 1)

    monkeypatch.setattr(head_to_head, "RULES", (rules.Other("loud", always, False, "1", "1"),))
    head_to_head.tables(20)
    assert "| loud | 100 % | 100 % |" in capsys.readouterr().out


def test_the_page_has_every_rule_and_the_figures_of_the_script(capsys):
    page = PAGE.read_text(encoding="utf-8")
    for rule in rules.RULES:
        assert page.count(f"| {rule.name} |") >= 3
        assert f"| {rule.exit_slower} | {rule.exit_faster} |" in page
    if FULL:
        trials = int(re.search(r"([\d,]+) unchanged benchmarks a cell", page)[1].replace(",", ""))
        head_to_head.tables(trials)
        assert capsys.readouterr().out.strip() in page
