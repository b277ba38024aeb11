"""Error rates of the whole decision on a slowdown: three looks and the fresh run, on blocks of known truth."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from simulations import noise
from twinbench_reports.statistics import looks
from twinbench_reports.statistics.looks import FASTER, RULE, SAME, SLOWER, UNDECIDED, Rule

_AT_ONCE = 20_000  # trials held in memory


class Rates(NamedTuple):
    """How many trials ended in each verdict, how many only the fresh run saved, and the blocks they took."""

    trials: int
    failed: int
    passed: int
    undecided: int
    saved: int
    mean_blocks: float


def run(kind: str, deviation: float, slowdown: float, trials: int, rule: Rule = RULE, seed: int = 1) -> Rates:
    """`slowdown` is the truth as a fraction; 0: unchanged code."""
    rng = np.random.default_rng([seed, noise.KINDS.index(kind), round(1e5 * deviation), round(1e5 * slowdown)])
    counts = np.zeros(4, dtype=int)
    blocks = saved = 0
    for start in range(0, trials, _AT_ONCE):
        shape = min(_AT_ONCE, trials - start), rule.looks[-1]
        values = noise.draw(kind, deviation, shape, rng) + math.log1p(slowdown)
        verdict = np.full(len(values), UNDECIDED)
        alive, before = np.arange(len(values)), 0
        for look in rule.looks:
            blocks += len(alive) * (look - before)
            verdict[alive] = looks.judge(values[alive, :look], rule)
            alive, before = alive[verdict[alive] == UNDECIDED], look
            if not len(alive):
                break
        again = np.flatnonzero(verdict == SLOWER)
        if len(again):
            fresh = noise.draw(kind, deviation, (len(again), rule.confirm_blocks), rng) + math.log1p(slowdown)
            verdict[again] = looks.judge_fresh(fresh, rule)
            blocks += len(again) * rule.confirm_blocks
            saved += int((verdict[again] != SLOWER).sum())
        counts += np.bincount(verdict, minlength=4)
    return Rates(trials, int(counts[SLOWER]), int(counts[SAME] + counts[FASTER]), int(counts[UNDECIDED]), saved,
                 blocks / trials)


def order_bias(drift: float, deviation: float, trials: int, scheme: str, rule: Rule = RULE,
               seed: int = 1) -> tuple[float, float]:
    """(mean, standard deviation) of the estimated ratio - 1 of unchanged code on a machine that slows by `drift` in the
    run, with timings in blocks ("ABBA" or "BAAB" by a coin) or one side after the other ("sequential")."""
    n = rule.looks[0]
    rng = np.random.default_rng([seed, round(1e5 * drift), round(1e5 * deviation)])
    # Each block has four timings, so a block's deviation is that of one timing.
    times = np.exp(rng.normal(0, deviation, (trials, n, 4))) * (1 + np.linspace(0, drift, 4 * n)).reshape(n, 4)
    if scheme == "sequential":
        flat = times.reshape(trials, 4 * n)
        ratio = np.median(flat[:, 2 * n:], axis=1) / np.median(flat[:, :2 * n], axis=1)
    else:
        outer, inner = np.log(times[..., [0, 3]]).mean(-1), np.log(times[..., [1, 2]]).mean(-1)
        coin = np.where(rng.random((trials, n)) < 0.5, 1, -1)
        ratio = np.exp(looks.order.hodges_lehmann(coin * (inner - outer)))
    return float(ratio.mean() - 1), float(ratio.std())
