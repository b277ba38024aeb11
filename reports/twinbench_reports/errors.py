"""The one error type that a user of the report tool sees; it ends the command with exit code 2."""

from __future__ import annotations

from twinbench_reports.text import plain


class ReportError(Exception):
    """A file that cannot be used, said with the file, the place in it and the remedy."""

    def __init__(self, problem: str, *, file: str = "", path: str = "", remedy: str = "") -> None:
        self.problem, self.file, self.path, self.remedy = problem, file, path, remedy
        where = file + (f" at {path}" if path else "")
        line = plain((f"{where}: " if where else "") + problem)  # it may quote what a stranger wrote
        super().__init__(line + (f"\n  remedy: {plain(remedy)}" if remedy else ""))
