"""The command that runs one row of a record again."""

from __future__ import annotations

import re
import shlex

from twinbench_reports.cells import ENGINE_OF, Row


def program(device: str = "cpu") -> str:
    """The executable of the preset that runs on this device."""
    return f"build/{'gpu' if device == 'cuda' else 'cpu'}/bin/twinbench"


def reproduce(section: str, row: Row) -> str:
    """One line for a shell, from the root of the repository."""
    if section == "selftest":
        return f"{program()} selftest"
    if section == "scenarios":
        return f"{program(row['device'])} scenario {shlex.quote(row['name'])} --device {row['device']}"
    if section == "modelled":
        return f"{program()} kernels --filter {shlex.quote('^' + _pattern(row['cell']) + '$')}"
    if "cell" in row:
        return reproduce_cell(ENGINE_OF[section], row["cell"])
    pattern = "/".join((re.escape(row["component"]), ".*", row["device"], row["dtype"], re.escape(row["case"])))
    return _filtered(ENGINE_OF[section], pattern, row["device"])


def reproduce_cell(engine: str, cell: str) -> str:
    """The command that runs one engine over one cell."""
    return _filtered(engine, _pattern(cell), cell.split("/")[2])


def _pattern(cell: str) -> str:
    return re.escape(cell).replace("\\-", "-")


def _filtered(engine: str, pattern: str, device: str) -> str:
    where = "" if device == "cpu" else f" --device {device}"
    return f"{program(device)} {engine} --filter {shlex.quote(f'^{pattern}$')}{where}"
