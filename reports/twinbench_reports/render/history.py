"""`twinbench-report history`: tables and a figure of speedups over time."""

from __future__ import annotations

from matplotlib.figure import Figure

from twinbench_reports.history import History, same_segment_change
from twinbench_reports.render import numbers
from twinbench_reports.render.columns import Style, render_columns
from twinbench_reports.render.figures.drawing import Drawing
from twinbench_reports.render.figures.theme import WIDTH, Palette
from twinbench_reports.render.figures.ticks import log_axis, times

_DETAILED = 3  # with more twins than this, one line a twin
_PANELS = 12


def history_text(history: History, style: Style) -> str:
    """The segments, then each twin: point by point where there are few, in one line where there are many."""
    text = "".join(f"segment {index + 1}: {name}\n" for index, name in enumerate(history.segments)) + "\n"
    if len(history.twins) <= _DETAILED:
        for name, points in history.twins.items():
            rows = [(point.utc, point.revision[:12], str(point.segment + 1), numbers.ratio(point.row["ratio"]),
                     numbers.interval(point.row["lower"],
                                      point.row["upper"]), str(point.row["n"]), point.row["verdict"])
                    for point in points]
            text += style.paint(name, "head") + "\n"
            text += render_columns(("run", "revision", "segment", "speedup", "interval", "n", "verdict"), rows, style,
                                   right={2, 3, 5}) + "\n"
        return text
    rows = []
    for name, points in sorted(history.twins.items()):
        change = same_segment_change(points)
        rows.append((name, str(len(points)), numbers.ratio(points[-1].row["ratio"]),
                     f"{100 * (change - 1):+.1f} %" if change else numbers.DASH, points[-1].utc))
    return text + render_columns(
        ("twin", "records", "latest", "since the segment began", "run"), rows, style, right={1, 2, 3})


def history_drawing(history: History) -> Drawing:
    """One panel a twin; a rule and a number where a new segment begins."""
    shown = sorted(history.twins)[:_PANELS]
    more = len(history.twins) - len(shown)
    finding = (f"{numbers.plural(len(shown), 'pair')} of twins over {numbers.plural(len(history.segments), 'segment')} "
               "of machine and toolchain")
    finding += f"; {more} more are not drawn." if more else "."
    return Drawing("history", "Speedups over time", finding, lambda palette: _draw(history, shown, palette))


def _draw(history: History, shown: list[str], palette: Palette) -> Figure:
    figure = Figure(figsize=(WIDTH, 1.75 * len(shown) + 0.3), layout="constrained")
    figure.patch.set_alpha(0)
    for index, name in enumerate(shown):
        axes = figure.add_subplot(len(shown), 1, index + 1)
        axes.patch.set_alpha(0)
        axes.tick_params(colors=palette.muted, labelcolor=palette.muted)
        for spine in axes.spines.values():
            spine.set_color(palette.rule)
        axes.set_title(name, fontsize=9, loc="left", fontweight="bold", color=palette.ink)
        points = [point for point in history.twins[name] if point.row["ratio"]]
        values = [
            value for point in points for value in (point.row["ratio"], point.row["lower"], point.row["upper"])
            if value]
        log_axis(axes, "y", min([0.8, *values]) / 1.1, max([1.25, *values]) * 1.15, times, most=5)
        axes.axhline(1, color=palette.ink, linewidth=0.9)
        axes.grid(axis="y", color=palette.rule, linewidth=0.6)
        for x, point in enumerate(points):
            if x == 0 or point.segment != points[x - 1].segment:
                axes.axvline(x - 0.5, color=palette.purple, linewidth=1, linestyle=(0, (3, 2)))
                axes.text(x - 0.45, 0.99, f"segment {point.segment + 1}", transform=axes.get_xaxis_transform(),
                          va="top", color=palette.ink, fontsize=7.5)
            if point.row["lower"] and point.row["upper"]:
                axes.plot([x, x], [point.row["lower"], point.row["upper"]], color=palette.blue, linewidth=2)
            axes.plot(x, point.row["ratio"], marker="o", markersize=5.5, color=palette.blue)
        axes.set_xlim(-0.7, max(len(points), 2) - 0.3)
        axes.set_xticks(range(len(points)), [point.revision[:7] for point in points], fontsize=7.5)
    return figure
