"""What a record must not contradict in itself: such a one is refused, for nothing in it can be relied on."""

from __future__ import annotations

import datetime
import math
import statistics
from collections import Counter
from collections.abc import Iterator
from typing import Any

from twinbench_reports.cells import JUDGED_SECTIONS, Row, named_rows
from twinbench_reports.errors import ReportError
from twinbench_reports.exit_codes import FAIL, INCONCLUSIVE, LIMIT, PASS, TOOL_ERROR
from twinbench_reports.judge.measured import TOOLS
from twinbench_reports.judge.timing import HELD_OUT
from twinbench_reports.judge.units import Units
from twinbench_reports.load import Record
from twinbench_reports.statistics.paired import LARGEST_BLOCK

_OUTCOMES = ("passed", "failed", "errors", "skipped", "inconclusive")
_ROUNDING = 1e-6  # of times and their logarithms as written
_NEXT_SEED = 1_000_003  # kNextSeed: between the draws of a case whose inputs were drawn again
_FIRST_DAY = datetime.datetime(2026, 11, 1, tzinfo=datetime.timezone.utc)  # of the month in which the project began
_CLOCKS_APART = datetime.timedelta(days=1)
_SAME = 0.02  # PairedOptions::threshold: within it a ratio's interval lies whose verdict is "same"


def require_consistent(record: Record) -> None:
    """Raises a ReportError for a row given twice, for a ledger that counts other results than the rows show, for an
    exit code that is not the one of the record's results, for times that are not those of their ratios, for a null test
    that says 'same' of other intervals, inputs of another seed than the run's, and a run at no possible time."""
    for section in (*JUDGED_SECTIONS, "speedups"):
        counts = Counter(name for name, _ in named_rows(record.block, section))
        for name, count in counts.items():
            if count > 1:
                raise ReportError(f"it holds the row {name} {count} times", file=record.path,
                                  path=f"$.twinbench.{section}", remedy="run the engine again: only one can count")
    for path, wrong in (*_exit_code(record.block), *_ledger(record.block), *_samples(record.block),
                        *_pairs(record.block), *_null_test(record.block), *_seeds(record.block),
                        *_times(record.block)):
        raise ReportError(wrong, file=record.path, path=path, remedy="run the engine again: the record was changed")
    if record.block["ledger"]["exit_code"] == TOOL_ERROR:
        raise ReportError("its exit code is 2: the system refused what the engine needs", file=record.path,
                          path="$.twinbench.ledger", remedy="see the reasons of its errors, and run the engine again")


def _exit_code(block: dict[str, Any]) -> Iterator[tuple[str, str]]:
    ledger = block["ledger"]
    lost = ledger["planned"] > sum(ledger[key] for key in _OUTCOMES)
    expected = (PASS,) if ledger["passed"] and not lost and not ledger["inconclusive"] else (INCONCLUSIVE,)
    if ledger["failed"] or ledger["errors"]:
        expected = (FAIL,) if ledger["failed"] else (FAIL, TOOL_ERROR, LIMIT)
    if ledger["exit_code"] not in expected:
        yield ("$.twinbench.ledger",
               f"its exit code is {ledger['exit_code']}, and its results make {expected[0]}")


