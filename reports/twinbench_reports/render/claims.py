"""The claims table: what a document says, what the specification judges, what was measured here."""

from __future__ import annotations

from collections.abc import Sequence

from twinbench_reports.render import numbers
from twinbench_reports.render.twins import ClaimView

COLUMNS = {
    "component": "component",
    "document": "document",
    "text": "claim",
    "figure": "figure",
    "verdict": "specification",
    "measured": "measured here",
    "interval": "interval",
    "setting": "on",
    "decision": "decision",
    "remark": "remark"}
_ORDER = ("misses", "unproven", "meets", "not measured", "not a speedup")


def claim_rows(claims: Sequence[ClaimView]) -> list[dict[str, str]]:
    """One row a claim, unmet ones first."""
    rows = []
    for claim in sorted(claims, key=lambda claim:
                        (_ORDER.index(claim.decision), claim.component, claim.document, claim.text)):
        speedup = claim.measured.speedup if claim.measured else None
        rows.append({
            "component": claim.component,
            "document": claim.document,
            "text": claim.text,
            "figure": claim.figure,
            "verdict": claim.verdict,
            "measured": numbers.ratio(speedup["ratio"]) if speedup else numbers.DASH,
            "interval": numbers.interval(speedup["lower"], speedup["upper"]) if speedup else numbers.DASH,
            "setting": claim.measured.setting if claim.measured else numbers.DASH,
            "decision": claim.decision,
            "remark": remark(claim)})
    return rows


def remark(claim: ClaimView) -> str:
    """What keeps the figure and the measurement apart."""
    if claim.decision == "not a speedup":
        return ""
    if claim.measured is None:
        return "no timed twin in this record"
    if claim.measured.ratio is None:
        return claim.measured.speedup["reason"] or "it has no ratio"
    if claim.measured.key[1] == "cpu":
        return "devices differ: measured on a CPU"
    return "devices may differ: the document's GPU may be another"
