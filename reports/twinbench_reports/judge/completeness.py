"""Rules about what is not there: vanished rows, unexplained gaps, nothing measured at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from twinbench_reports.cells import JUDGED_SECTIONS, Row, named_rows
from twinbench_reports.judge.findings import Finding
from twinbench_reports.judge.reproduce import program, reproduce
from twinbench_reports.judge.timing import disbelief

TURN = "not this case's turn"  # in tier quick revisions take turns with the rules that need further runs


def count_rows(block: dict[str, Any]) -> dict[str, int]:
    """How many rows were judged, passed, failed, skipped or left open, over all sections."""
    counts = {"judged": 0, "passed": 0, "failed": 0, "skipped": 0, "inconclusive": 0}
    for section in JUDGED_SECTIONS:
        for _, row in named_rows(block, section):
            key = {"pass": "passed", "skip": "skipped"}.get(row["verdict"], "failed")
            counts[key] += 1
            counts["judged"] += key != "skipped"
    believed = not disbelief(block)
    for _, row in named_rows(block, "speedups"):
        key = "judged" if believed and row["verdict"] != "inconclusive" else "inconclusive"
        counts[key] += 1
        counts["passed"] += key == "judged"
    return counts


def judge_completeness(now: dict[str, Any], before: dict[str, Any] | None) -> Iterator[Finding]:
    """Findings for an empty record, gaps in the ledger, and rows that the baseline record has."""
    yield from _nothing_measured(now)
    yield from _ledger(now)
    if before is not None:
        yield from _vanished(now, before)
        yield from _new(now, before)


def _nothing_measured(block: dict[str, Any]) -> Iterator[Finding]:
    sections = [section for section in (*JUDGED_SECTIONS, "speedups")
                if any(row["verdict"] not in ("skip", "inconclusive") for row in block.get(section, []))]
    if not sections:
        skipped = count_rows(block)["skipped"]
        why = f"all {skipped} rows were skipped" if skipped else "the record holds no row"
        yield Finding("missing", "ledger", "the record", f"nothing was measured: {why}", f"{program()} parity")
    elif set(sections) <= {"selftest", "modelled"}:
        only = "only the harness was tested, no component" if sections == ["selftest"] else "times were only modelled"
        yield Finding("missing", "ledger", "the record", f"{only}: nothing was measured", f"{program()} parity")


def _ledger(block: dict[str, Any]) -> Iterator[Finding]:
    ledger = block["ledger"]
    results = sum(ledger[key] for key in ("passed", "failed", "errors", "skipped", "inconclusive"))
    if ledger["planned"] > results:
        yield Finding("missing", "ledger", "planned work",
                      f"{ledger['planned']} were planned and {results} have a result: the rest is lost")
    rows = [row for section in JUDGED_SECTIONS for _, row in named_rows(block, section)]
    if ledger["failed"] + ledger["errors"] and not any(row["verdict"] in ("fail", "error", "rejected") for row in rows):
        yield Finding("fail", "ledger", "failures",
                      f"the ledger counts {ledger['failed']} failures and {ledger['errors']} errors that no row names")


def _vanished(now: dict[str, Any], before: dict[str, Any]) -> Iterator[Finding]:
    for section in (*JUDGED_SECTIONS, "speedups"):
        present, earlier = dict(named_rows(now, section)), dict(named_rows(before, section))
        for name, old in earlier.items():
            if old["verdict"] == "skip":
                continue
            row = present.get(name)
            command = reproduce(section, old)
            if row is None:
                other = next((new for new in present if new not in earlier and one_part_differs(name, new)), None)
                renamed = f"; perhaps renamed to {other}" if other else ""
                yield Finding("missing", section, name,
                              f"vanished: the baseline record has it, this one does not{renamed}", command)
            elif row["verdict"] == "skip" and row["reason"].startswith(TURN):
                continue
            elif row["verdict"] == "skip":
                yield Finding("missing", section, name,
                              f"vanished: measured in the baseline record, skipped now: {row['reason']}", command)
            else:
                gone = ", ".join(_outputs(section, old) - _outputs(section, row))
                if gone:
                    yield Finding("missing", section, name, f"the baseline record compared more outputs: {gone}",
                                  command)


def _outputs(section: str, row: Row) -> set[str]:
    """What a row of parity compared; nothing where it says that there was nothing to compare."""
    return {output["name"] for output in row["outputs"] if output["elements"]} if section == "parity" else set()


def one_part_differs(name: str, other: str) -> bool:
    """Are the two names those of one cell with another case, dtype, device or component? Variants have unlike rules."""
    parts, others = name.split("/"), other.split("/")
    return len(parts) == len(others) and sum(a != b for a, b in zip(parts, others)) == 1 and parts[1:2] == others[1:2]


def _new(now: dict[str, Any], before: dict[str, Any]) -> Iterator[Finding]:
    """Rows that the baseline record has not, of sections that it has."""
    for section in (*JUDGED_SECTIONS, "speedups"):
        earlier = dict(named_rows(before, section))
        for name, row in named_rows(now, section):
            if earlier and name not in earlier and row["verdict"] != "skip":
                yield Finding("notice", section, name, "new: the baseline record does not have it")