def _ledger(block: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The ledger against the rows. Crashed, cut and set-aside work may be without a row, so that it may count more
    failures, open ends and named skips; more passes only of what is known to pass without a row."""
    ledger, units = block["ledger"], Units(block)
    for key in _OUTCOMES:
        most = math.inf if key in ("failed", "errors", "inconclusive") else units.outcomes[key]
        if key == "passed":
            most += _passes_without_row(block)
        elif key == "skipped":
            most += sum(max(0, count - units.reasons[reason]) for reason, count in ledger["skip_reasons"].items())
        if not units.outcomes[key] <= ledger[key] <= most:
            yield (f"$.twinbench.ledger.{key}",
                   f"the ledger counts {ledger[key]} {key}, and its rows show {units.outcomes[key]}")
    results = sum(ledger[key] for key in _OUTCOMES)
    if results > ledger["planned"]:
        yield "$.twinbench.ledger.planned", f"{results} have a result, and only {ledger['planned']} were planned"


def _passes_without_row(block: dict[str, Any]) -> float:
    """How many may have passed that no row shows: sessions whose null test says same, one of each run; devices whose
    ceilings were measured; cells whose kernels are only counted, or that only qualify the gate: any number."""
    session = block["session"] or {}
    if "kernels" in block["engines"] or session.get("qualification"):
        return math.inf
    runs = block.get("merged_from") or [block]
    sessions = sum("bench" in run["engines"] for run in runs)
    if len(runs) == 1:
        sessions = min(sessions, (session.get("null_test") or {}).get("verdict") == "same")
    devices = len({row["device"] for row in block["ceilings"]})
    return sessions + devices * sum("ceilings" in run["engines"] for run in runs)


def _samples(block: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for name, row in named_rows(block, "timings"):
        samples = row["samples_s"]
        if row["verdict"] != "pass" or len(samples) < 2:
            continue
        low, _, high = statistics.quantiles(samples, n=4, method="inclusive")
        for key, value in (("q1_s", low), ("q3_s", high), ("minimum_s", min(samples))):
            if row[key] is None or not math.isclose(row[key], value, rel_tol=_ROUNDING):
                yield "$.twinbench.timings", f"{key} of {name} is {row[key]}, and its samples give {value:.6g}"


def _pairs(block: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """A speedup rests on times of both sides. Those of baseline and optimized are kept pair by pair, in the order of
    the logarithms of their ratios; the library's pairs are of runs of their own."""
    timings = {row["cell"]: row for row in block["timings"]}
    for name, row in named_rows(block, "speedups"):
        if not row["log_ratios"]:
            continue
        cells = [f"{row['component']}/{row[side]}/{row['device']}/{row['dtype']}/{row['case']}"
                 for side in ("from", "to")]
        gone = next((cell for cell in cells if cell not in timings), None)
        if gone:
            yield "$.twinbench.timings", f"{name} has pairs, and no timing of {gone}"
        elif row["from"] == "baseline":
            one, other = (timings[cell]["samples_s"] for cell in cells)
            usable = [(a, b) for a, b in zip(one, other) if a > 0 and b > 0]  # a side may have read no time at all
            if len(one) != len(other) or len(usable) != len(row["log_ratios"]):
                yield ("$.twinbench.speedups", f"log_ratios of {name} has {len(row['log_ratios'])} pairs, and its "
                       f"timings have {len(one)} and {len(other)} samples")
            for index, ((a, b), given) in enumerate(zip(usable, row["log_ratios"])):
                if not math.isclose(math.log(a / b), given, rel_tol=_ROUNDING, abs_tol=_ROUNDING):
                    yield ("$.twinbench.speedups", f"log_ratios[{index}] of {name} is {given:.6g}, and samples_s of "
                           f"its timings give {math.log(a / b):.6g}")
                    break


def _null_test(block: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """'same' is said where the interval of every cell lies within the threshold; the noise is then its farthest ratio,
    and the pairs are as many as their intervals need."""
    test = (block["session"] or {}).get("null_test")
    if not test or test["verdict"] != "same" or not test["cells"]:
        return
    where = "$.twinbench.session.null_test"
    for cell in test["cells"]:
        edges = [cell["lower"] or 0, cell["upper"] or 0]
        if min(edges) <= 0 or max(abs(math.log(edge)) for edge in edges) > math.log1p(_SAME) + _ROUNDING:
            yield (where, f"its verdict is 'same', and the interval of {cell['cell']} against itself is "
                   f"{cell['lower']} to {cell['upper']}")
    floor = max(abs((cell["ratio"] or 0) - 1) for cell in test["cells"])
    if not math.isclose(test["noise_floor"] or 0, floor, rel_tol=_ROUNDING, abs_tol=_ROUNDING):
        yield f"{where}.noise_floor", f"it is {test['noise_floor']}, and the ratios of its cells give {floor:.6g}"
    values = [cell["n"] for cell in test["cells"]]  # pairs, or medians of blocks of pairs that lean on each other
    if not sum(values) <= test["pairs"] < sum((value + 1) * LARGEST_BLOCK for value in values):
        yield f"{where}.pairs", f"it counts {test['pairs']} pairs, and the intervals of its cells rest on {sum(values)}"


def _seeds(block: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The rows of a cell are of one draw of its inputs: of the run's seed, or of a later one where a row says that they
    were drawn again. A held-out case says its own."""
    runs = block.get("merged_from") or [block["provenance"]]
    given = sorted({run["seed"] for run in runs})
    cells: dict[str, list[Row]] = {}
    for row in block["parity"]:
        if row["check"] not in TOOLS and row["seed"] is not None:
            cells.setdefault(row["cell"], []).append(row)
    for name, rows in cells.items():
        seeds, where = {row["seed"] for row in rows}, f"$.twinbench.parity, seed of {name}"
        seed = min(seeds)
        again = any(row["check"] == "drawn_again" or row["verdict"] in ("fail", "error") for row in rows)
        drawn = next((row for row in rows if row["check"] == HELD_OUT and row["verdict"] == "pass"), None)
        if len(seeds) > 1:
            yield where, f"its rows are of the seeds {', '.join(map(str, sorted(seeds)))}, and a cell has one"
        elif drawn and drawn["reason"] and f" seed {seed}" not in drawn["reason"]:  # kept ones have none
            yield where, f"it is {seed}, and its row of {HELD_OUT} says: {drawn['reason']}"
        elif not name.endswith(f"/{HELD_OUT}") and seed not in given and not (
                again and any(seed > one and (seed - one) % _NEXT_SEED == 0 for one in given)):
            yield where, f"it is {seed}, and the run's --seed {', '.join(map(str, given))}"


def _times(block: dict[str, Any]) -> Iterator[tuple[str, str]]:
    latest = datetime.datetime.now(datetime.timezone.utc) + _CLOCKS_APART
    for where, run in (("provenance", block["provenance"]),
                       *((f"merged_from[{index}]", run) for index, run in enumerate(block.get("merged_from", [])))):
        try:
            moment = datetime.datetime.strptime(run["utc"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=datetime.timezone.utc)
        except ValueError:
            moment = None
        if moment is None or not _FIRST_DAY <= moment <= latest:
            yield (f"$.twinbench.{where}.utc", f"{run['utc']!r} is no time at which a run can have been: it is written "
                   f"as 2026-11-30T12:00:00Z, from {_FIRST_DAY:%Y-%m-%d} until tomorrow; was the clock set?")
