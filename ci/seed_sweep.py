#!/usr/bin/env python3
"""Judges every small cell at many seeds and sizes, a part at a time, and adds up what came of it in a file of the tree.

Right answers (the exact one, the baseline, the optimized and the library variant) must pass whatever is drawn, and
twins that round elsewhere must not: harness/parity/beyond/seed_sweep_test.cpp, whose 200 seeds take some fifteen
hours of a core. So each part, some seeds of one component, is a run of that test and a line in the record, with the
revision it ran at; the next run of this script goes on with the seeds that are not in it. A part that failed is run
again.
Exit codes: 0 all seeds are there and passed, 1 a part failed, 2 it cannot run, 3 all passed and some were left for the
time.

usage: ci/seed_sweep.py [--seeds N] [--sizes N] [--components RE] [--minutes N] [--jobs N] [--program FILE]
    [--record FILE] [--again: forgets the components' lines] [--table FILE: the page, reports/seed_sweep.md]
    --seeds, --sizes: how many of every cell and draws of sizes a component is to have; 0 and 0: the page alone"""
import argparse
import collections
import concurrent.futures
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "ci"))

from pages import give, table  # noqa: E402
from registry import kinds_of  # noqa: E402

PART_SECONDS, FIRST_PART = 300, 5  # a part's length, and its seeds where nothing says how long a seed takes
PART_LIMIT_S = 3600
SEEDS, SIZES = "seeds", "sizes"
TESTS = {SEEDS: "SmallCases", SIZES: "SizesDrawnAtRandom"}


def components(filter_):
    """Those that the sweep looks at: with kernels of their own or of what they are made of, not host code alone."""
    return [name for name, kind in kinds_of(ROOT).items() if kind != "host" and re.search(filter_, name)]


def rows_of(record):
    return [json.loads(line) for line in record.read_text().splitlines()] if record.exists() else []


def mine_of(rows, component, what):
    return [row for row in rows if row["component"] == component and row["what"] == what]


def covered(rows, component, what):
    """The seeds, or numbers of draws, that passed lines of the component hold."""
    return {seed for row in mine_of(rows, component, what) if row["passed"]
            for seed in range(row["first"], row["first"] + row["count"])}


def missing(rows, component, what, wanted):
    there = covered(rows, component, what)
    return [seed for seed in range(1, wanted + 1) if seed not in there]


def next_part(rows, component, wanted, running=()):
    """(component, what, first, how many), consecutive ones, as many as PART_SECONDS allow; None where all there are
    passed or are `running`, parts like it."""
    for what, total in wanted.items():
        taken = {seed for name, whose, first, count in running if (name, whose) == (component, what)
                 for seed in range(first, first + count)}
        if not (left := [seed for seed in missing(rows, component, what, total) if seed not in taken]):
            continue
        most = FIRST_PART
        if mine := mine_of(rows, component, what):
            rate = sum(row["seconds"] for row in mine) / sum(row["count"] for row in mine)
            most = max(1, int(PART_SECONDS / max(rate, 1e-3)))
        together = next((n for n, seed in enumerate(left) if seed != left[0] + n), len(left))
        return component, what, left[0], min(most, together)
    return None


def run_part(program, component, what, first, count, revision):
    """A line of the record, and what the test printed."""
    environment = {**os.environ, f"TWINBENCH_SWEEP_{what.upper()}": str(count), "TWINBENCH_SWEEP_FIRST": str(first),
                   "TWINBENCH_SWEEP_COMPONENTS": f"^{re.escape(component)}$", "OMP_NUM_THREADS": "1"}
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "result.json"
        try:
            ran = subprocess.run([program, f"--gtest_filter=SeedSweep.{TESTS[what]}", f"--gtest_output=json:{out}"],
                                 env=environment, check=False, capture_output=True, text=True, timeout=PART_LIMIT_S)
            code, printed = ran.returncode, ran.stdout + ran.stderr
        except subprocess.TimeoutExpired:
            code, printed = 124, f"not ended after {PART_LIMIT_S} s"
        test = json.loads(out.read_text())["testsuites"][0]["testsuite"][0] if out.exists() else {}
    tallies = {name.partition("/")[2]: json.loads(value) for name, value in test.items() if "/" in name}
    return {"component": component, "what": what, "first": first, "count": count, "revision": revision,
            "passed": code == 0 and any(tally["judged"] for tally in tallies.values()),
            "seconds": round(time.monotonic() - start, 1), "tallies": tallies}, printed


def sweep(options, wanted):
    """(the lines of the record, whether a part failed, how many seeds and draws are left)."""
    revision = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, check=True, capture_output=True,
                              text=True).stdout.strip()
    names, until = components(options.components), time.monotonic() + 60 * options.minutes
    rows = [row for row in rows_of(options.record)
            if row["passed"] and not (options.again and row["component"] in names and row["what"] in wanted)]
    options.record.write_text("".join(json.dumps(row) + "\n" for row in rows))
    failed, running = set(), {}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        while True:
            while len(running) < options.jobs and time.monotonic() <= until:
                parts = (next_part(rows, name, wanted, running.values()) for name in names if name not in failed)
                if not (part := next(filter(None, parts), None)):
                    break
                running[pool.submit(run_part, options.program, *part, revision)] = part
            if not running:
                break
            done, _ = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in done:
                name, *_ = running.pop(future)
                row, printed = future.result()
                rows.append(row)
                with open(options.record, "a") as file:
                    file.write(json.dumps(row) + "\n")
                print(f"{name:32} {row['what']} {row['first']} to {row['first'] + row['count'] - 1}: "
                      f"{'passed' if row['passed'] else 'FAILED'}, {row['seconds']:.0f} s", flush=True)
                if not row["passed"]:
                    failed.add(name)
                    print(printed[-4000:], flush=True)
    left = sum(len(missing(rows, name, what, total)) for name in names for what, total in wanted.items())
    return rows, bool(failed), left


