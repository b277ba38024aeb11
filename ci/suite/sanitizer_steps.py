"""Runs the sanitizer steps: the planted bug and its correct twin first, then our kernels at their smallest shapes."""

from __future__ import annotations

import json
import re
from pathlib import Path

from suite.engines import Bench, take_record
from suite.files import tail_of, write_json
from suite.plan import TOOLS, Step
from suite.process import Ended
from suite.sanitizer import Finding, find_sanitizer, probe_verdict, read_output, sanitized
from suite.state import State, StepResult

_OUTPUT = 4 << 20  # bytes of a log that are looked at


def run_sanitizer(bench: Bench, state: State, step: Step, budget_s: float) -> StepResult:
    """One step; a skip with its reason where the tool is not there or cannot work here."""
    program, missing = find_sanitizer(bench.root, bench.environment.get("PATH"))
    if bench.device != "cuda":
        missing = "compute-sanitizer checks CUDA kernels only"
    refused = next(
        (result.reason
         for tool in TOOLS if (result := state.results.get(f"sanitizer.{tool}.probe")) and result.verdict == "skip"),
        "")
    if not step.component:
        return StepResult(step.name, "skipped", "skip", missing or refused) if missing or refused else _probe(
            bench, program, step, budget_s)
    if missing or refused:
        return StepResult(step.name, "skipped", "skip", missing or refused)
    if not step.cells:
        return StepResult(step.name, "skipped", "skip", "no case of it has work to check")
    return _check(bench, state, program, step, budget_s)


def _probe(bench: Bench, program: str, step: Step, budget_s: float) -> StepResult:
    """The tool must report the planted bug and accept the correct program; else its clean results mean nothing."""
    probe = bench.program.with_name("sanitizer_probe")
    findings: dict[str, Finding] = {}
    texts: dict[str, str] = {}
    seconds = 0.0
    for what in (step.tool, f"{step.tool}_correct"):
        log_before = _size(bench.log_of(step.name))
        ended = bench.run(step.name, sanitized(program, step.tool, [str(probe), what]), step.limit_s,
                          budget_s - seconds)
        seconds += ended.seconds
        if ended.how != "exited":
            return _stopped(step, ended, seconds)
        texts[what] = _text_from(bench.log_of(step.name), log_before)
        findings[what] = read_output(texts[what], ended.code)
    verdict, reason = probe_verdict(step.tool, findings[step.tool], texts[step.tool], findings[f"{step.tool}_correct"])
    return StepResult(step.name, "skipped" if verdict == "skip" else "done", verdict, reason, round(seconds, 2),
                      detail={"sanitizer": program})


def _check(bench: Bench, state: State, program: str, step: Step, budget_s: float) -> StepResult:
    """The component's cells in one process under the tool; its findings become rows of the step's record."""
    cells = "|".join(re.escape(cell) for cell in step.cells)
    command = [
        str(bench.program), "parity", "--in-process", "--device", bench.device, "--filter", f"^({cells})$", "--checks",
        "oracle", "--out",
        str(bench.record_of(step.name))]
    bench.record_of(step.name).unlink(missing_ok=True)
    before = _size(bench.log_of(step.name))
    # Each tensor its own allocation: in one pooled block the tools see no bounds between tensors.
    environment = {**bench.environment, "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
    ended = bench.run(step.name, sanitized(program, step.tool, command), step.limit_s, budget_s, environment)
    if ended.how != "exited":
        bench.record_of(step.name).unlink(missing_ok=True)
        return _stopped(step, ended, ended.seconds)
    finding = read_output(_text_from(bench.log_of(step.name), before), ended.code, of_library_too=False)
    record, problem = take_record(bench, step.name)
    ran = {row["cell"] for row in record["twinbench"]["parity"]} if record else set()
    probe = state.results.get(f"sanitizer.{step.tool}.probe")
    fired = probe is not None and probe.verdict == "pass"
    verdict, reason = {
        "found": ("fail", finding.reason),
        "refused": ("skip", finding.reason),
        "broken": ("error", finding.reason)}.get(finding.verdict, ("pass", finding.reason))
    if verdict == "pass" and not set(step.cells) <= ran:
        verdict = "error"
        reason = f"clean, but {len(set(step.cells) - ran)} of its cells did not run: {problem or 'no row for them'}"
    if verdict == "pass" and not fired:
        why = probe.reason if probe else "the probe did not run"
        verdict, reason = "inconclusive", f"clean, but the planted bug was not reported either: {why}"
    if record:
        _rewrite(bench.record_of(step.name), step, verdict, reason)
    return StepResult(step.name, "done", verdict, reason, round(ended.seconds, 2), exit_code=ended.code,
                      record=bench.record_of(step.name).name if record else "", detail={"cells": len(step.cells)})


def _rewrite(path: Path, step: Step, verdict: str, reason: str) -> None:
    """The parity rows of this run stand in the parity steps' records; here a row a cell says what the tool found."""
    root = json.loads(path.read_text())
    block = root["twinbench"]
    word = {"inconclusive": "skip"}.get(verdict, verdict)
    said = f"inconclusive: {reason}" if verdict == "inconclusive" else reason
    seed = block["provenance"]["seed"]
    block["parity"] = [{
        "cell": cell,
        "check": step.tool,
        "verdict": word,
        "reason": said,
        "seed": seed,
        "seconds": 0.0,
        "outputs": [],
        "vacuity": None} for cell in step.cells]
    count = len(step.cells)
    ledger = dict.fromkeys(("planned", "passed", "failed", "errors", "skipped", "inconclusive"), 0)
    ledger["planned"] = count
    ledger[{
        "pass": "passed",
        "fail": "failed",
        "error": "errors",
        "skip": "skipped",
        "inconclusive": "inconclusive"}[verdict]] = count
    block["ledger"] = {
        **ledger, "exit_code": {
            "pass": 0,
            "fail": 1,
            "error": 1}.get(verdict, 3),
        "skip_reasons": {
            reason: count} if verdict == "skip" else {}}
    write_json(path, root)


def _stopped(step: Step, ended: Ended, seconds: float) -> StepResult:
    if ended.how in ("cut", "interrupted"):
        return StepResult(step.name, ended.how, "inconclusive", ended.what, round(seconds, 2))
    return StepResult(step.name, "failed_to_run", "error", ended.what, round(seconds, 2), exit_code=ended.code)


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _text_from(path: Path, start: int) -> str:
    return tail_of(path, min(_OUTPUT, max(1, _size(path) - start)))
