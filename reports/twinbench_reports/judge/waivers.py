"""Waivers: reviewed exceptions with a limit, a reason, an owner and an expiry date."""

from __future__ import annotations

import dataclasses
import datetime
import fnmatch
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from twinbench_reports.errors import ReportError
from twinbench_reports.judge.findings import Finding
from twinbench_reports.load import read_bytes

LONGEST = datetime.timedelta(days=90)


@dataclass(frozen=True)
class Waiver:
    """Excuses failures of `kind` whose subject matches the shell pattern, up to `limit` and until `expiry`."""

    match: str
    kind: str
    limit: float
    reason: str
    owner: str
    expiry: datetime.date


def load_waivers(path: str | Path) -> list[Waiver]:
    """Reads the [[waiver]] tables of a TOML file. Every key is required."""
    try:
        tables = tomllib.loads(read_bytes(path).decode()).get("waiver", [])
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ReportError(f"not TOML: {error}", file=str(path), remedy="write [[waiver]] tables") from error
    types = {"match": str, "kind": str, "limit": (int, float), "reason": str, "owner": str, "expiry": datetime.date}
    waivers = []
    for index, table in enumerate(tables):
        where = f"waiver[{index}]"
        for key, kind in types.items():
            if key not in table or isinstance(table[key], bool) or not isinstance(table[key], kind) or table[key] == "":
                raise ReportError(f"{key} is missing or of the wrong type", file=str(path), path=f"{where}.{key}",
                                  remedy=f"give {', '.join(types)}; expiry as a bare date such as 2026-01-31")
        unknown = sorted(set(table) - set(types))
        if unknown:
            raise ReportError(f"unknown key {unknown[0]!r}", file=str(path), path=where,
                              remedy=f"use only {', '.join(types)}")
        waivers.append(Waiver(**table))
    return waivers


def apply_waivers(findings: Sequence[Finding], waivers: Sequence[Waiver],
                  today: datetime.date) -> tuple[list[Finding], list[Finding]]:
    """(what stands, what is waived). Expired, too long and unused waivers excuse nothing and are reported."""
    standing, waived, used = [], [], set()
    valid = [waiver for waiver in waivers if today <= waiver.expiry <= today + LONGEST]
    for finding in findings:
        waiver = next((candidate for candidate in valid if _covers(candidate, finding)), None)
        if waiver is None:
            standing.append(finding)
        else:
            used.add(waiver)
            note = f"up to {waiver.limit:g} until {waiver.expiry}, {waiver.owner}: {waiver.reason}"
            waived.append(dataclasses.replace(finding, waiver=note))
    for waiver in waivers:
        if waiver.expiry < today:
            standing.append(
                Finding("notice", "waiver", waiver.match,
                        f"expired on {waiver.expiry} and is ignored ({waiver.owner})"))
        elif waiver not in valid:
            standing.append(
                Finding("notice", "waiver", waiver.match,
                        f"expires on {waiver.expiry}, more than {LONGEST.days} days ahead, and is ignored"))
        elif waiver not in used:
            standing.append(Finding("notice", "waiver", waiver.match, f"excuses nothing: remove it ({waiver.owner})"))
    return standing, waived


def _covers(waiver: Waiver, finding: Finding) -> bool:
    return (finding.severity in ("fail", "inconclusive") and finding.kind == waiver.kind
            and finding.magnitude is not None and finding.magnitude <= waiver.limit
            and _matches(waiver.match, finding.subject))


def _matches(pattern: str, subject: str) -> bool:
    """Shell wildcards, with [ and ] literal: subjects end in "[check]"."""
    return fnmatch.fnmatchcase(subject, pattern.replace("[", "[[]"))
