"""Proof counters before and after: a hollow dot for the baseline, a filled one for the optimized variant."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from twinbench_reports.cells import Row
from twinbench_reports.render import numbers
from twinbench_reports.render.figures.drawing import Drawing, row_figure
from twinbench_reports.render.figures.theme import Palette
from twinbench_reports.render.twins import Twin


def counter_drawings(twins: Sequence[Twin]) -> list[Drawing]:
    """One drawing a device and pipeline; a component's largest counted case stands for it."""
    groups: dict[tuple[str, str], dict[tuple[str, str], Row]] = {}
    for twin in twins:
        for row in twin.proofs:
            if row["baseline"]["measured"] is None or row["optimized"]["measured"] is None:
                continue
            rows = groups.setdefault((row["device"], twin.component.split(".")[0]), {})
            key = (twin.component.split(".")[-1], row["counter"])
            if key not in rows or row["baseline"]["measured"] > rows[key]["baseline"]["measured"]:
                rows[key] = row
    return [Drawing(f"counters-{device}-{pipeline}", f"{pipeline} on {device}: proof counters, baseline and optimized",
                    counter_finding(list(rows.values())), lambda palette, rows=rows: _draw(rows, palette))
            for (device, pipeline), rows in groups.items()]


def counter_finding(rows: Sequence[Row]) -> str:
    """One sentence: how many counters hold exactly, on both sides."""
    if not rows:
        return "No proof counter was counted."
    held = sum(1 for row in rows if row["verdict"] == "pass")
    cut = sum(1 for row in rows if (row["baseline"]["measured"] or 0) > (row["optimized"]["measured"] or 0))
    return (f"{held} of {numbers.plural(len(rows), 'proof counter')} equal their formulas on both sides; in {cut} the "
            "optimized variant counts less than the baseline.")


def _draw(rows: dict[tuple[str, str], Row], palette: Palette) -> Figure:
    ordered = sorted(rows.items(), key=lambda item:
                     (-(item[1]["baseline"]["measured"] - item[1]["optimized"]["measured"]), item[0]))
    figure, axes = row_figure([f"{name} · {counter}" for (name, counter), _ in ordered], palette)
    largest = max(max(row[side]["measured"] for side in ("baseline", "optimized")) for _, row in ordered)
    axes.set_xscale("symlog", linthresh=1, linscale=0.5)
    axes.set_xlim(-0.35, max(10, largest) * 1.6)
    steps = [0.0] + [10.0**power for power in range(13) if 10.0**power <= max(10, largest) * 1.6]
    axes.xaxis.set_major_locator(FixedLocator(steps))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda value, _position: f"{value:,.0f}" if value < 1e7 else f"{value:.0e}")
    axes.grid(axis="x", color=palette.rule, linewidth=0.6, zorder=0.5)
    for index, (_, row) in enumerate(ordered):
        before, after = row["baseline"]["measured"], row["optimized"]["measured"]
        good = row["verdict"] == "pass"
        colour = palette.blue if good else palette.vermillion
        axes.plot([before, after], [index, index], color=palette.muted, linewidth=1.2, zorder=2)
        axes.plot(before, index, marker="o", markersize=6.5, color=palette.muted, markerfacecolor=palette.surface,
                  markeredgewidth=1.4, zorder=3)
        axes.plot(after, index, marker="o" if good else "X", markersize=6.5 if good else 8, color=colour, zorder=4)
        axes.text(1.012, index, f"{before:,} → {after:,}", transform=axes.get_yaxis_transform(), va="center_baseline",
                  ha="left", color=palette.ink)
    axes.set_xlabel(
        "count in one run (log scale from 1; 0 at the left):  ○ baseline  ● optimized  "
        "✖ not what the formula says")
    return figure
