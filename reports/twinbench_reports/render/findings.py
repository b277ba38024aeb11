"""Alike remarks in groups; and what `gate` prints: the groups, each failure, then the verdict: a log's end says why."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby

from twinbench_reports.judge.findings import SEVERITIES, Finding, Verdict
from twinbench_reports.render.columns import Style
from twinbench_reports.text import plain

SHOWN = 3  # of a group of remarks; all of them are in the verdict file


def findings_text(verdict: Verdict, style: Style, *, quiet: bool = False) -> str:
    """Lines from the least severe finding to the worst, the verdict last. Failures are never shortened."""
    lines = [] if quiet else list(_lines(verdict, style))
    return "\n".join([*lines, style.paint(f"{verdict.word}: {verdict.headline}", verdict.word)]) + "\n"


def _lines(verdict: Verdict, style: Style) -> Iterator[str]:
    for finding in verdict.waived:
        yield f"waived {finding.kind} {plain(finding.subject)}: {plain(finding.waiver)}"
    for severity in reversed(SEVERITIES):
        for shown, more in alike(verdict.of(severity)):
            for finding in shown:
                yield (f"{style.paint(finding.severity, finding.severity)} {finding.kind} {plain(finding.subject)}: "
                       f"{plain(finding.text)}")
                if finding.reproduce and severity != "notice":
                    yield f"    {plain(finding.reproduce)}"
            if more:
                yield f"    and {len(more)} more like it (all of them: --verdict FILE)"


def alike(findings: list[Finding]) -> list[tuple[list[Finding], list[Finding]]]:
    """Groups of findings of one severity: those to show, and those more that are like them. Every failure is shown."""
    groups = []
    for _, members in groupby(sorted(findings, key=_group), key=_group):
        group = list(members)
        shown = len(group) if group[0].severity == "fail" else SHOWN
        groups.append((group[:shown], group[shown:]))
    return groups


def _group(finding: Finding) -> tuple[str, str]:
    """Remarks are alike that differ in their subject and in numbers only."""
    return finding.kind, re.sub(r"\d[\d.,]*", "#", finding.message)
