"""What the ledger of a record counts, told from its rows: engines count cells, twins, criteria, never rows."""

from __future__ import annotations

from collections import Counter
from typing import Any

from twinbench_reports.cells import Row, parse_cell, twin_name

BUDGET = "budget:"  # how the reason of work begins that the time budget left out
NO_CHECK = "no check applies to this cell"
_OUTCOMES = {"pass": "passed", "fail": "failed", "error": "errors", "skip": "skipped", "inconclusive": "inconclusive",
             "rejected": "failed"}


class Units:
    """Outcomes of units that have a row, and the reasons of the skipped ones as the ledger words them."""

    def __init__(self, block: dict[str, Any]) -> None:
        self.outcomes: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        _parity(block["parity"], self)
        for section in ("counters", "instructions", "selftest", "modelled"):
            for row in block.get(section, []):
                self.add(row["verdict"], row["reason"])
        _twins(block, self)
        for row in block["scenarios"]:
            for one in (row, *row["criteria"]):
                self.add(one["verdict"], one["reason"])

    def add(self, verdict: str, reason: str) -> None:
        """Counts one unit; a row that the budget left out says skip, and its unit is open."""
        if verdict == "skip" and reason.startswith(BUDGET):
            verdict = "inconclusive"
        self.outcomes[_OUTCOMES[verdict]] += 1
        if verdict == "skip":
            self.reasons[reason.partition(" (sample ")[0]] += 1


def _parity(rows: list[Row], units: Units) -> None:
    """A cell fails with a check, and passes where none fails and one passes."""
    cells: dict[str, list[Row]] = {}
    for row in rows:
        cells.setdefault(row["cell"], []).append(row)
    for checks in cells.values():
        verdicts = {row["verdict"] for row in checks}
        worst = next((word for word in ("fail", "error", "pass") if word in verdicts), "skip")
        alone = len(checks) == 1 and checks[0]["check"] == "left_out"
        units.add(worst, checks[0]["reason"] if alone else NO_CHECK)


def _twins(block: dict[str, Any], units: Units) -> None:
    """A twin fails with a timing of its. One that only a speedup names was left out."""
    twins: dict[str, set[str]] = {}
    for row in block["timings"]:
        cell = parse_cell(row["cell"])
        twins.setdefault("/".join((cell.component, *cell[2:])), set()).add(row["verdict"])
    for verdicts in twins.values():
        units.add(next(iter(verdicts)) if verdicts in ({"pass"}, {"skip"}) else "fail", "")
    for name in {twin_name(row) for row in block["speedups"]} - set(twins):
        units.add("inconclusive", name)
