"""Puts several records of one revision and machine together into one."""

from __future__ import annotations

import copy
import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import Any

from twinbench_reports import machine
from twinbench_reports.cells import ROW_NAMES
from twinbench_reports.errors import ReportError
from twinbench_reports.exit_codes import FAIL, LIMIT, TOOL_ERROR
from twinbench_reports.judge.units import Units
from twinbench_reports.load import Record, check_record
from twinbench_reports.statistics.multiple import rate_at_most

_OUTCOMES = ("passed", "failed", "errors", "skipped", "inconclusive")
# Rows that describe rather than judge: every engine writes them, so that the same row twice is no conflict.
_DESCRIPTIONS = ("components", "ceilings")


def merge_records(records: Sequence[Record], *, latest: bool = False, other_boards: bool = False) -> dict[str, Any]:
    """One record with the rows of all. A row measured twice is refused, or taken from the latest record."""
    if not records:
        raise ReportError("there is nothing to merge", remedy="name at least one record")
    ordered = sorted(records, key=lambda record: (record.provenance["utc"], record.sha256))
    for other in ordered[1:]:
        _require_same(ordered[0], other, other_boards)
    _require_each_once(ordered)
    root = copy.deepcopy(ordered[-1].root)
    block = root["twinbench"]
    block["engines"] = list(dict.fromkeys(engine for record in ordered for engine in record.block["engines"]))
    for section in ROW_NAMES:
        block[section] = _merge_rows(ordered, section, latest or section in _DESCRIPTIONS)
    root["benchmarks"] = _merge_benchmarks(ordered, latest)
    block["session"] = _merge_sessions([record.block["session"] for record in ordered])
    block["timelines"] = _merge_timelines([record.block.get("timelines", []) for record in ordered])
    block["ledger"] = _merge_ledgers(ordered, block)
    block["merged_from"] = [source for record in ordered for source in _sources(record)]
    for record in ordered:
        block["provenance"]["source_hashes"].update(record.provenance["source_hashes"])
    check_record(root, "the merged record")
    return root


def load_merged(records: Sequence[Record], *, latest: bool = False, other_boards: bool = False) -> Record:
    """The only record as it is, or the merger of several. Its checksum covers theirs, in any order given."""
    if len(records) == 1:
        return records[0]
    root = merge_records(records, latest=latest, other_boards=other_boards)
    digest = hashlib.sha256("\n".join(sorted(record.sha256 for record in records)).encode()).hexdigest()
    return Record(" + ".join(sorted(record.path for record in records)), digest, root)


def _require_same(first: Record, other: Record, other_boards: bool) -> None:
    one, two = first.provenance, other.provenance
    if one["revision"] != two["revision"]:
        raise ReportError(f"its revision {two['revision']} is not {one['revision']} of {first.path}", file=other.path,
                          path="$.twinbench.provenance.revision",
                          remedy="merge records of one revision; compare two with gate --baseline")
    identity = machine.model if other_boards else machine.board
    differ = machine.differences(identity(one), identity(two)) + machine.differences(
        machine.toolchain(one), machine.toolchain(two))
    if differ:
        raise ReportError(f"another machine or build than {first.path}: {'; '.join(differ)}", file=other.path,
                          path="$.twinbench.provenance", remedy="report each machine by itself"
                          + ("" if other_boards else "; --other-boards allows several boards of one model"))
    for component in sorted(one["source_hashes"].keys() & two["source_hashes"].keys()):
        if one["source_hashes"][component] != two["source_hashes"][component]:
            raise ReportError(f"the sources of {component} differ from {first.path}, though the revision is the same",
                              file=other.path, path=f"$.twinbench.provenance.source_hashes.{component}",
                              remedy="run both again from one working tree")


def _require_each_once(records: Sequence[Record]) -> None:
    """A run that is counted twice would support more than was measured."""
    held_by: dict[str, str] = {}
    for record in records:
        for source in _sources(record):
            if source["sha256"] in held_by:
                raise ReportError(f"the run {source['sha256'][:12]} of {source['utc']} is in "
                                  f"{held_by[source['sha256']]} already", file=record.path,
                                  path="$.twinbench.merged_from", remedy="name each record once")
            held_by[source["sha256"]] = record.path


def _merge_rows(records: Sequence[Record], section: str, latest: bool) -> list[dict[str, Any]]:
    rows: dict[str, tuple[str, dict[str, Any]]] = {}
    for record in records:
        for index, row in enumerate(record.block.get(section, [])):
            name = ROW_NAMES[section](row)
            if name in rows and not latest:
                raise ReportError(f"{section} has {name} already, from {rows[name][0]}", file=record.path,
                                  path=f"$.twinbench.{section}[{index}]",
                                  remedy="name the records once each, or pass --latest")
            rows[name] = (record.path, row)
    return [row for _, row in rows.values()]


