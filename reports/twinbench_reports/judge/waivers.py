"""Waivers: reviewed exceptions with a limit, a reason, an owner and an expiry date."""

from __future__ import annotations

import dataclasses
import datetime
import fnmatch
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twinbench_reports.errors import ReportError
from twinbench_reports.judge.findings import Finding
from twinbench_reports.load import read_bytes
from twinbench_reports.text import plain

LONGEST = datetime.timedelta(days=90)
_TYPES = {"match": (str,), "kind": (str,), "limit": (int, float), "reason": (str,), "owner": (str,),
          "expiry": (datetime.date,)}  # exactly these: a date with a time, and a truth value, are neither
_LARGEST = 1e100


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
        root = tomllib.loads(read_bytes(path).decode())
    except (ValueError, RecursionError) as error:  # also a number of thousands of digits, and tables without end
        raise ReportError(f"not TOML: {error}", file=str(path), remedy="write [[waiver]] tables") from error
    unknown = sorted(set(root) - {"waiver"})
    if unknown:
        raise ReportError(f"unknown table {unknown[0]!r}", file=str(path), path=unknown[0],
                          remedy="write [[waiver]] tables and nothing else")
    tables = root.get("waiver", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise ReportError("it is no list of tables", file=str(path), path="waiver", remedy="write [[waiver]] tables")
    return [_waiver(table, str(path), f"waiver[{index}]") for index, table in enumerate(tables)]


def _waiver(table: dict[str, Any], file: str, where: str) -> Waiver:
    for key, kinds in _TYPES.items():
        value = table.get(key)
        if type(value) not in kinds or value == "" or (key == "limit" and not 0 <= value <= _LARGEST):
            raise ReportError(f"{key} is missing or of the wrong type", file=file, path=f"{where}.{key}",
                              remedy=f"give {', '.join(_TYPES)}; limit as a number from 0 to {_LARGEST:g}, expiry as a "
                              "bare date such as 2026-01-31")
    unknown = sorted(set(table) - set(_TYPES))
    if unknown:
        raise ReportError(f"unknown key {unknown[0]!r}", file=file, path=where, remedy=f"use only {', '.join(_TYPES)}")
    texts = {key: plain(value) for key, value in table.items() if isinstance(value, str)}
    return Waiver(**table | texts)


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
