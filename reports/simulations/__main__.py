"""Prints the error rates as Markdown; leaves with 1 where one is beyond its bound. `python -m simulations --full`."""

from __future__ import annotations

import argparse
import sys
import time

from simulations import noise
from simulations.gate import order_bias, run
from simulations.history import false_alarms, step
from twinbench_reports.statistics.multiple import rate_at_most

MOST_FALSE_FAILS = 0.0002  # of a series
LEAST_CAUGHT, LEAST_PASSED = 0.98, 0.99  # at +5 % and at +1 %
MOST_BIAS = 0.0005  # under a drift of 5 %
# Change points in a quiet series of 50. Points that lean on their neighbours (0.5) look like levels.
MOST_CHANGES, MOST_CHANGES_DEPENDENT = 0.005, 0.03


class Table:
    """Rows as they come, and whether all kept their bounds."""

    def __init__(self) -> None:
        self.good = True

    def head(self, title: str, *columns: str) -> None:
        print(f"\n**{title}**\n\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}")

    def row(self, *cells: str, good: bool) -> None:
        self.good &= good
        print(f"| {' | '.join(cells)} |{'' if good else ' <- beyond its bound'}", flush=True)


def gate_tables(table: Table, unchanged: int, changed: int) -> None:
    """False alarms on unchanged code, then what becomes of true slowdowns."""
    table.head(f"Unchanged code called slower, {unchanged:,} trials each", "noise", "deviation of a block", "FAIL",
               "at most (95 %)", "PASS", "saved by the fresh run", "mean blocks")
    for kind in noise.KINDS:
        for deviation in (0.01, 0.02, 0.04):
            rates = run(kind, deviation, 0.0, unchanged)
            table.row(kind, f"{deviation:.0%}", str(rates.failed), f"{rate_at_most(rates.failed, unchanged):.4%}",
                      f"{rates.passed / unchanged:.2%}", str(rates.saved), f"{rates.mean_blocks:.1f}",
                      good=rates.failed <= MOST_FALSE_FAILS * unchanged)
    table.head(f"True slowdowns, {changed:,} trials each: FAIL / PASS / inconclusive", "noise",
               "deviation of a block", "+1 %", "+2 %", "+3 %", "+4 %", "+5 %", "+7 %")
    for kind in noise.KINDS:
        for deviation in (0.01, 0.02, 0.04):
            found = {percent: run(kind, deviation, percent / 100, changed) for percent in (1, 2, 3, 4, 5, 7)}
            good = deviation > 0.02 or (found[1].passed >= LEAST_PASSED * changed
                                        and found[5].failed >= LEAST_CAUGHT * changed)
            table.row(kind, f"{deviation:.0%}",
                      *(f"{rates.failed / changed:.1%} / {rates.passed / changed:.1%} / {rates.undecided / changed:.1%}"
                        for rates in found.values()), good=good)


def order_table(table: Table, trials: int) -> None:
    """What the order of timings does on a machine that slows by 5 % in the run."""
    table.head(f"Unchanged code under a drift of 5 %, 10 blocks, {trials:,} trials", "order", "bias", "deviation")
    for scheme in ("ABBA or BAAB", "sequential"):
        bias, deviation = order_bias(0.05, 0.01, trials, scheme)
        table.row(scheme, f"{bias:+.3%}", f"{deviation:.2%}", good=scheme == "sequential" or abs(bias) <= MOST_BIAS)


def history_tables(table: Table, quiet: int, stepped: int) -> None:
    """Change points named in quiet series, and steps found."""
    table.head(f"Quiet histories of 50 points with a change named, {quiet:,} series each", "noise of 1 %", "false",
               "bound")
    for kind in noise.KINDS:
        bound = MOST_CHANGES_DEPENDENT if kind == "autocorrelated" else MOST_CHANGES
        rate = false_alarms(kind, 0.01, quiet) / quiet
        table.row(kind, f"{rate:.2%}", f"{bound:.1%}", good=rate <= bound)
    table.head(f"Steps after 40 quiet points, {stepped:,} series each: named / located within a run", "noise of 1 %",
               "+3 %, 3 points on", "+3 %, 5 points on", "+5 %, 3 points on")
    for kind in noise.KINDS:
        found = [step(kind, 0.01, change, after, stepped) for change, after in ((0.03, 3), (0.03, 5), (0.05, 3))]
        good = kind != "gaussian" or (found[0].named >= 0.78 * stepped and found[2].named >= 0.99 * stepped)
        table.row(kind, *(f"{one.named / stepped:.1%} / {one.located / stepped:.1%}" for one in found), good=good)


def main() -> int:
    """All tables; the sizes of --full are those of the documentation."""
    parser = argparse.ArgumentParser(prog="python -m simulations", description=__doc__)
    parser.add_argument("--full", action="store_true", help="many trials: some minutes")
    full = parser.parse_args().full
    start, table = time.monotonic(), Table()
    # The small sizes still show a rate of five times its bound, over all kinds of noise.
    gate_tables(table, *((100_000, 20_000) if full else (5_000, 500)))
    order_table(table, 20_000 if full else 4_000)
    history_tables(table, *((10_000, 2_000) if full else (1_000, 100)))
    print(f"\n{time.monotonic() - start:.0f} s; {'every rate within its bound' if table.good else 'BEYOND A BOUND'}",
          file=sys.stderr)
    return 0 if table.good else 1


if __name__ == "__main__":
    sys.exit(main())
