"""The roofline of this machine, from measured ceilings, and each twin's distance to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from twinbench_reports.cells import Row
from twinbench_reports.render import numbers
from twinbench_reports.render.figures.drawing import Drawing, bare_figure, row_figure
from twinbench_reports.render.figures.speedups import row_names
from twinbench_reports.render.figures.theme import WIDTH, Palette
from twinbench_reports.render.figures.ticks import log_axis, percent, rate, short
from twinbench_reports.render.twins import Twin

_NAME_WIDTH, _NAME_HEIGHT = 0.4, 0.17  # decades that a name takes in the roofline plot


def roofline_drawings(twins: Sequence[Twin], block: dict[str, Any]) -> list[Drawing]:
    """For each device: the roofline where something computes and a ceiling was measured, then the distances."""
    drawings = []
    for device in ("cpu", "cuda"):
        own = [twin for twin in twins if twin.key[1] == device]
        ceilings = [ceiling for ceiling in block["ceilings"] if ceiling["device"] == device and ceiling["value"] > 0]
        points = [twin for twin in own if _point(twin, "optimized")]
        if points and any(ceiling["unit"] == "B/s" for ceiling in ceilings):
            drawings.append(
                Drawing(f"roofline-{device}", f"Roofline of this machine ({device})", _ceiling_words(ceilings),
                        lambda palette, points=points, ceilings=ceilings: _draw_roofline(points, ceilings, palette)))
        near = [twin for twin in own if twin.roofline("optimized")]
        near.sort(key=lambda twin: (-(twin.roofline("optimized") or 0), twin.key))
        if near:
            drawings.append(
                Drawing(f"distance-{device}", f"Share of the roof that is reached ({device})", roofline_finding(near),
                        lambda palette, near=near: _draw_distance(near, palette)))
    return drawings


def roofline_finding(twins: Sequence[Twin]) -> str:
    """One sentence: where the optimized variants stand below the roof."""
    known = sorted(
        (twin.roofline("optimized"), twin.component) for twin in twins if twin.roofline("optimized") is not None)
    if not known:
        return "No timed twin has a cost model and a measured ceiling."
    middle = known[len(known) // 2]
    return (
        f"The optimized variants reach {numbers.percent(known[0][0])} ({known[0][1]}) to "
        f"{numbers.percent(known[-1][0])} ({known[-1][1]}) "
        f"of what this machine can do; the middle one reaches {numbers.percent(middle[0])}.")


def _ceiling_words(ceilings: Sequence[Row]) -> str:
    return "Measured ceilings: " + ", ".join(f"{ceiling['name']} {numbers.rate(ceiling['value'], ceiling['unit'])}"
                                             for ceiling in ceilings) + "."


def _point(twin: Twin, variant: str) -> tuple[float, float] | None:
    """(FLOP per byte, FLOP per second) of a variant; none for what computes nothing or was not timed."""
    row = twin.timings.get(variant)
    if not row or row["verdict"] != "pass" or not row["median_s"] or not row["bytes"] or not row["flops"]:
        return None
    return row["flops"] / row["bytes"], row["flops"] / row["median_s"]


def _draw_roofline(twins: Sequence[Twin], ceilings: Sequence[Row], palette: Palette) -> Figure:
    figure, (axes,) = bare_figure(WIDTH, 5.0, palette)
    points = [point for twin in twins for variant in ("baseline", "optimized") if (point := _point(twin, variant))]
    bandwidth = max(ceiling["value"] for ceiling in ceilings if ceiling["unit"] == "B/s")
    peaks = [ceiling for ceiling in ceilings if ceiling["unit"] == "FLOP/s"]
    top = max([peak["value"] for peak in peaks] + [rate_ for _, rate_ in points])
    left, right = min(x for x, _ in points) / 3, max([x for x, _ in points] + [top / bandwidth]) * 4
    log_axis(axes, "x", left, right, short)
    log_axis(axes, "y", min(y for _, y in points) / 3, top * 2.2, rate("FLOP/s"), most=7)
    axes.grid(color=palette.rule, linewidth=0.6, zorder=0.5)
    _draw_roofs(axes, bandwidth, peaks, (left, right), palette)
    named = _named(twins)
    for twin in twins:
        after, before = _point(twin, "optimized"), _point(twin, "baseline")
        if before:
            axes.plot([before[0], after[0]], [before[1], after[1]], color=palette.muted, linewidth=0.9, zorder=2)
            axes.plot(*before, marker="o", markersize=5.5, color=palette.muted, markerfacecolor=palette.surface,
                      markeredgewidth=1.3, zorder=3)
        axes.plot(*after, marker="o", markersize=6.5, color=palette.blue, zorder=4)
        if twin.name in named:
            axes.annotate(named[twin.name], after, textcoords="offset points", xytext=(6, -3), fontsize=8,
                          color=palette.ink, zorder=5)
    axes.set_xlabel("FLOP per byte that must move (log scale):  ○ baseline  ● optimized")
    axes.set_ylabel("speed (log scale)")
    return figure


def _draw_roofs(axes: Axes, bandwidth: float, peaks: Sequence[Row], span: tuple[float, float],
                palette: Palette) -> None:
    left, right = span
    ridge = max((peak["value"] for peak in peaks), default=bandwidth * right) / bandwidth
    slope = np.array([left, min(ridge, right)])
    axes.plot(slope, slope * bandwidth, color=palette.green, linewidth=1.8, zorder=1.5)
    middle = float(np.sqrt(slope[0] * slope[1]))
    axes.annotate(f"copy {numbers.rate(bandwidth, 'B/s')}", (middle, middle * bandwidth), textcoords="offset points",
                  xytext=(-6, 5), ha="right", color=palette.ink, fontsize=8)
    for peak in peaks:
        start = peak["value"] / bandwidth
        if start < right:
            axes.plot([start, right], [peak["value"]] * 2, color=palette.green, linewidth=1.8, zorder=1.5)
            axes.annotate(f"{peak['name']} {numbers.rate(peak['value'], 'FLOP/s')}", (right, peak["value"]),
                          textcoords="offset points", xytext=(-3, 4), ha="right", color=palette.ink, fontsize=8)


def _named(twins: Sequence[Twin]) -> dict[str, str]:
    """Names for the points that have room for one: every component once at most, no two names on top of each other."""
    placed: list[tuple[float, float]] = []
    named: dict[str, str] = {}
    for twin in sorted(twins, key=lambda twin: (twin.key[2] != "fp32", -(twin.roofline("optimized") or 0), twin.key)):
        name = twin.component.split(".")[-1]
        x, y = (float(np.log10(value)) for value in _point(twin, "optimized"))
        if name in named.values() or any(
                abs(x - other_x) < _NAME_WIDTH and abs(y - other_y) < _NAME_HEIGHT for other_x, other_y in placed):
            continue
        named[twin.name] = name
        placed.append((x, y))
    return named


def _draw_distance(twins: Sequence[Twin], palette: Palette) -> Figure:
    figure, axes = row_figure(row_names(twins), palette)
    values = [value for twin in twins for variant in ("baseline", "optimized") if (value := twin.roofline(variant))]
    log_axis(axes, "x", min(0.05, min(values) / 1.4), max(1.3, max(values) * 1.3), percent)
    axes.grid(axis="x", color=palette.rule, linewidth=0.6, zorder=0.5)
    axes.axvline(1, color=palette.green, linewidth=1.5, zorder=1)
    for index, twin in enumerate(twins):
        before, after = twin.roofline("baseline"), twin.roofline("optimized")
        if before:
            axes.plot([before, after], [index, index], color=palette.muted, linewidth=1.2, zorder=2)
            axes.plot(before, index, marker="o", markersize=6, color=palette.muted, markerfacecolor=palette.surface,
                      markeredgewidth=1.4, zorder=3)
        axes.plot(after, index, marker="o", markersize=6.5, color=palette.blue, zorder=4)
        axes.text(1.012, index, numbers.percent(after), transform=axes.get_yaxis_transform(), va="center_baseline",
                  ha="left", color=palette.ink, fontweight="bold")
    axes.set_xlabel("physical floor over measured time (log scale; the roof is 100 %):  ○ baseline  ● optimized")
    return figure
