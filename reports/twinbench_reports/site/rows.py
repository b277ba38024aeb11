"""One line a component on the overview: right or wrong, how much faster, and where its time is going."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from twinbench_reports.cells import Row
from twinbench_reports.load import Record
from twinbench_reports.render import numbers
from twinbench_reports.render.twins import (VERDICT_ORDER, ParityView, Twin, gather_parity, gather_twins,
                                            representative, telling_proofs)
from twinbench_reports.site.gather import Level, Machine

_WIDTH, _HEIGHT = 112, 26  # of the small curve, in its own units
_JUDGED = ("parity", "proofs", "counters", "timings", "modelled")


@dataclass(frozen=True)
class ComponentRow:
    """A component on one machine."""

    component: Row
    slug: str
    right: str  # the worst verdict on correctness: error, fail, rejected, pass, or "" where nothing was judged
    twin: Twin | None
    proofs: Sequence[Row]
    parity: ParityView | None  # the nearest to its limit
    levels: Sequence[Level]
    curve: Markup
    curve_text: str

    @property
    def id(self) -> str:
        return self.component["id"]

    @property
    def speed(self) -> str:
        return self.twin.speedup["verdict"] if self.twin else ""

    @property
    def optimized_cell(self) -> str:
        return optimized_cell(self.twin) if self.twin else ""

    @property
    def slowdown(self) -> float | None:
        """The last change of level of its time, as a fraction."""
        return math.expm1(self.levels[-1].point.change) if self.levels else None

    @property
    def rank(self) -> tuple[Any, ...]:
        """Worst first: what is wrong, then what became slower, then what is slower, then by speedup."""
        return (VERDICT_ORDER.index(self.right) if self.right in VERDICT_ORDER[:3] else 3,
                -max(self.slowdown or 0.0, 0.0),
                VERDICT_ORDER.index(self.speed) if self.speed else len(VERDICT_ORDER),
                self.twin.ratio if self.twin and self.twin.ratio else math.inf, self.id)


def component_rows(machine: Machine, parts: dict[str, Record], slugs: dict[str, str]) -> list[ComponentRow]:
    """Every component of the machine's newest record, worst first."""
    return sorted((_row(machine, part, slugs[name]) for name, part in parts.items()), key=lambda row: row.rank)


def _row(machine: Machine, part: Record, slug: str) -> ComponentRow:
    block = part.block
    component = block["components"][0]
    twins = gather_twins(block)
    twin = representative(twins, component["id"])
    series = machine.series(optimized_cell(twin)) if twin else []
    views = [view for view in gather_parity(block) if view.worst_ratio is not None]
    verdicts = {row["verdict"] for section in _JUDGED for row in block.get(section, [])} - {"skip", "inconclusive"}
    values = [seconds for _, seconds in series]
    text = (f"optimized time over {numbers.plural(len(values), 'run')}, {numbers.seconds(values[0])} to "
            f"{numbers.seconds(values[-1])}" if values else "")
    return ComponentRow(
        component, slug, min(verdicts, key=VERDICT_ORDER.index, default=""), twin, telling_proofs(twins),
        max(views, key=lambda view: view.worst_ratio, default=None),
        machine.levels_of(optimized_cell(twin)) if twin else [], curve(values, text), text)


def optimized_cell(twin: Twin) -> str:
    """The cell of the optimized side."""
    return "/".join((twin.component, "optimized", *twin.key[1:]))


def curve(values: Sequence[float], text: str) -> Markup:
    """A small curve of times on a log scale, at least 10 % high so that noise looks like noise."""
    if len(values) < 2:
        return Markup("")
    logs = [math.log(value) for value in values]
    middle, span = (max(logs) + min(logs)) / 2, max(max(logs) - min(logs), math.log(1.1))
    points = [(3 + index * (_WIDTH - 6) / (len(logs) - 1), _HEIGHT / 2 - (value - middle) / span * (_HEIGHT - 8))
              for index, value in enumerate(logs)]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return Markup('<svg class="curve" viewBox="0 0 {} {}" width="{}" height="{}" role="img" aria-label="{}">'
                  '<polyline points="{}"/><circle cx="{:.1f}" cy="{:.1f}" r="2.6"/></svg>').format(
                      _WIDTH, _HEIGHT, _WIDTH, _HEIGHT, text, line, *points[-1])
