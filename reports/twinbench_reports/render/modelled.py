"""Modelled times of a record, and beside them what a card of that name measured, where a record of one is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from twinbench_reports.cells import Cell, Row, named_rows, parse_cell
from twinbench_reports.load import Record
from twinbench_reports.render import numbers


@dataclass(frozen=True)
class ModelledView:
    """One cell on one card."""

    row: Row
    measured_s: float | None  # of the same cell on device cuda, by the clock of the device where that was read

    @property
    def cell(self) -> Cell:
        return parse_cell(self.row["cell"])

    @property
    def measured_over_modelled(self) -> float | None:
        return self.measured_s / self.row["seconds"] if self.measured_s and self.row["seconds"] else None


def gather_modelled(record: Record, measured: Sequence[Record] = ()) -> list[ModelledView]:
    """Every modelled row. Times come from the record itself and from those of cards; the latest run wins."""
    times: dict[tuple[str, str], float] = {}
    for source in sorted((record, *measured), key=lambda one: one.provenance["utc"]):
        card = (source.provenance["gpu"] or {}).get("name")
        for row in source.block["timings"]:
            seconds = row.get("gpu_median_s") or row["median_s"]
            if card and row["verdict"] == "pass" and seconds:
                times[card, row["cell"]] = seconds
    views = []
    for _, row in named_rows(record.block, "modelled"):
        cell = str(parse_cell(row["cell"])._replace(device="cuda"))
        found = [times[name, cell] for name in row["device_names"] if (name, cell) in times]
        views.append(ModelledView(row, found[-1] if found else None))
    return views


def modelled_finding(views: Sequence[ModelledView]) -> str:
    """The section in one sentence."""
    shares: dict[str, list[float]] = {}
    for view in views:
        if view.row["floor_share"] is not None:
            shares.setdefault(view.row["card"], []).append(view.row["floor_share"])
    cards = "; ".join(f"{card}: floor / modelled from {numbers.percent(min(values))} to {numbers.percent(max(values))}"
                      for card, values in sorted(shares.items()))
    measured = sum(view.measured_s is not None for view in views)
    if not cards:
        return ""
    return (f"Computed from counted accesses and machine code, never measured; good to about 40 %. {cards}. "
            + (f"{numbers.plural(measured, 'time')} measured beside them." if measured
               else "No record of such a card is given, so none was measured."))


def modelled_rows(views: Sequence[ModelledView]) -> list[tuple[str, ...]]:
    """For the terminal's table."""
    return [(view.row["cell"], view.row["card"], numbers.seconds(view.row["seconds"]),
             numbers.percent(view.row["floor_share"]), view.row["limiter"] or numbers.DASH,
             numbers.ratio(view.measured_over_modelled), view.row["verdict"]) for view in views]


MODELLED_HEAD: tuple[str, ...] = ("cell", "card", "modelled", "floor / modelled", "limited by", "measured / modelled",
                                  "verdict")


def limiter_parts(row: Row) -> dict[str, Any]:
    """"simple_neuron::Forward: latency" as the longest part and what it waits for."""
    part, _, limiter = row["limiter"].rpartition(": ")
    return {"part": part.rsplit("::", 1)[-1], "waits_for": limiter}