def _merge_benchmarks(records: Sequence[Record], latest: bool) -> list[dict[str, Any]]:
    """Google Benchmark's rows repeat by name (repetitions), so a whole name is replaced, never a single row."""
    by_name: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        fresh: dict[str, list[dict[str, Any]]] = {}
        for row in record.root["benchmarks"]:
            fresh.setdefault(row["name"], []).append(row)
        for name, rows in fresh.items():
            by_name[name] = rows if latest else by_name.get(name, []) + rows
    return [row for rows in by_name.values() for row in rows]


def _merge_sessions(sessions: Sequence[dict[str, Any] | None]) -> dict[str, Any] | None:
    """The worst of the sessions: one null test that is not `same` spoils the times of all."""
    present = [session for session in sessions if session]
    if not present:
        return None
    tests = [session["null_test"] for session in present if session["null_test"]]
    merged: dict[str, Any] = {"null_test": None}
    for key in ("dispatcher_ns_per_call", "clock_resolution_ns"):
        merged[key] = max((session[key] for session in present if session[key] is not None), default=None)
    # One timer a machine: of several sessions the one with a failed self-test, else the last.
    devices = [session["device"] for session in present if session.get("device")]
    if devices:
        failed = [device for device in devices if "fail" in (device["hold"]["verdict"], device["flush"]["verdict"])]
        merged["device"] = (failed or devices)[-1]
    qualified = [session["qualification"] for session in present if session.get("qualification")]
    if qualified:
        merged["qualification"] = _joined_qualification(qualified)
    if tests:
        worst = next((test for verdict in ("slower", "faster", "inconclusive")
                      for test in tests if test["verdict"] == verdict), tests[0])
        merged["null_test"] = dict(
            worst, pairs=sum(test["pairs"] for test in tests), cells=[cell for test in tests for cell in test["cells"]],
            noise_floor=max((test["noise_floor"] for test in tests if test["noise_floor"] is not None), default=None))
    return merged


def _joined_qualification(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Counts add up; what they support is computed anew."""
    joined = dict(parts[0])
    for name in ("comparisons", "false_verdicts", "undecided", "planted", "misses", "planted_too_noisy",
                 "planted_wrong"):
        joined[name] = sum(part[name] for part in parts)
    joined["false_rate_at_most"] = rate_at_most(joined["false_verdicts"], joined["comparisons"], joined["confidence"])
    joined["power_at_least"] = 1 - rate_at_most(joined["misses"], joined["planted"], joined["confidence"])
    return joined


def _merge_timelines(parts: Sequence[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """All of them one after the other; the same absence is said once."""
    merged: list[dict[str, Any]] = []
    for row in (row for part in parts for row in part):
        if row not in merged:
            merged.append(row)
    return merged


def _merge_ledgers(records: Sequence[Record], block: dict[str, Any]) -> dict[str, Any]:
    """What the rows of the merged record show, and what the ledgers count beside their rows: crashes, sessions."""
    ledgers = [record.block["ledger"] for record in records]
    shown = Units(block)
    total, reasons = Counter(shown.outcomes), Counter(shown.reasons)
    planned = sum(shown.outcomes.values())
    for record, ledger in zip(records, ledgers):
        own = Units(record.block)
        total.update({key: ledger[key] - own.outcomes[key] for key in _OUTCOMES})
        planned += ledger["planned"] - sum(own.outcomes.values())
        reasons.update({reason: count - own.reasons[reason] for reason, count in ledger["skip_reasons"].items()})
    merged: dict[str, Any] = {"planned": max(0, planned)} | {key: max(0, total[key]) for key in _OUTCOMES}
    if merged["failed"] or merged["errors"]:
        merged["exit_code"] = next((code for code in (FAIL, TOOL_ERROR, LIMIT)
                                    if any(ledger["exit_code"] == code for ledger in ledgers)), FAIL)
    else:
        lost = merged["planned"] > sum(merged[key] for key in _OUTCOMES)
        merged["exit_code"] = 3 if lost or merged["inconclusive"] or not merged["passed"] else 0
    merged["skip_reasons"] = {reason: count for reason, count in sorted(reasons.items()) if count > 0}
    return merged


def _sources(record: Record) -> list[dict[str, Any]]:
    if record.block.get("merged_from"):
        return record.block["merged_from"]
    provenance = record.provenance
    return [{"sha256": record.sha256, "utc": provenance["utc"], "engines": record.block["engines"],
             "command_line": provenance["command_line"], "seed": provenance["seed"]}]
