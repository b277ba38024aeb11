"""Runs one step of an engine: `twinbench ... --out record`, then judges exit code and record."""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event
from typing import Any

from suite.errors import SuiteError
from suite.files import last_line, tail_of, write_json
from suite.plan import Step
from suite.process import GRACE_S, Ended, run_limited
from suite.state import StepResult

_VERDICT_OF_CODE = {0: "pass", 1: "fail", 2: "error", 3: "inconclusive", 4: "error"}  # 4: a limit was reached


@dataclass
class Bench:
    """Where and with what the steps run."""

    root: Path
    program: Path
    work: Path
    device: str
    environment: Mapping[str, str]
    interrupted: Event = field(default_factory=Event)
    grace_s: float = GRACE_S
    limit_s: float | None = None  # instead of a step's own

    @property
    def steps(self) -> Path:
        return self.work / "steps"

    def log_of(self, name: str) -> Path:
        return self.steps / f"{name}.log"

    def record_of(self, name: str) -> Path:
        return self.steps / f"{name}.json"

    def sharing(self, jobs: int) -> Bench:
        """For one of so many steps side by side: each takes its part of the machine's cores."""
        threads = str(max(1, (os.cpu_count() or 1) // jobs))
        return replace(self, environment={**self.environment, "OMP_NUM_THREADS": threads})

    def run(self, name: str, command: list[str], limit_s: float, budget_s: float,
            environment: Mapping[str, str] | None = None) -> Ended:
        """Runs a program in the root folder, its output in the step's log."""
        return run_limited(command, environment=environment or self.environment, folder=self.root,
                           log=self.log_of(name), limit_s=self.limit_s or limit_s, budget_s=budget_s,
                           interrupted=self.interrupted, grace_s=self.grace_s)


def read_record(path: Path) -> dict[str, Any]:
    """A record that keeps the schema; without jsonschema, one that is whole JSON with the right block."""
    if importlib.util.find_spec("jsonschema"):
        from twinbench_reports.errors import ReportError
        from twinbench_reports.load import load_record

        try:
            return load_record(path).root
        except ReportError as error:
            raise SuiteError("bad_record", path.name, error.problem, "see the step's log") from error
    try:
        root = json.loads(path.read_text())
        return {"twinbench": root["twinbench"], **root}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SuiteError("bad_record", path.name, error, "see the step's log") from error


def take_record(bench: Bench, name: str) -> tuple[dict[str, Any] | None, str]:
    """(record, "") or (None, why not). What is no record is put aside, so that nothing reads it as one."""
    path = bench.record_of(name)
    for partial in bench.steps.glob(f"{name}.json.partial.*"):
        partial.unlink(missing_ok=True)  # the program was killed while it wrote
    if not path.is_file():
        return None, "it left no record"
    try:
        return read_record(path), ""
    except SuiteError as error:
        path.replace(path.with_name(path.name + ".rejected"))
        return None, str(error)


def run_engine(bench: Bench, step: Step, budget_s: float, extra: tuple[str, ...] = ()) -> StepResult:
    """Runs the step's engine and judges what it left."""
    bench.record_of(step.name).unlink(missing_ok=True)
    command = [str(bench.program), *step.arguments, *extra, "--out", str(bench.record_of(step.name))]
    return judge_engine(bench, step, bench.run(step.name, command, step.limit_s, budget_s))


def judge_engine(bench: Bench, step: Step, ended: Ended) -> StepResult:
    """A stopped engine keeps what it had measured, and is never a pass."""
    record, problem = take_record(bench, step.name)
    result = StepResult(step.name, "done", "error", seconds=round(ended.seconds, 2), exit_code=ended.code,
                        record=bench.record_of(step.name).name if record else "")
    said = last_line(bench.log_of(step.name))
    if ended.how in ("cut", "interrupted"):
        result.status, result.verdict, result.reason = ended.how, "inconclusive", ended.what
    elif ended.how in ("hung", "crashed", "not_started"):
        result.status, result.reason = "failed_to_run", f"{ended.what}; last output: {said}"
    elif ended.code not in _VERDICT_OF_CODE:
        result.reason = f"unknown exit code {ended.code}; last output: {said}"
    else:
        result.verdict = _VERDICT_OF_CODE[ended.code]
        result.reason = "" if ended.code == 0 else said
        if record is None and result.verdict != "error":
            result.verdict, result.reason = "error", problem
    if result.verdict in ("error", "inconclusive"
                          ) and record is None and problem not in result.reason and "left no record" not in problem:
        result.reason = f"{result.reason}; {problem}"
    if record:
        result.detail = {
            key: record["twinbench"]["ledger"][key]
            for key in ("planned", "passed", "failed", "errors", "skipped", "inconclusive")}
    return result


def run_counters(bench: Bench, step: Step, budget_s: float, pins: Path) -> StepResult:
    """Counts against the pins. Cells that have none are counted into a candidate file, and say so: unpinned is no
    pass."""
    pinned = json.loads(pins.read_text()) if pins.is_file() else {}
    mine = {cell for cell in pinned if cell.startswith(f"{step.component}/") and f"/{bench.device}/" in cell}
    if mine:
        return run_engine(bench, step, budget_s, ("--pins", str(pins)))
    candidate = bench.work / "pin_candidates" / f"{step.component}.json"
    candidate.parent.mkdir(parents=True, exist_ok=True)
    candidate.unlink(missing_ok=True)
    result = run_engine(bench, step, budget_s, ("--pin", "--pins", str(candidate)))
    if result.record:
        path = bench.record_of(step.name)
        root = json.loads(path.read_text())
        for row in root["twinbench"]["counters"]:
            row["pinned"] = None  # the program held them against what it had just written itself
        write_json(path, root)
    if result.verdict == "pass":
        result.verdict = "inconclusive"
        result.reason = (f"no {bench.device} cell of it is pinned yet; proofs hold, candidates in "
                         f"pin_candidates/{candidate.name}")
    return result


def run_unit_tests(bench: Bench, step: Step, budget_s: float) -> StepResult:
    """A GoogleTest program: no record, its exit code is the verdict; one that does not say what passed has not run."""
    ended = bench.run(step.name, [str(bench.program.with_name(step.arguments[0]))], step.limit_s, budget_s)
    log = bench.log_of(step.name)
    result = StepResult(step.name, "done", "pass" if ended.code == 0 else "fail", seconds=round(ended.seconds, 2),
                        exit_code=ended.code)
    if ended.how in ("cut", "interrupted"):
        result.status, result.verdict = ended.how, "inconclusive"
    elif ended.how != "exited":
        result.status, result.verdict = "failed_to_run", "error"
    elif ended.code == 0 and "[  PASSED  ]" not in tail_of(log, 1 << 16):
        result.verdict, ended = "error", replace(ended, what="it names no test that passed")
    result.reason = ended.what or ("" if ended.code == 0 else last_line(log))
    return result
