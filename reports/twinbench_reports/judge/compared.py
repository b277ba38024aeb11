"""Which outputs a row of parity had to compare, and by which class: those that its case lists, in older records those
that the other rows of the case compared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from twinbench_reports.cells import Row, parse_cell
from twinbench_reports.judge.findings import Finding
from twinbench_reports.judge.reproduce import reproduce_cell

COMPARING = ("oracle", "non_contiguous", "stale")  # these pass by comparing every output, others may
Classes = dict[str, str]  # of outputs, by name


def judge_compared(block: dict[str, Any]) -> Iterator[Finding]:
    """A failure for every row that passed without an output of its case, with one that the case has not, or by another
    class."""
    listed = {(component["id"], case["name"]): case["outputs"] for component in block["components"]
              for case in component["cases"] if "outputs" in case}
    rows = [row for row in block["parity"] if row["verdict"] == "pass" and (
        row["outputs"] or row["check"] in COMPARING)]
    seen: dict[tuple[Any, ...], Classes] = {}  # by the seed too: a held-out case may be drawn anew for a mode
    for row in rows:
        of_case = seen.setdefault(_drawn(row), {})
        for output in row["outputs"]:
            of_case.setdefault(output["name"], output["tolerance_class"])
    for row in rows:
        cell = parse_cell(row["cell"])
        known = listed.get((cell.component, cell.case))
        for wrong in _differences(row, known if known is not None else seen[_drawn(row)],
                                  "its case lists" if known is not None else "other rows of the case have"):
            yield Finding("fail", "parity", f"{row['cell']} [{row['check']}]", f"says pass, but {wrong}",
                          reproduce_cell("parity", row["cell"]))


def _drawn(row: Row) -> tuple[Any, ...]:
    cell = parse_cell(row["cell"])
    return cell.component, cell.case, row["seed"]


def _differences(row: Row, expected: Classes, who: str) -> Iterator[str]:
    found = {output["name"]: output["tolerance_class"] for output in row["outputs"]}
    if absent := sorted(expected.keys() - found.keys()):
        yield f"did not compare {', '.join(absent)}: {who} {'it' if len(absent) == 1 else 'them'}"
    for name, given in found.items():
        if expected.get(name) != given:
            yield f"the tolerance_class of {name} is {given!r}, and {who} {expected.get(name, 'no such output')!r}"
