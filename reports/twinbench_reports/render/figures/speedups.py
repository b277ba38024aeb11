"""Dot plots of speedups with their intervals around 1x, on a log axis: one figure a device and pipeline."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from twinbench_reports.render import numbers
from twinbench_reports.render.figures.drawing import Drawing, row_figure
from twinbench_reports.render.figures.theme import Palette
from twinbench_reports.render.figures.ticks import log_axis, times
from twinbench_reports.render.twins import Twin

MARKERS = {
    "faster": ("o", "blue", True),
    "slower": ("v", "vermillion", True),
    "same": ("s", "muted", False),
    "inconclusive": ("D", "purple", False),
    "rejected": ("X", "vermillion", True)}


def speedup_drawings(twins: Sequence[Twin]) -> list[Drawing]:
    """One drawing for each device and pipeline that was timed."""
    groups: dict[tuple[str, str], list[Twin]] = {}
    for twin in twins:
        if twin.ratio is not None and twin.ratio > 0:
            groups.setdefault((twin.key[1], twin.component.split(".")[0]), []).append(twin)
    limits = _limits([twin for group in groups.values() for twin in group])
    drawings = []
    for (device, pipeline), group in groups.items():
        group.sort(key=lambda twin: (-(twin.ratio or 0), twin.key))
        drawings.append(
            Drawing(f"speedups-{device}-{pipeline}", f"{pipeline} on {device}: baseline time over optimized time",
                    speedup_finding(group), lambda palette, group=group: _draw(group, limits, palette)))
    return drawings


def speedup_finding(twins: Sequence[Twin]) -> str:
    """One sentence: how many are faster, by how much, and what is not."""
    rows = [twin for twin in twins if twin.speedup]
    if not rows:
        return "No pair of twins was timed."
    count = {word: sum(1 for twin in rows if twin.speedup["verdict"] == word) for word in MARKERS}
    known = sorted((twin for twin in rows if twin.ratio), key=lambda twin: twin.ratio)
    text = f"{count['faster']} of {numbers.plural(len(rows), 'pair')} {'is' if count['faster'] == 1 else 'are'} faster"
    if known:
        rest = "".join(f", {count[word]} {word}" for word in ("rejected", "slower", "same", "inconclusive")
                       if count[word])
        text += (f"{rest}. The ratios run from {numbers.ratio(known[0].ratio)} ({known[0].component}) to "
                 f"{numbers.ratio(known[-1].ratio)} ({known[-1].component})")
    return text + "."


def row_names(twins: Sequence[Twin]) -> list[str]:
    """Short row names: what all rows share is left out."""
    shared = [len({twin.key[part] for twin in twins}) == 1 for part in range(4)]
    several = len({twin.component.split(".")[0] for twin in twins}) > 1
    return [
        " · ".join([twin.component if several else twin.component.split(".")[-1]]
                   + [twin.key[part] for part in (2, 3) if not shared[part]]) for twin in twins]


def _limits(twins: Sequence[Twin]) -> tuple[float, float]:
    """One scale for every figure of the section, so that dots compare across them."""
    values = [
        value for twin in twins
        for value in (twin.speedup["lower"], twin.ratio, twin.speedup["upper"], twin.library_speedup)
        if value is not None and value > 0]
    return min([0.5, *(value / 1.25 for value in values)]), max([2.0, *(value * 1.25 for value in values)])


def _draw(twins: Sequence[Twin], limits: tuple[float, float], palette: Palette) -> Figure:
    figure, axes = row_figure(row_names(twins), palette)
    log_axis(axes, "x", *limits, times)
    axes.grid(axis="x", color=palette.rule, linewidth=0.6, zorder=0.5)
    axes.axvline(1, color=palette.ink, linewidth=1.1, zorder=1)
    for index, twin in enumerate(twins):
        _draw_row(axes, index, twin, palette)
    axes.set_xlabel(
        "speedup over the baseline (log scale); bars: intervals;  ● faster  ▼ slower  □ same  ◇ inconclusive  "
        "| library variant"
    )
    return figure


def _draw_row(axes: Axes, index: int, twin: Twin, palette: Palette) -> None:
    row = twin.speedup
    shape, role, filled = MARKERS[row["verdict"]]
    colour = getattr(palette, role)
    if row["lower"] is not None and row["upper"] is not None and row["lower"] > 0:
        axes.plot([row["lower"], row["upper"]], [index, index], color=colour, linewidth=2.4, solid_capstyle="butt",
                  zorder=3)
    axes.plot(row["ratio"], index, marker=shape, markersize=6.5, color=colour,
              markerfacecolor=colour if filled else palette.surface, markeredgewidth=1.3, zorder=4)
    if twin.library_speedup:
        axes.plot(twin.library_speedup, index, marker="|", markersize=11, markeredgewidth=2.2, color=palette.purple,
                  zorder=3)
    axes.text(1.012, index, numbers.ratio(row["ratio"]), transform=axes.get_yaxis_transform(), va="center_baseline",
              ha="left", color=palette.ink, fontweight="bold", fontsize=8.5)
