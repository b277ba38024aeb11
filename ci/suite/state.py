"""What has been done, in a file that survives any kill, so that the next call goes on where the last stopped."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from suite.errors import SuiteError
from suite.files import write_json

VERSION = 1
# A step in one of these is not run again by --resume. "cut" and "interrupted" are.
FINISHED = ("done", "failed_to_run", "skipped")


@dataclass
class StepResult:
    """One step. `status`: done, cut, interrupted, failed_to_run, skipped. `verdict`: pass, fail, error, skip,
    inconclusive."""

    name: str
    status: str
    verdict: str
    reason: str = ""
    seconds: float = 0.0
    attempts: int = 1
    exit_code: int | None = None
    record: str = ""  # file name below steps/, where one was written and is valid
    detail: dict[str, Any] | None = None


class State:
    """The results by step name, and the identity of program and machine they belong to."""

    def __init__(self, file: Path, identity: dict[str, str]) -> None:
        self.file, self.identity = file, identity
        self.results: dict[str, StepResult] = {}

    @classmethod
    def begin(cls, file: Path, identity: dict[str, str], *, resume: bool) -> State:
        """A fresh state, or the one in the file; throws where that would mix two programs or machines, or lose
        results."""
        state = cls(file, identity)
        if not file.exists():
            return state
        if not resume:
            raise SuiteError("would_overwrite", "--out", file.parent,
                             "it holds an earlier run: add --resume to go on with it, or name another folder")
        try:
            stored = json.loads(file.read_text())
            if stored["version"] != VERSION:
                raise ValueError(f"version {stored['version']}")
            known = {field.name for field in fields(StepResult)}
            results = [
                StepResult(**{
                    key: value for key, value in row.items() if key in known}) for row in stored["steps"]]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise SuiteError("bad_file", "state file", f"{file} ({error})",
                             "remove it and start anew in another folder") from error
        differ = [
            f"{key}: {stored['identity'].get(key)} then, {value} now" for key, value in identity.items()
            if stored["identity"].get(key) != value]
        if differ:
            raise SuiteError("other_machine", "--resume", "; ".join(differ),
                             "results of two programs or machines do not mix: name another folder")
        state.results = {result.name: result for result in results}
        return state

    def finished(self, name: str) -> bool:
        return name in self.results and self.results[name].status in FINISHED

    def put(self, result: StepResult) -> None:
        """Takes the result of a step in, and writes the file."""
        before = self.results.get(result.name)
        result.attempts = before.attempts + 1 if before else 1
        self.results[result.name] = result
        self.save()

    def save(self) -> None:
        write_json(self.file, {
            "version": VERSION,
            "identity": self.identity,
            "steps": [asdict(result) for result in self.results.values()]})
