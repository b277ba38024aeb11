"""What kind of thing went wrong: the class that a failing row carries beside its size."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

from twinbench_reports.judge.findings import Finding

# What more of a counter means; the first word that the counter's name holds.
OF_COUNTER = {
    "instructions": "more work on the CPU", "scalar_reads": "scalar reads", "sync": "synchronisation",
    "copies": "copies", "allocat": "allocations", "peak_bytes": "memory", "live_bytes": "memory left behind",
    "frees": "allocations", "registers": "registers", "spill": "spills", "stack": "stack", "shared": "shared memory",
    "modelled": "modelled time", "sectors": "memory traffic", "bytes": "memory traffic", "launches": "launches",
    "barriers": "barriers", "warp_operations": "more work in kernels", "dispatches": "more operators",
    "by_name": "more operators", "forward_calls": "more calls"}
# Where the kind of a row says it already.
OF_KIND = {
    "parity": "wrong numbers", "proofs": "another count than the formula's", "timings": "the timed run broke a rule",
    "scenarios": "a criterion of a training run", "selftest": "the harness judged wrongly",
    "modelled": "modelled time", "ledger": "bookkeeping", "counters": "another count", "pins": "another count",
    "speedups": "time"}
_UNTOLD = "time: no count of this component moved"


def of_counter(name: str) -> str:
    """The class of a counter that moved."""
    return next((cause for word, cause in OF_COUNTER.items() if word in name), "another count")


def with_causes(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Every failure with its class: a lost speedup takes that of the counters of its component, where any moved."""
    findings = list(findings)
    counted: dict[str, list[str]] = {}
    for finding in findings:
        if finding.kind in ("pins", "counters") and finding.severity in ("fail", "notice"):
            counter = finding.subject.rpartition("[")[2].rstrip("]") if finding.subject.endswith("]") else ""
            if counter and "fewer" not in finding.message:
                counted.setdefault(finding.subject.split("/")[0], []).append(of_counter(counter))
    for finding in findings:
        if finding.severity != "fail" or finding.cause:
            yield finding
            continue
        cause = OF_KIND.get(finding.kind, "")
        if finding.kind in ("pins", "counters") and finding.subject.endswith("]"):
            cause = of_counter(finding.subject.rpartition("[")[2])
        elif "crashed" in finding.message or "could not run" in finding.message:
            cause = "crash"
        elif finding.kind == "speedups" and finding.magnitude is not None:
            cause = ", ".join(dict.fromkeys(counted.get(finding.subject.split("/")[0], []))) or _UNTOLD
        yield dataclasses.replace(finding, cause=cause)
