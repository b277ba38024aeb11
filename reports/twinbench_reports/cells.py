"""Names of cells and the keys by which the rows of a record are recognised."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

Row = dict[str, Any]


class Cell(NamedTuple):
    """One measurement: <component>/<variant>/<device>/<dtype>/<case>."""

    component: str
    variant: str
    device: str
    dtype: str
    case: str

    def __str__(self) -> str:
        return "/".join(self)


def parse_cell(name: str) -> Cell:
    """The parts of a cell name that the schema has already accepted."""
    return Cell(*name.split("/"))


def twin_name(row: Row) -> str:
    """The name of a pair of twins: <component>/<device>/<dtype>/<case>."""
    return "/".join((row["component"], row["device"], row["dtype"], row["case"]))


def optimized_cell(row: Row) -> str:
    """The cell of the faster side of a speedup or proof row, for a --filter."""
    return "/".join((row["component"], row.get("to", "optimized"), row["device"], row["dtype"], row["case"]))


# How a row of each section is named. The name is unique within its section and the same in two records.
ROW_NAMES: dict[str, Callable[[Row], str]] = {
    "parity": lambda row: f"{row['cell']} [{row['check']}]",
    "counters": lambda row: row["cell"],
    "proofs": lambda row: f"{twin_name(row)} [{row['counter']}]",
    "timings": lambda row: row["cell"],
    "speedups": lambda row: f"{twin_name(row)} [{row['from']} -> {row['to']}]",
    "scenarios": lambda row: f"{row['name']}/{row['device']}",
    "selftest": lambda row: row["name"],
    "modelled": lambda row: f"{row['cell']} on {row['card']}",
    "components": lambda row: row["id"],
    "ceilings": lambda row: f"{row['device']} {row['name']}",
}

# Sections whose rows carry a correctness verdict, and the engine that writes each.
JUDGED_SECTIONS = ("parity", "counters", "proofs", "timings", "scenarios", "selftest", "modelled")
ENGINE_OF = {
    "parity": "parity", "counters": "counters", "proofs": "counters", "timings": "bench", "speedups": "bench",
    "scenarios": "scenario", "selftest": "selftest", "modelled": "kernels",
}


def named_rows(block: Row, section: str) -> Iterator[tuple[str, Row]]:
    """Every row of a section of the record's "twinbench" block, with its name. Older records lack younger sections."""
    for row in block.get(section, []):
        yield ROW_NAMES[section](row), row
