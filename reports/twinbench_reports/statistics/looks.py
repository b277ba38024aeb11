"""The decision on a slowdown from paired blocks: three looks, one fixed error budget, and a fresh run to confirm.

A block is four timings A B B A or B A A B; its value is ln(time of B / time of A), so a drift of the machine cancels.
Looks come at fixed numbers of blocks, never "until significant", and each spends its part of the budget.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twinbench_reports.statistics import order, sign_test, signed_rank

UNDECIDED, SAME, SLOWER, FASTER = range(4)
WORDS = ("inconclusive", "same", "slower", "faster")


@dataclass(frozen=True)
class Rule:
    """What is asked of the blocks of one cell."""

    limit: float = 0.03  # a smaller slowdown is not worth a red gate, a larger one never passes
    noise_floor: float = 0.0  # what the session saw between equal programs: a slowdown must be twice that to fail
    looks: tuple[int, ...] = (10, 20, 40)  # blocks at which the cell is judged
    alpha: float = 0.005  # chance of calling a slowdown where there is none, over all looks together
    pass_alpha: float = 0.05  # chance, a look, of passing a slowdown of exactly `limit`
    confirm_blocks: int = 40  # of a fresh run, which has the last word on a slowdown
    confirm_alpha: float = 0.05

    @property
    def least_failing(self) -> float:
        return max(self.limit, 2 * self.noise_floor)

    @property
    def alpha_per_look(self) -> float:
        return self.alpha / len(self.looks)


RULE = Rule()


def judge(blocks: ArrayLike, rule: Rule = RULE, alpha: float | None = None) -> NDArray[np.int64]:
    """The verdict of one look at blocks of log ratios, along the last axis."""
    values = order.finite(blocks)
    alpha = rule.alpha_per_look if alpha is None else alpha
    limit = math.log1p(rule.least_failing)
    rows = values.reshape(-1, values.shape[-1])
    estimate = order.hodges_lehmann(rows)
    verdict = np.full(len(rows), UNDECIDED)
    verdict[signed_rank.p_less(rows, math.log1p(rule.limit)) <= rule.pass_alpha] = SAME
    for moved, test, word in ((estimate <= -limit, signed_rank.p_less, FASTER),
                              (estimate >= limit, signed_rank.p_greater, SLOWER)):
        if moved.any():  # few rows are: the test of the others could change nothing
            verdict[np.flatnonzero(moved)[test(rows[moved]) <= alpha]] = word
    return verdict.reshape(values.shape[:-1])


def judge_fresh(blocks: ArrayLike, rule: Rule = RULE) -> NDArray[np.int64]:
    """The verdict of the run that repeats a slowdown in new processes: it stands only if it is seen again."""
    return judge(blocks, rule, rule.confirm_alpha)


def next_look(count: int, rule: Rule = RULE) -> int | None:
    """How many blocks an undecided cell needs before it is looked at again; null after the last look."""
    return next((look for look in rule.looks if look > count), None)


@dataclass(frozen=True)
class Estimate:
    """A slowdown as a fraction (0.05: 5 % slower), with its interval and what would have been seen."""

    change: float
    lower: float | None
    upper: float | None
    blocks: int
    deviation: float
    detectable: float | None


def estimate(blocks: Sequence[float], rule: Rule = RULE, confidence: float = 0.95) -> Estimate:
    """What the blocks say, beside the verdict: every figure is shown with it."""
    values = order.finite(blocks)
    found = signed_rank.interval(values, confidence)
    lower, upper = (math.expm1(end) for end in found) if found else (None, None)
    deviation = float(order.robust_deviation(values))
    return Estimate(math.expm1(order.hodges_lehmann(values)), lower, upper, len(values), deviation,
                    detectable_slowdown(len(values), deviation, rule))


def detectable_slowdown(n: int, deviation: float, rule: Rule = RULE, power: float = 0.9) -> float | None:
    """The slowdown that a look at n blocks of normal noise calls with that power; null where n is too few for any.

    It must reach the limit with the estimate, whose deviation is about that of a mean / 0.977, and the test.
    """
    factor = signed_rank.detectable_shift(n, rule.alpha_per_look, power)
    if factor is None:
        return None
    by_estimate = math.log1p(rule.least_failing) + sign_test.normal_quantile(power) * deviation / 0.977 / math.sqrt(n)
    return math.expm1(max(by_estimate, factor * deviation))
