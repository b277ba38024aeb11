"""Plain tables for a terminal: aligned by display width, cut to the window, coloured only where asked."""

from __future__ import annotations

import os
import shutil
import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO

from twinbench_reports.text import plain

_CODES = {
    "fail": "1;31",
    "error": "1;31",
    "rejected": "1;31",
    "slower": "31",
    "misses": "31",
    "missing": "1;33",
    "inconclusive": "33",
    "unproven": "33",
    "skip": "2",
    "pass": "34",
    "faster": "34",
    "meets": "34",
    "head": "1"}
_SHRUNK = 34  # a column is never cut below this many characters


@dataclass(frozen=True)
class Style:
    """How wide the window is, and whether it shows colour."""

    width: int = 100
    colour: bool = False

    def paint(self, text: str, word: str) -> str:
        code = _CODES.get(word.split(" ")[0])
        return f"\033[{code}m{text}\033[0m" if self.colour and code else text


def terminal_style(stream: TextIO | None = None, width: int | None = None) -> Style:
    """Colour on a terminal unless NO_COLOR is set; a pipe gets plain text of full width."""
    stream = stream or sys.stdout
    terminal = stream.isatty()
    colour = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    if width is None:
        width = shutil.get_terminal_size((100, 24)).columns if terminal or os.environ.get("COLUMNS") else 10_000
    return Style(max(width, 40), colour)


def display_width(text: str) -> int:
    """Columns that the text takes: wide characters two, combining marks none."""
    return sum(0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
               for char in text)


def render_columns(head: Sequence[str], rows: Sequence[Sequence[str]], style: Style, *, right: set[int] = frozenset(),
                   shrink: int = 0) -> str:
    """The table. Where it is too wide, column `shrink` is cut in the middle first, then whole columns are dropped from
    the right."""
    table = [[plain(text) for text in row] for row in (head, *rows)]
    columns = list(range(len(head)))
    widths = [max(display_width(row[column]) for row in table) for column in columns]
    while _total(widths, columns) > style.width:
        room = style.width - (_total(widths, columns) - widths[shrink])
        if room >= min(_SHRUNK, widths[shrink]) or len(columns) <= 2:
            widths[shrink] = max(room, 8)
            break
        columns.remove(max(column for column in columns if column != shrink))
    lines = []
    for index, row in enumerate(table):
        cells = []
        for column in columns:
            text = _cut(row[column], widths[column])
            padding = " " * (widths[column] - display_width(text))
            painted = style.paint(text, "head" if index == 0 else text)
            cells.append(padding + painted if column in right else painted + padding)
        lines.append("  ".join(cells).rstrip())
        if index == 0:
            lines.append("  ".join("─" * widths[column] for column in columns))
    return "\n".join(lines) + "\n"


def _total(widths: Sequence[int], columns: Sequence[int]) -> int:
    return sum(widths[column] for column in columns) + 2 * (len(columns) - 1)


def _cut(text: str, width: int) -> str:
    """Cut in the middle: both ends of a cell name matter."""
    if display_width(text) <= width:
        return text
    tail = (width - 1) // 2
    return text[: width - 1 - tail] + "…" + (text[-tail:] if tail else "")
