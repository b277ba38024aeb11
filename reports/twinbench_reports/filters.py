"""Regular expressions of the command line: a wrong one is an error, and one that would try for ever is ended."""

from __future__ import annotations

import contextlib
import re
import signal
import threading
from collections.abc import Iterable, Iterator

from twinbench_reports.errors import ReportError

LONGEST = 10_000  # characters
MOST_SECONDS = 5.0


def chosen(pattern: str, names: Iterable[str]) -> list[str]:
    """The names in which the expression is found, in their order."""
    if len(pattern) > LONGEST:
        raise ReportError(f"a regular expression of {len(pattern):,} characters", path="--filter",
                          remedy=f"give one of at most {LONGEST:,}")
    try:
        expression = re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise ReportError(f"{pattern[:200]!r} is not a regular expression: {error}", path="--filter",
                          remedy="quote it, and escape brackets") from error
    with _limited(pattern):
        return [name for name in names if expression.search(name)]


@contextlib.contextmanager
def _limited(pattern: str) -> Iterator[None]:
    def too_long(*_: object) -> None:
        raise ReportError(f"{pattern[:200]!r} was still being tried after {MOST_SECONDS:g} s", path="--filter",
                          remedy="write it without repetitions inside repetitions, such as (a+)+")

    if threading.current_thread() is not threading.main_thread():
        yield  # signals go to the main thread
        return
    before = signal.signal(signal.SIGALRM, too_long)
    signal.setitimer(signal.ITIMER_REAL, MOST_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
