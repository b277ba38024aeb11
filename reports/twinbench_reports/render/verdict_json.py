"""verdict.json: the verdict for wrappers, since `make` and shells rewrite exit codes."""

from __future__ import annotations

import json

from twinbench_reports.judge.findings import SEVERITIES, Verdict
from twinbench_reports.load import Record


def verdict_json(verdict: Verdict, now: Record, before: Record | None) -> str:
    """The verdict as strict JSON, the same for the same inputs."""
    content = {
        "verdict_version": "1.0",
        "verdict": verdict.word,
        "exit_code": verdict.exit_code,
        "headline": verdict.headline,
        "counts": verdict.counts | {
            severity: len(verdict.of(severity)) for severity in SEVERITIES} | {
                "waived": len(verdict.waived)},
        "record": _identity(now),
        "baseline_record": _identity(before) if before else None,
        "findings": [finding.as_dict() for finding in verdict.findings],
        "waived": [finding.as_dict() for finding in verdict.waived], }
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _identity(record: Record) -> dict[str, object]:
    return {"path": record.path, "sha256": record.sha256, "revision": record.provenance["revision"],
            "dirty": record.provenance["dirty"], "utc": record.provenance["utc"]}
