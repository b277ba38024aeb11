"""Rules for times: a speedup against its earlier value by interval, behind the null test."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

from twinbench_reports import machine
from twinbench_reports.cells import Row, named_rows, parse_cell
from twinbench_reports.judge.findings import Finding
from twinbench_reports.judge.reproduce import program, reproduce, reproduce_cell
from twinbench_reports.load import Record
from twinbench_reports.statistics.multiple import benjamini_hochberg
from twinbench_reports.statistics.speedups import Change, log_change, loss_p_value

HELD_OUT = "held_out"  # the case whose sizes each revision draws anew
SMALLEST_LOSS = 0.03  # a smaller loss of speedup is not worth a red gate
# What a gate needs: with no false verdict and no miss, at most 0.5 % and at least 99 % at 95 % confidence.
COMPARISONS_WANTED, PLANTED_WANTED = 600, 300
BLIND = 3  # an interval that could hide so many times that loss decides nothing


def judge_timing(now: Record, before: Record | None, *, advisory: bool) -> Iterator[Finding]:
    """Findings about time. In advisory mode they are notices only, but for times that are not believed at all."""
    why = disbelief(now.block)
    if why:
        yield Finding("inconclusive", "speedups", "null test", f"{why}. No time of this session is believed",
                      f"{program()} bench")
        return
    for finding in _judge(now, before):
        yield dataclasses.replace(finding, severity="notice") if advisory else finding


def disbelief(block: dict[str, Any]) -> str:
    """Why no time of the session is believed; "" where they are. Then no page may show them as if they were."""
    if not block["speedups"]:
        return ""
    word = null_test_word(block)
    if word != "same":
        return f"a twin compared with itself: {word}"
    test = block["session"]["null_test"]
    if not test["pairs"] or not test["cells"]:
        return "the null test says 'same' of no pair"
    if 2 * BLIND * (test["noise_floor"] or 0) >= 1:
        return f"a twin compared with itself differs by up to {100 * test['noise_floor']:.0f} %: no loss can be told"
    q = (block["session"] or {}).get("qualification")
    if q and (q["false_verdicts"] or q["misses"] or q["planted_wrong"]):
        return f"the gate judged wrongly where the verdict was known: {qualification_text(block)}"
    return ""


def null_test_word(block: dict[str, Any]) -> str:
    """The verdict of the null test, or that there was none."""
    test = (block["session"] or {}).get("null_test")
    return test["verdict"] if test else "not run"


def _short_of(q: dict[str, Any]) -> str:
    """What is missing to the counts that a qualified gate has, and why."""
    missing = []
    if q["comparisons"] < COMPARISONS_WANTED:
        missing.append(f"{COMPARISONS_WANTED - q['comparisons']:,} of {COMPARISONS_WANTED} comparisons with itself")
    if q["planted"] < PLANTED_WANTED:
        missing.append(f"{PLANTED_WANTED - q['planted']:,} of {PLANTED_WANTED} planted ones")
    return f"; to a qualified gate it lacks {' and '.join(missing)}" if missing else ""


def qualification_text(block: dict[str, Any]) -> str:
    """What the gate showed on comparisons whose verdict was known, with what the counts support; "" if never asked."""
    q = (block["session"] or {}).get("qualification")
    if not q:
        return ""
    confidence = f"at {100 * q['confidence']:.0f} % confidence"
    return (f"gate qualified by {q['comparisons']:,} comparisons of a cell with itself, {q['false_verdicts']} false "
            f"verdicts (at most {100 * q['false_rate_at_most']:.2f} % {confidence}; {q['undecided']:,} undecided), and "
            f"by {q['planted']:,} with {100 * q['planted_share']:.0f} % more work at noise up to "
            f"{100 * q['noise_limit']:.0f} %, {q['misses']} missed (it finds at least "
            f"{100 * q['power_at_least']:.1f} %); {q['planted_too_noisy']:,} noisier or slower ones count for nothing"
            f"{_short_of(q)}")


def smallest_loss(block: dict[str, Any]) -> float:
    """The loss that the gate looks for: never below twice what the null test saw."""
    test = (block["session"] or {}).get("null_test")
    return max(SMALLEST_LOSS, 2 * ((test or {}).get("noise_floor") or 0))


def _judge(now: Record, before: Record | None) -> Iterator[Finding]:
    speedups = list(named_rows(now.block, "speedups"))
    if not speedups:
        return
    for name, row in speedups:
        yield from _judge_alone(name, row)
    if before is None or not before.block["speedups"]:
        return
    differ = machine.differences(machine.model(now.provenance), machine.model(before.provenance))
    if differ:
        yield Finding("inconclusive", "speedups", "baseline record",
                      "it is of another machine, so its times are not compared: " + "; ".join(differ))
        return
    yield from _judge_against(now, before, dict(speedups))
    yield from _slower_by_itself(now, before)


def _slower_by_itself(now: Record, before: Record) -> Iterator[Finding]:
    """A note of optimized variants whose own time grew on the same machine: a ratio does not show what slows both
    sides, or the baseline more. No verdict: other load on the machine does it, too."""
    if machine.differences(machine.board(now.provenance), machine.board(before.provenance)):
        return
    limit = 1 + smallest_loss(now.block)
    earlier = dict(named_rows(before.block, "timings"))
    grown = []
    for name, row in named_rows(now.block, "timings"):
        old, cell = earlier.get(name), parse_cell(name)
        if old is None or cell.variant != "optimized" or cell.case == HELD_OUT:
            continue
        if {row["verdict"], old["verdict"]} == {"pass"} and row["q1_s"] > old["q3_s"] and (
                row["median_s"] > limit * old["median_s"]):
            grown.append((row["median_s"] / old["median_s"], name))
    if grown:
        most, name = max(grown)
        yield Finding("notice", "timings", name,
                      f"its own time is {most:.2f} times that of the baseline record, beyond the quartiles of both, as "
                      f"are those of {len(grown) - 1} more optimized variants, on the same machine. If it is as quiet "
                      "as then, both sides became slower, which no speedup shows",
                      reproduce_cell("bench", name))


def _judge_alone(name: str, row: Row) -> Iterator[Finding]:
    command = reproduce("speedups", row)
    usable = usable_triple(row)
    if row["verdict"] == "faster" and (not usable or usable[1] <= 1):
        yield Finding("inconclusive", "speedups", name, "says faster, but its interval reaches 1x or is not there",
                      command)
    elif row["verdict"] == "slower" and row["to"] == "optimized":
        at = f"{usable[0]:.3g}x [{usable[1]:.3g}, {usable[2]:.3g}]" if usable else "no interval"
        yield Finding("notice", "speedups", name, f"the optimized variant is slower than {row['from']}: {at}", command)
    elif row["verdict"] == "inconclusive":
        yield Finding("notice", "speedups", name, f"no decision: {row['reason'] or 'no reason given'}", command)


def _judge_against(now: Record, before: Record, speedups: dict[str, Row]) -> Iterator[Finding]:
    limit = smallest_loss(now.block)
    changes: dict[str, Change] = {}
    for name, old in named_rows(before.block, "speedups"):
        new = speedups.get(name)
        if old["case"] == HELD_OUT:
            continue  # its sizes are another revision's
        if new is None or old["from"] == "library" or not (old_triple := usable_triple(old)):
            continue  # a vanished row is the missing rule's; the library variant is not ours to gate
        if not (new_triple := usable_triple(new)):
            yield Finding("inconclusive", "speedups", name,
                          f"it has no interval now: {new['reason'] or new['verdict']}", reproduce("speedups", new))
            continue
        changes[name] = log_change(new_triple, old_triple)
    drift = machine.same_code(now.provenance, before.provenance)
    rejected = benjamini_hochberg([loss_p_value(change) for change in changes.values()])
    for (name, change), believable in zip(changes.items(), rejected):
        lost, lower, upper = (100 * math.expm1(value) for value in change)
        text = (f"the speedup changed by {lost:+.1f} % [{lower:+.1f}, {upper:+.1f}] against the baseline record; the "
                f"gate looks for -{100 * limit:.1f} %")
        command = reproduce("speedups", speedups[name])
        beyond = change.estimate <= math.log1p(-limit)
        if drift:
            if beyond:
                yield Finding("notice", "speedups", name,
                              f"{text}. Both records ran the same code: the environment drifted", command)
        elif beyond and change.upper < 0 and believable:
            yield Finding("fail", "speedups", name, text, command, -math.expm1(change.estimate))
        elif beyond or change.lower <= math.log1p(-BLIND * limit):
            yield Finding("inconclusive", "speedups", name, f"{text}: more pairs would decide", command,
                          -math.expm1(change.lower))
        elif change.estimate >= -math.log1p(-limit) and change.lower > 0:
            yield Finding("notice", "speedups", name, f"{text}. Faster: renew the baseline record", command)


def usable_triple(row: Row) -> tuple[float, float, float] | None:
    """(ratio, lower, upper) of a speedup that has all three."""
    values = row["ratio"], row["lower"], row["upper"]
    if any(value is None or value <= 0 or not math.isfinite(value) for value in values):
        return None
    return values if values[1] <= values[0] <= values[2] else None