def sums_of(rows):
    """By (component, mode): the counts of all lines that passed, and their revisions; failures of the others, too."""
    sums = collections.defaultdict(lambda: collections.defaultdict(collections.Counter))
    for row in rows:
        for mode, tally in row["tallies"].items():
            mine = sums[row["component"], mode]
            mine["failed"].update(tally["failed"])
            if not row["passed"]:
                continue
            mine["revisions"][row["revision"][:8]] += 1
            mine["counts"].update({key: tally[key] for key in ("drawn", "judged", "no_case")})
            mine["counts"]["by_class"] += tally.get("by_class", 0)  # lines of earlier revisions have none
            for key in ("wrong", "rejected"):
                mine[key].update(tally[key])
            if row["what"] == SEEDS:
                mine["left"].update(tally["left"])
    return sums


def twins(sums):
    if not sums["counts"]["judged"]:
        return ""
    return ", ".join(f"{what} {sums['rejected'][what]:,} of {count:,}"
                     for what, count in sorted(sums["wrong"].items())) or "rounds nothing"


def page(rows, seeds=200, sizes=400):
    """By component and mode: what passed, and what failed and has not passed since."""
    sums = sums_of(rows)
    seeds_of = {component: len(covered(rows, component, SEEDS)) for component, _ in sums}
    total = sum((mine["counts"] for mine in sums.values()), collections.Counter())
    lines = ["# Every small cell at many seeds and sizes", "",
             "`ci/seed_sweep.py` writes this page from `reports/records/seed_sweep.jsonl`. Whatever is drawn, the",
             "exact answer, the baseline, the optimized and the library variant of every small cell must pass; a draw",
             "that is no case (decisions or cancellations leave nothing to judge) is counted. Twins of the baseline",
             "that round once more, truncate, or do not round in a mode that rounds must be rejected, unless they",
             "differ only where honest arithmetic may differ too (`why_it_survives()` of",
             "`harness/parity/beyond/seed_sweep_test.cpp`). Of the seeds of a cell one in four is for the twins, in "
             "parts of",
             "earlier revisions every one.", "",
             f"{total['judged']:,} draws were judged, {total['no_case']:,} were no case. Asked of every component: "
             f"{seeds} seeds of every small cell, {sizes} draws of sizes.",
             f"Of a library's answers {total['by_class']:,} passed by the specification's class alone, which is all",
             "that is asked of one: they were less exact than the baseline's own error allows our variants.", ""]
    lines += table(["component", "mode", "seeds", "judged ones of the least cell", "draws of sizes", "judged",
                    "no case", "right answers failed", "wrong twins rejected", "revisions"],
                   [[component, mode, str(seeds_of[component]),
                     str(seeds_of[component] - max(mine["left"].values(), default=0)),
                     str(len(covered(rows, component, SIZES))), f"{mine['counts']['judged']:,}",
                     f"{mine['counts']['no_case']:,}", str(sum(mine["failed"].values())),
                     twins(mine),
                     " ".join(sorted(mine["revisions"]))] for (component, mode), mine in sorted(sums.items())])
    failed = [f"{row['component']} {row['what']} {row['first']} to {row['first'] + row['count'] - 1} "
              f"({row['revision'][:8]})" for row in rows if not row["passed"]]
    if failed:
        lines += [f"Failed, and not run again since: {', '.join(failed)}.", ""]
    for what, wanted in ((SEEDS, seeds), (SIZES, sizes)):
        there = {name: len(covered(rows, name, what)) for name in components(".")}
        short = [f"{name} ({count})" for name, count in there.items() if count < wanted]
        if short:
            lines += [f"Not all {what} yet: {', '.join(short) if any(there.values()) else 'none'}.", ""]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--sizes", type=int, default=400)
    parser.add_argument("--components", default=".")
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--program", default=str(ROOT / "build/cpu/bin/parity_beyond_tests"))
    parser.add_argument("--record", type=Path, default=ROOT / "reports/records/seed_sweep.jsonl")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    wanted = {what: total for what, total in ((SEEDS, options.seeds), (SIZES, options.sizes)) if total}
    if min(options.seeds, options.sizes) < 0 or options.jobs < 1 or not components(options.components):
        print("seed_sweep: counts are 0 or more, --jobs is 1 or more, and --components names at least one",
              file=sys.stderr)
        return 2
    if wanted and not os.access(options.program, os.X_OK):
        print(f"seed_sweep: {options.program} is no program: cmake --build --preset cpu", file=sys.stderr)
        return 2
    rows, failed, left = sweep(options, wanted) if wanted else (rows_of(options.record), False, 0)
    if options.table:
        give(page(rows), options.table)
    return 1 if failed else 3 if left else 0


if __name__ == "__main__":
    sys.exit(main())
