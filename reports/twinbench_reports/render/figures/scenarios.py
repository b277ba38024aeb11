"""A scenario step by step: time of every step, and whatever else it wrote a value a step for."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator

from twinbench_reports.cells import Row
from twinbench_reports.render import numbers
from twinbench_reports.render.figures.drawing import Drawing, bare_figure
from twinbench_reports.render.figures.theme import WIDTH, Palette
from twinbench_reports.render.figures.ticks import log_axis

_ABREAST = 4  # panels
Series = list[tuple[str, list[float | None]]]  # (variant, a value a step)


def scenario_drawings(scenarios: Sequence[Row]) -> list[Drawing]:
    """One drawing for every scenario that kept its steps."""
    drawings = []
    for number, row in enumerate(scenarios):
        panels = _panels(row)
        if panels:
            drawings.append(
                Drawing(f"scenario-{number}", f"{row['name']} on {row['device']}, step by step", _finding(panels),
                        lambda palette, panels=panels: _draw(panels, palette)))
    return drawings


def _panels(row: Row) -> list[tuple[str, str, Series]]:
    """(name, unit, series): the time of a step first, then each timeline by its name."""
    panels: dict[tuple[str, str], Series] = {}
    for variant in row["variants"]:
        name = variant["variant"] + (" (extrapolated)" if variant["extrapolated"] else "")
        if len(variant["samples_s"]) > 1:
            panels.setdefault(("time of a step", "s"), []).append((name, _whole_steps(variant)))
        for timeline in variant.get("timelines", []):
            if len(timeline["values"]) > 1:
                panels.setdefault((timeline["name"].replace("_", " "), timeline["unit"]), []).append(
                    (name, timeline["values"]))
    return [(name, unit, series) for (name, unit), series in panels.items()]


def _whole_steps(variant: Row) -> list[float | None]:
    """Seconds of each step of the whole configuration: samples of fewer flows are scaled as the record's own figure
    is."""
    known = [value for value in variant["samples_s"] if value is not None]
    scale = variant["seconds_per_step"] / statistics.median(
        known) if variant["extrapolated"] and known and variant["seconds_per_step"] else 1.0
    return [None if value is None else value * scale for value in variant["samples_s"]]


def _finding(panels: Sequence[tuple[str, str, Series]]) -> str:
    """One sentence: the first and the last value of every line of the first panel."""
    name, unit, series = panels[0]
    write = _writer(unit)
    ends = []
    for variant, line in series:
        known = [value for value in line if value is not None]
        if known:
            ends.append(f"{variant} {write(known[0])} at first and {write(known[-1])} at last")
    return f"{name.capitalize()}: {'; '.join(ends)}."


def _writer(unit: str) -> Callable[[float], str]:
    return {"s": numbers.seconds, "B": numbers.binary_size}.get(unit, numbers.significant)


def _short(write: Callable[[float], str]) -> Callable[[float], str]:
    """The same without trailing zeros: 2 s for 2.00 s."""
    return lambda value: re.sub(r"(\.\d*?)0+(?=\D|$)", lambda match: match.group(1).rstrip("."), write(value))


def _draw(panels: Sequence[tuple[str, str, Series]], palette: Palette) -> Figure:
    columns = min(len(panels), _ABREAST)
    rows = math.ceil(len(panels) / columns)
    figure, axes = bare_figure(WIDTH, 2.9 * rows, palette, columns=columns, rows=rows)
    for one in axes[len(panels):]:
        one.set_axis_off()
    for one, (name, unit, series) in zip(axes, panels):
        one.set_title(name, fontsize=9, loc="left", fontweight="bold", color=palette.ink)
        _draw_panel(one, unit, series, palette)
    return figure


def _draw_panel(axes: Axes, unit: str, series: Series, palette: Palette) -> None:
    values = [value for _, line in series for value in line if value is not None]
    longest = max(len(line) for _, line in series)
    write = _short(_writer(unit))
    if values and min(values) > 0 and max(values) / min(values) > 8:
        log_axis(axes, "y", min(values) / 1.6, max(values) * 1.9, write, most=6)
        axes.set_ylabel("log scale")
    else:
        low, high = min([0.0, *values]), max([0.0, *values])
        axes.set_ylim(low, high * 1.18 or 1.0)
        if unit == "B" and high > 0:
            step = 2.0 ** math.ceil(math.log2(high / 5))
            axes.yaxis.set_major_locator(MultipleLocator(step))
        axes.yaxis.set_major_formatter(lambda value, _position: write(value))
    axes.set_xlim(0, longest * 1.02)
    axes.grid(axis="y", color=palette.rule, linewidth=0.6)
    axes.tick_params(axis="y", labelcolor=palette.muted)
    ends: list[float] = []
    for name, line in series:
        first = name.startswith("baseline")
        colour = palette.muted if first else palette.purple if name.startswith("library") else palette.blue
        shown = [float("nan") if value is None else value for value in line]
        axes.plot(range(1,
                        len(shown) + 1), shown, color=colour, linewidth=1.6,
                  linestyle=(0, (4, 2)) if first else "solid")
        known = [value for value in line if value is not None]
        if known:
            # Under its line where another that ends at the same height has its name above.
            covered = any(math.isclose(known[-1], end, rel_tol=0.05) for end in ends)
            ends.append(known[-1])
            axes.annotate(("○ " if first else "● ") + name, (longest, known[-1]), textcoords="offset points",
                          xytext=(0, -13 if covered else 7), ha="right", color=palette.ink, fontsize=8)
    axes.set_xlabel("step")
