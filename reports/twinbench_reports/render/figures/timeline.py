"""The card while an engine's jobs ran: utilisation, power, clock and temperature over time."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from twinbench_reports.cells import Row
from twinbench_reports.render import numbers
from twinbench_reports.render.figures.drawing import Drawing, bare_figure
from twinbench_reports.render.figures.theme import WIDTH, Palette

_PANELS = (("utilisation_percent", "utilisation", "%"), ("power_w", "power", "W"), ("sm_clock_mhz", "SM clock", "MHz"),
           ("temperature_c", "temperature", "°C"))


def timeline_drawings(timelines: Sequence[Row]) -> list[Drawing]:
    """One drawing for every engine's joined timeline with at least two samples of something."""
    drawings = []
    for number, row in enumerate(timelines):
        samples = row["samples"]
        panels = [panel for panel in _PANELS if samples and sum(value is not None for value in samples[panel[0]]) > 1]
        if panels:
            drawings.append(Drawing(f"timeline-{number}", f"The card during {row['engine']}", _finding(samples, panels),
                                    lambda palette, samples=samples, panels=panels: _draw(samples, panels, palette)))
    return drawings


def _finding(samples: Row, panels: Sequence[tuple[str, str, str]]) -> str:
    ranges = []
    for key, name, unit in panels:
        known = [value for value in samples[key] if value is not None]
        ranges.append(f"{name} {numbers.significant(min(known))} to {numbers.significant(max(known))} {unit}")
    return f"Over {numbers.seconds(samples['seconds'][-1])}: {', '.join(ranges)}."


def _draw(samples: Row, panels: Sequence[tuple[str, str, str]], palette: Palette) -> Figure:
    figure, axes = bare_figure(WIDTH, 2.4, palette, columns=len(panels))
    for one, (key, name, unit) in zip(axes, panels):
        one.set_title(f"{name}, {unit}", fontsize=9, loc="left", fontweight="bold", color=palette.ink)
        _draw_panel(one, samples["seconds"], samples[key], palette)
    return figure


def _draw_panel(axes: Axes, seconds: Sequence[float], values: Sequence[float | None], palette: Palette) -> None:
    """A value holds until the next sample; where there is none, the line breaks."""
    axes.step(seconds, [math.nan if value is None else value for value in values], where="post", color=palette.blue,
              linewidth=1.4)
    axes.set_ylim(0, max([value for value in values if value is not None], default=0) * 1.15 or 1)
    axes.set_xlim(0, seconds[-1] or 1)
    axes.grid(axis="y", color=palette.rule, linewidth=0.6)
    axes.set_xlabel("s")
