"""Rules that need no clock: parity, counters, proofs, scenarios, self-test, modelled times.

A "pass" that contradicts its numbers fails.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from typing import Any

from twinbench_reports.cells import JUDGED_SECTIONS, Row, named_rows
from twinbench_reports.judge import modelled
from twinbench_reports.judge.findings import Finding
from twinbench_reports.judge.reproduce import reproduce
from twinbench_reports.statistics.paired import estimate_ratio

LEAST_CONFIDENCE = 0.9  # of an interval that is shown beside a speedup
# Between a speedup of pairs and the one of the variants' medians: measured up to 2 on a machine that others used.
MOST_APART = 5
ROUNDING = 1e-6  # of errors as written


def judge_correctness(block: dict[str, Any]) -> Iterator[Finding]:
    """A finding for every row that did not pass, or that says it passed and shows otherwise."""
    for section in JUDGED_SECTIONS:
        for name, row in named_rows(block, section):
            command = reproduce(section, row)
            if row["verdict"] in ("fail", "error", "rejected"):
                word = {"error": "crashed or could not run",
                        "rejected": "broke a rule when it was timed"}.get(row["verdict"], "failed")
                yield Finding("fail", section, name, row["reason"] or f"{word}, and gave no reason", command,
                              magnitude(section, row) if row["verdict"] == "fail" else None)
            elif row["verdict"] == "pass":
                contradiction = _CONTRADICTIONS[section](row)
                if contradiction:
                    yield Finding("fail", section, name, f"says pass, but {contradiction}", command,
                                  magnitude(section, row))
            elif not row["reason"]:
                yield Finding("inconclusive", section, name, "skipped without a reason", command)
    yield from _judge_speedups(block)


def _judge_speedups(block: dict[str, Any]) -> Iterator[Finding]:
    """Neither may a speedup stand on a rejected timing, nor be another than its pairs give, nor a
    rejected speedup hold a figure; and it is a failure by itself."""
    rejected = {row["cell"] for row in block["timings"] if row["verdict"] == "rejected"}
    medians = {row["cell"]: row["median_s"] for row in block["timings"]}
    for name, row in named_rows(block, "speedups"):
        sides = [f"{row['component']}/{row[side]}/{row['device']}/{row['dtype']}/{row['case']}"
                 for side in ("from", "to")]
        spoilt = [cell for cell in sides if cell in rejected]
        command = reproduce("speedups", row)
        if row["ratio"] is not None and (spoilt or row["verdict"] == "rejected"):
            yield Finding(
                "fail", "speedups", name,
                f"holds a speedup, but {spoilt[0] if spoilt else 'a side'} was rejected", command)
        elif row["verdict"] == "rejected" and not spoilt:
            yield Finding("fail", "speedups", name, row["reason"] or "rejected, and gave no reason", command)
        elif row["ratio"] is not None:
            wrong = _speedup(row) or _other_medians(row, *(medians.get(cell) for cell in sides))
            if wrong:
                yield Finding("fail", "speedups", name, f"holds a speedup, but {wrong}", command)


def magnitude(section: str, row: Row) -> float | None:
    """How far beyond the allowed the row is, where that is a number."""
    if section == "parity":
        ratios = [output["worst_ratio"] for output in row["outputs"]]
        return None if not ratios or None in ratios else max(ratios)
    if section == "proofs":
        sides = [row[side] for side in ("baseline", "optimized")]
        gaps = [
            abs(side["measured"] - side["expected"]) for side in sides
            if None not in (side["measured"], side["expected"])]
        return float(max(gaps)) if len(gaps) == 2 else None
    if section == "modelled":
        return modelled.magnitude(row, row["pinned"])
    if section == "counters":
        excess = counter_differences(row["values"], row["pinned"] or {})
        return float(max((abs(now - pin) for _, now, pin in excess if now is not None), default=0)) or None
    return None


def counter_differences(values: dict[str, int | None],
                        expected: dict[str, int | None]) -> list[tuple[str, int | None, int]]:
    """(counter, now, expected) for every expected counter that is another number now, or is gone."""
    return [(name, values.get(name), pin) for name, pin in sorted(expected.items())
            if pin is not None and values.get(name) != pin]


def _parity(row: Row) -> str:
    if row["check"] == "oracle" and row["reason"]:  # other checks say what was drawn, or how a mistake was rejected
        return f"says {row['reason']}"
    if row["check"] == "oracle" and not row["outputs"]:
        return "no output was compared"
    for output in row["outputs"]:
        ratio = output["worst_ratio"]
        if ratio is None:
            return f"the error of {output['name']} is not a finite number"
        if ratio < 0 or (output["elements"] == 0 and ratio > 0):
            return f"{ratio:.3g} is no error of {output['elements']} elements of {output['name']}"
        if ratio > 1:
            return f"the error of {output['name']} is {ratio:.3g} times the allowed one"
        wrong = _errors(output)
        if wrong:
            return wrong
    vacuity = row["vacuity"]
    if row["check"] == "vacuity" and not (vacuity and vacuity["checked"]):
        return "no planted wrong answer was shown to the comparator"
    if vacuity and vacuity["rejected"] < vacuity["checked"]:
        return f"the comparator rejected only {vacuity['rejected']} of {vacuity['checked']} planted wrong answers"
    return ""


def _errors(output: Row) -> str:
    """What contradicts that the largest error and the mean one are of the same elements."""
    largest, mean = output["max_absolute_error"], output["rmse"]
    if largest is None and mean is None:
        return ""
    if largest is None or mean is None:
        return f"of {output['name']}'s largest error and the mean one only one was measured"
    most = mean * math.sqrt(output["elements"])
    if not mean * (1 - ROUNDING) <= largest <= most * (1 + ROUNDING):
        return (f"an error of {largest:.3g} at most and one of {mean:.3g} in the mean cannot both be of "
                f"{output['elements']:,} elements of {output['name']}")
    return ""


def _counters(row: Row) -> str:
    differences = counter_differences(row["values"], row["pinned"] or {})
    if differences:
        return "; ".join(f"{name} is {now} and pinned at {pin}" for name, now, pin in differences)
    for side, use in (row.get("memory") or {}).items():
        if use and use["leaked_bytes"]:
            return f"{use['leaked_bytes']:,} bytes of the {side}'s memory outlive the case"
    return ""


def _proof(row: Row) -> str:
    for side in ("baseline", "optimized"):
        expected, measured = row[side]["expected"], row[side]["measured"]
        if expected is None or measured is None:
            return f"{row['counter']} of the {side} variant was not counted"
        if expected != measured:
            return f"{row['counter']} of the {side} variant is {measured}, and its formula gives {expected}"
    return ""


def _timing(row: Row) -> str:
    if row["n"] == 0 or row["median_s"] is None:
        return "it holds no sample"
    samples = row["samples_s"]
    if len(samples) != row["n"] or not all(0 < sample < math.inf for sample in samples):
        return f"n is {row['n']}, and of {len(samples)} samples not all are times"
    if not math.isclose(row["median_s"], statistics.median(samples), rel_tol=1e-6):
        return f"its median is {row['median_s']:.6g} s, and its samples give {statistics.median(samples):.6g}"
    if row["impossible_below_s"] and row["median_s"] < row["impossible_below_s"]:
        return f"{row['median_s']:.3g} s is faster than possible: the physical floor is {row['floor_s']:.3g} s"
    return ""


def _speedup(row: Row) -> str:
    """What contradicts the pairs that the figures rest on."""
    if row["confidence"] < LEAST_CONFIDENCE:
        return f"its interval has a confidence of {row['confidence']:.3g}; at least {LEAST_CONFIDENCE} is wanted"
    found = estimate_ratio(row["log_ratios"], row["confidence"])
    made = {"n": found.count, "ratio": math.exp(found.log_ratio), "lower": None, "upper": None}  # of few pairs: none
    if found.interval:
        made["lower"], made["upper"] = map(math.exp, found.interval)
    for name, value in made.items():
        given = row[name]
        if (given is None) != (value is None) or (value is not None and not math.isclose(given, value, rel_tol=1e-6)):
            return f"{name} is {given}, and its pairs give {'none' if value is None else f'{value:.6g}'}"
    return ""


def _other_medians(row: Row, from_s: float | None, to_s: float | None) -> str:
    """What contradicts the medians of the same runs; other work on the machine parts them a little."""
    if not from_s or not to_s or 1 / MOST_APART < row["ratio"] * to_s / from_s < MOST_APART:
        return ""
    return f"its pairs give {row['ratio']:.3g}, and the medians of its two variants {from_s / to_s:.3g}"


def _scenario(row: Row) -> str:
    bad = [criterion["name"] for criterion in row["criteria"] if criterion["verdict"] in ("fail", "error")]
    if bad:
        return f"the criterion {bad[0]!r} failed"
    if not any(criterion["verdict"] == "pass" for criterion in row["criteria"]):
        return "no criterion was judged"
    return ""


def _selftest(row: Row) -> str:
    # A wrong twin may be caught by more checks than the one that must catch it.
    return "" if row["expected"] in row["got"].split(",") else f"expected {row['expected']!r} and got {row['got']!r}"


_CONTRADICTIONS = {
    "parity": _parity,
    "counters": _counters,
    "proofs": _proof,
    "timings": _timing,
    "scenarios": _scenario,
    "selftest": _selftest,
    "modelled": lambda row: modelled.drop(row, row["pinned"])}
