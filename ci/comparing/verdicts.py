"""From measured series to findings: what is said of each cell, with size, interval, cause and how to see it again."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from comparing.timing import CellTimes, Series
from twinbench_reports.judge.findings import Finding
from twinbench_reports.statistics import looks
from twinbench_reports.statistics.looks import FASTER, SLOWER, UNDECIDED, Rule

METRIC_WORDS = {"real_time": "wall time", "cpu_time": "CPU time"}
LIMIT_OF_WORDS = 3  # causes named in one line


def time_findings(cells: Sequence[CellTimes], rule: Rule, causes: Mapping[str, str], reproduce: Mapping[str, str],
                  disbelieved: str) -> Iterator[Finding]:
    """A finding for every metric of every cell that is not simply the same. `disbelieved`: why no time counts."""
    for cell in cells:
        command = reproduce.get(cell.name, "")
        if cell.error:
            yield Finding("missing", "times", cell.name, f"not timed: {cell.error}", command)
            continue
        for metric, series in cell.series.items():
            subject, text = f"{cell.name} [{METRIC_WORDS[metric]}]", size_text(series, rule)
            if disbelieved:
                if series.verdict != UNDECIDED:
                    yield Finding("inconclusive", "times", subject, f"{text}; not believed: {disbelieved}", command)
            elif series.verdict == SLOWER:
                yield Finding("fail", "times", subject, f"slower {text}, confirmed by a fresh run", command,
                              looks.estimate(series.blocks, rule).change, cause=cause(cell, metric, causes, rule))
            elif series.verdict == UNDECIDED:
                yield Finding("inconclusive", "times", subject, f"{text}: {series.reason}".lstrip(": "), command)
            elif series.verdict == FASTER:
                yield Finding("notice", "times", subject, f"faster {text}")
    if disbelieved:
        yield Finding("inconclusive", "times", "null test", f"{disbelieved}. No time of this run is believed")


def cause(cell: CellTimes, metric: str, causes: Mapping[str, str], rule: Rule = looks.RULE) -> str:
    """What the counts say; without one, whether the time is spent or waited."""
    if cell.name in causes:
        return causes[cell.name]
    wall, cpu = (looks.estimate(cell.series[name].blocks, rule) for name in ("real_time", "cpu_time"))
    if metric == "real_time" and cell.series["cpu_time"].verdict != SLOWER:
        return "waiting: the CPU time is not longer"
    if metric == "real_time" and None not in (wall.lower, cpu.upper) and wall.lower > cpu.upper:
        return f"waiting, most of it: the CPU time is {cpu.change:+.1%} only"
    return "same counts: caches, layout or uncounted work"


def size_text(series: Series, rule: Rule) -> str:
    """+6.2 % [+5.1, +7.4], 20 blocks, +1.1 % or more would have been seen."""
    if not series.blocks:
        return ""
    found = looks.estimate(series.blocks, rule)
    interval = "no interval" if found.lower is None else f"[{found.lower:+.1%}, {found.upper:+.1%}]"
    seen = "" if found.detectable is None else f", {found.detectable:+.1%} or more would have been seen"
    return f"{found.change:+.1%} {interval}, {found.blocks} blocks{seen}"


def by_component(findings: Sequence[Finding]) -> dict[str, str]:
    """The causes that counts found, by component: a cell of the same component is likely slower for the same."""
    found: dict[str, list[str]] = {}
    for finding in findings:
        if finding.cause:
            name = finding.subject.split("/")[0].replace("::", ".").rsplit(".Forward", 1)[0]
            found.setdefault(name, []).append(f"{finding.cause} ({finding.kind})")
    return {name: ", ".join(list(dict.fromkeys(words))[:LIMIT_OF_WORDS]) for name, words in found.items()}


def again(script: str, base: str, head: str, pattern: str) -> str:
    """The command that compares one cell once more."""
    return " ".join([script, *(shlex.quote(word) for word in (base, head, "--filter", f"^{pattern}$"))])
