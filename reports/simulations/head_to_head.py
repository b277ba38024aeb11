"""Our rule beside other tools', restated, on the same timings, as Markdown. `python -m simulations.head_to_head`."""

from __future__ import annotations

import argparse
import math
import sys

import numpy as np

from simulations import streams
from simulations.rules import RULES, TIMINGS, Other
from twinbench_reports.statistics.order import Array

SERIES = 150  # benchmarks of one run: how often is any of them red?
_SLOWDOWNS = (0.03, 0.05, 0.10)
_MOST_HISTORY = 1_000  # of the rule that looks at pairs of points


def rates(rule: Other, logs: Array, slowdown: float) -> tuple[float, float, float]:
    """The shares called slower and faster, and the timings it took."""
    outcome = rule.decide(logs, math.log1p(slowdown))
    return float(outcome.slower.mean()), float(outcome.faster.mean()), outcome.timings


def synthetic_logs(rule: Other, kind: str, trials: int, seed: int) -> Array:
    """The stream, or for rules that look at histories the history, of a machine of that kind."""
    rng = np.random.default_rng([seed, streams.KINDS.index(kind)])
    if rule.history:
        return streams.draw_history(kind, min(trials, _MOST_HISTORY), 50, rng)
    return streams.draw(kind, trials, TIMINGS, rng)


def _share(value: float) -> str:
    return "0" if value == 0 else f"{100 * value:.2g} %" if value < 0.1 else f"{100 * value:.0f} %"


def _head(title: str, *columns: str) -> None:
    print(f"\n**{title}**\n\n| rule | {' | '.join(columns)} |\n|{'---|' * (1 + len(columns))}")


def tables(trials: int) -> None:
    """False alarms by machine, power, recorded timings, and exit codes."""
    print(f"{trials:,} unchanged benchmarks a cell ({min(trials, _MOST_HISTORY):,} histories).")
    _head("Unchanged code called slower or faster", *streams.KINDS)
    quiet = {}
    for rule in RULES:
        found = [sum(rates(rule, synthetic_logs(rule, kind, trials, 1), 0.0)[:2]) for kind in streams.KINDS]
        quiet[rule.name] = found[0]
        print(f"| {rule.name} | {' | '.join(map(_share, found))} |", flush=True)
    _head(f"So in a run of {SERIES} unchanged benchmarks something is red", "on a quiet machine", "exit code if slower",
          "exit code if faster")
    for rule in RULES:
        print(f"| {rule.name} | {_share(1 - (1 - quiet[rule.name])**SERIES)} | {rule.exit_slower} | "
              f"{rule.exit_faster} |")
    _head("Slower code called slower", *(f"+{100 * slowdown:.0f} %, {kind}" for kind in ("quiet", "spikes")
                                         for slowdown in _SLOWDOWNS), "timings, unchanged")
    for rule in RULES:
        found = [rates(rule, synthetic_logs(rule, kind, trials // 2, 2), slowdown)[0] for kind in ("quiet", "spikes")
                 for slowdown in _SLOWDOWNS]
        used = rates(rule, synthetic_logs(rule, "quiet", trials // 2, 2), 0.0)[2]
        print(f"| {rule.name} | {' | '.join(map(_share, found))} | {used:.0f} |", flush=True)
    logs = streams.recorded(TIMINGS)
    _head(f"Recorded timings of one program, {len(logs)} windows", "unchanged, called slower or faster",
          *(f"+{100 * slowdown:.0f} % called slower" for slowdown in _SLOWDOWNS))
    for rule in RULES:
        if not rule.history:
            found = [sum(rates(rule, logs, 0.0)[:2]), *(rates(rule, logs, slowdown)[0] for slowdown in _SLOWDOWNS)]
            print(f"| {rule.name} | {' | '.join(map(_share, found))} |", flush=True)


def main() -> int:
    """All tables; the default size is that of the documentation."""
    parser = argparse.ArgumentParser(prog="python -m simulations.head_to_head", description=__doc__)
    parser.add_argument("--trials", type=int, default=4_000, help="a cell (default: %(default)s)")
    tables(parser.parse_args().trials)
    return 0


if __name__ == "__main__":
    sys.exit(main())
