"""What a rule says about a row: the words shared by every rule and every output."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from twinbench_reports.exit_codes import FAIL, INCONCLUSIVE, PASS

# Severity, worst first. Only the first three decide the exit code.
SEVERITIES = ("fail", "missing", "inconclusive", "notice")
EXIT_OF = {"fail": FAIL, "missing": INCONCLUSIVE, "inconclusive": INCONCLUSIVE, "notice": PASS}


@dataclass(frozen=True)
class Finding:
    """One line of the action list.

    `magnitude` measures how far beyond the allowed a failure is, for the limit of a waiver: worst error over allowed
    error, slowdown as a fraction, excess of a counter. null: cannot be waived (a crash has no size).
    """

    severity: str
    kind: str  # parity, counters, proofs, timings, speedups, scenarios, selftest, modelled, components, ledger, pins
    subject: str  # the name of the row
    message: str
    reproduce: str = ""
    magnitude: float | None = None
    waiver: str = ""
    cause: str = ""  # what kind of thing went wrong, where something measured tells: more operators, waiting, spills

    @property
    def text(self) -> str:
        """The message with its cause."""
        return f"{self.message} (cause: {self.cause})" if self.cause else self.message

    @property
    def rank(self) -> tuple[int, str, str]:
        return (SEVERITIES.index(self.severity), self.kind, self.subject)

    def as_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


@dataclass(frozen=True)
class Verdict:
    """The judgement of a record: what verdict.json holds."""

    exit_code: int
    findings: list[Finding]
    waived: list[Finding] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def word(self) -> str:
        return {PASS: "pass", FAIL: "fail", INCONCLUSIVE: "inconclusive"}[self.exit_code]

    @property
    def headline(self) -> str:
        """The verdict in one sentence."""
        failures, missing, undecided, _ = (self.of(severity) for severity in SEVERITIES)
        count = self.counts.get("judged", 0)
        judged = f"{count:,} check{'' if count == 1 else 's'} judged"
        parts = [text for count, text in (
            (len(failures), f"{len(failures)} failed"), (len(missing), f"{len(missing)} missing"),
            (len(undecided), f"{len(undecided)} inconclusive"), (len(self.waived), f"{len(self.waived)} waived"),
            (self.counts.get("skipped", 0), f"{self.counts.get('skipped', 0)} skipped")) if count]
        return f"{judged}: {', '.join(parts if self.exit_code else ['all passed', *parts])}"

    def of(self, severity: str) -> list[Finding]:
        return [finding for finding in self.findings if finding.severity == severity]

    @property
    def actions(self) -> list[Finding]:
        """The findings that someone has to act on."""
        return [finding for finding in self.findings if finding.severity != "notice"]
