"""Errors of the suite, worded like the program's: kind, field, value, remedy."""

from __future__ import annotations

PASS, FAIL, TOOL_ERROR, INCONCLUSIVE = 0, 1, 2, 3


class SuiteError(Exception):
    """Something the suite cannot go on with, or a step cannot be run for."""

    def __init__(self, kind: str, field: str, value: object, remedy: str) -> None:
        self.kind, self.field, self.value, self.remedy = kind, field, value, remedy
        super().__init__(f"{kind}: {field} = {value}; remedy: {remedy}")
