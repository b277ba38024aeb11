"""What a record must not contradict in itself: such a one is refused, for nothing in it can be relied on."""

from __future__ import annotations

from collections import Counter

from twinbench_reports.cells import JUDGED_SECTIONS, named_rows
from twinbench_reports.errors import ReportError
from twinbench_reports.exit_codes import FAIL, INCONCLUSIVE, LIMIT, PASS, TOOL_ERROR
from twinbench_reports.load import Record

_OUTCOMES = ("passed", "failed", "errors", "skipped", "inconclusive")


def require_consistent(record: Record) -> None:
    """Raises a ReportError for a row given twice, and for an exit code that is not the one of the record's results."""
    for section in (*JUDGED_SECTIONS, "speedups"):
        counts = Counter(name for name, _ in named_rows(record.block, section))
        for name, count in counts.items():
            if count > 1:
                raise ReportError(f"it holds the row {name} {count} times", file=record.path,
                                  path=f"$.twinbench.{section}", remedy="run the engine again: only one can count")
    ledger = record.block["ledger"]
    lost = ledger["planned"] > sum(ledger[key] for key in _OUTCOMES)
    expected = (PASS,) if ledger["passed"] and not lost and not ledger["inconclusive"] else (INCONCLUSIVE,)
    if ledger["failed"] or ledger["errors"]:
        expected = (FAIL,) if ledger["failed"] else (FAIL, TOOL_ERROR, LIMIT)
    if ledger["exit_code"] not in expected:
        raise ReportError(f"its exit code is {ledger['exit_code']}, and its results make {expected[0]}",
                          file=record.path, path="$.twinbench.ledger",
                          remedy="run the engine again: the record was changed")
    if ledger["exit_code"] == TOOL_ERROR:
        raise ReportError("its exit code is 2: the system refused what the engine needs", file=record.path,
                          path="$.twinbench.ledger", remedy="see the reasons of its errors, and run the engine again")
