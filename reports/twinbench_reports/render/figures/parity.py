"""Worst error over allowed error, a row a component: how much room is left to the limit."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from twinbench_reports.render import numbers
from twinbench_reports.render.figures.drawing import Drawing, row_figure
from twinbench_reports.render.figures.theme import Palette
from twinbench_reports.render.figures.ticks import log_axis, short
from twinbench_reports.render.twins import ParityView

_SHAPES = {"fp64": "s", "fp32": "o", "bf16": "D", "tf32": "^", "fp16": "v"}
_EXACT = 1e-5  # ratios at or below are drawn here: equal, or as good as


def parity_drawings(views: Sequence[ParityView]) -> list[Drawing]:
    """One drawing a device."""
    drawings = []
    for device in sorted({view.device for view in views if view.worst_ratio is not None}):
        group = [view for view in views if view.device == device and view.worst_ratio is not None]
        drawings.append(
            Drawing(f"parity-{device}", f"Worst error over allowed error on {device}", parity_finding(group),
                    lambda palette, group=group: _draw(group, palette)))
    return drawings


def parity_finding(views: Sequence[ParityView]) -> str:
    """One sentence: how many checks passed, and which came nearest to its limit."""
    passed, total = sum(view.verdicts["pass"]
                        for view in views), sum(sum(view.verdicts.values()) - view.verdicts["skip"] for view in views)
    worst = max((view for view in views if view.worst_ratio is not None), key=lambda view: view.worst_ratio,
                default=None)
    if not total:
        return "No parity check was run."
    text = f"{passed:,} of {numbers.plural(total, 'check')} passed"
    return text + (
        f"; nearest to its limit: {worst.component} in {worst.dtype}, at {numbers.significant(worst.worst_ratio)} of "
        "the allowed error."
        if worst else ".")


def _draw(views: Sequence[ParityView], palette: Palette) -> Figure:
    names = list(dict.fromkeys(view.component for view in views))
    figure, axes = row_figure(names, palette)
    worst = max(view.worst_ratio for view in views)
    log_axis(axes, "x", _EXACT / 1.6, max(3.0, worst * 1.5), lambda value: "exact"
             if value <= _EXACT * 1.01 else short(value), most=7)
    axes.grid(axis="x", color=palette.rule, linewidth=0.6, zorder=0.5)
    axes.axvspan(1, max(3.0, worst * 1.5), color=palette.vermillion, alpha=0.09, linewidth=0, zorder=0.6)
    axes.axvline(1, color=palette.vermillion, linewidth=1.3, zorder=1)
    for view in views:
        bad = view.verdict in ("fail", "error")
        colour = palette.vermillion if bad else palette.blue if view.dtype == "fp32" else palette.green
        axes.plot(max(view.worst_ratio, _EXACT), names.index(view.component),
                  marker="X" if bad else _SHAPES[view.dtype], markersize=8 if bad else 6, color=colour,
                  markerfacecolor=colour if view.dtype != "bf16" or bad else palette.surface, markeredgewidth=1.3,
                  zorder=4)
    axes.set_xlabel(
        "worst error as a share of the allowed error (log scale; the limit is 1):  ● fp32  ◇ bf16  ▲ tf32  ▼ fp16"
        "  ✖ failed")
    return figure
