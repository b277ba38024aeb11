"""Times and speedups of one component over the runs of a machine, with the changes of their level."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from twinbench_reports.render import numbers
from twinbench_reports.render.figures.drawing import Drawing, bare_figure
from twinbench_reports.render.figures.theme import WIDTH, Palette
from twinbench_reports.render.figures.ticks import log_axis, times

_MOST_NAMED = 8  # revisions on the axis


@dataclass(frozen=True)
class Track:
    """One pair of twins over the runs: a value a run, null where a run lacks it."""

    name: str
    revisions: Sequence[str]
    seconds: Sequence[float | None]  # of the optimized variant
    ratios: Sequence[Sequence[float] | None]  # (ratio, lower, upper)
    changes: Sequence[tuple[int, float]]  # (run, change of the level of the time as a logarithm)


def level_drawings(tracks: Sequence[Track]) -> list[Drawing]:
    """One drawing a track with at least two runs."""
    return [Drawing(f"history-{number}", f"{track.name} over {numbers.plural(len(track.revisions), 'run')}",
                    level_finding(track), lambda palette, track=track: _draw(track, palette))
            for number, track in enumerate(tracks) if sum(value is not None for value in track.seconds) > 1]


def level_finding(track: Track) -> str:
    """One sentence: the changes of level, or that there is none."""
    known = [value for value in track.seconds if value is not None]
    now = f"the optimized variant takes {numbers.seconds(known[-1])} in the newest run"
    if not track.changes:
        return f"No change of level is seen; {now}."
    words = [f"{100 * math.expm1(change):+.1f} % at {track.revisions[run][:10] or 'an unknown revision'}"
             for run, change in track.changes]
    return f"The level of the time changed by {', '.join(words)}; {now}."


def _draw(track: Track, palette: Palette) -> Figure:
    figure, (left, right) = bare_figure(WIDTH, 2.5, palette, columns=2)
    left.set_title("time of the optimized variant", fontsize=9, loc="left", fontweight="bold", color=palette.ink)
    right.set_title("speedup over the baseline", fontsize=9, loc="left", fontweight="bold", color=palette.ink)
    _draw_times(left, track, palette)
    _draw_ratios(right, track, palette)
    for axes in (left, right):
        count = len(track.revisions)
        axes.set_xlim(-0.5, max(count, 2) - 0.5)
        places = sorted({round(place) for place in np.linspace(0, count - 1, min(count, _MOST_NAMED))})
        axes.set_xticks(places, [track.revisions[place][:7] for place in places], fontsize=7)
        axes.grid(axis="y", color=palette.rule, linewidth=0.6)
        axes.tick_params(axis="y", labelcolor=palette.muted)
    return figure


def _draw_times(axes: Axes, track: Track, palette: Palette) -> None:
    known = [(run, value) for run, value in enumerate(track.seconds) if value is not None]
    values = [value for _, value in known]
    ends, middle = _ends(min(values), max(values))
    log_axis(axes, "y", ends[0] / 1.08, ends[1] * 1.08, numbers.seconds)
    places = [ends[0], middle, ends[1]]
    axes.set_yticks(places, [numbers.seconds(place) for place in places])
    axes.plot(*zip(*known), linestyle="none", marker="o", markersize=4, color=palette.blue, zorder=3)
    edges = [0, *(run for run, _ in track.changes), len(track.seconds)]
    for first, last in zip(edges, edges[1:]):
        own = [value for run, value in known if first <= run < last]
        if own:
            level = float(np.median(own))
            axes.plot([first - 0.4, last - 0.6], [level, level], color=palette.ink, linewidth=1.2, zorder=2)
    for run, change in track.changes:
        colour, shape = (palette.vermillion, "▲") if change > 0 else (palette.green, "▼")
        axes.axvline(run - 0.5, color=colour, linewidth=1, linestyle=(0, (3, 2)))
        axes.text(run - 0.4, 0.98, f"{shape} {100 * math.expm1(change):+.1f} %", va="top", fontsize=7.5,
                  transform=axes.get_xaxis_transform(), color=palette.ink)
    axes.set_xlabel("run, by revision;  ● median time  — level (log scale)")


def _ends(low: float, high: float) -> tuple[tuple[float, float], float]:
    """The ends and the middle of an axis that is at least a fifth high, so that noise looks like noise."""
    middle, half = math.sqrt(low * high), max(math.sqrt(high / low), 1.1)
    return (middle / half, middle * half), middle


def _draw_ratios(axes: Axes, track: Track, palette: Palette) -> None:
    known = [(run, *triple) for run, triple in enumerate(track.ratios) if triple]
    ends = [value for _, _, lower, upper in known for value in (lower, upper)]
    low, high = min([0.8, *ends]), max([1.25, *ends])
    log_axis(axes, "y", low / 1.1, high * 1.15, times, most=5)
    axes.axhline(1, color=palette.ink, linewidth=0.9)
    for run, ratio, lower, upper in known:
        axes.plot([run, run], [lower, upper], color=palette.blue, linewidth=1.8, zorder=2)
        axes.plot(run, ratio, marker="o", markersize=3.6, color=palette.blue, zorder=3)
    axes.set_xlabel("run, by revision;  ● speedup  | interval (log scale)" if known else "no run has a speedup")
