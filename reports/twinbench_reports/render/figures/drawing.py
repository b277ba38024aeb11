"""One figure: its words, and how to draw it. Turns a Matplotlib figure into inline SVG, a file, or PNG."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib.axes import Axes  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

from twinbench_reports.render.figures.theme import (  # noqa: E402
    DARK, LIGHT, RC, SENTINEL, VARIABLES, WIDTH, Palette, css_variables)

# Matplotlib's defaults and ours, so that a user's matplotlibrc changes no report.
_SETTINGS = {
    key: value for key, value in matplotlib.rcParamsDefault.items()
    if not key.startswith(("backend", "interactive", "toolbar", "webagg"))} | RC
_LONGEST = 44  # characters of a row name
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"


@dataclass(frozen=True)
class Drawing:
    """A figure with a title, a one-sentence finding, and a function that draws it in a palette."""

    key: str
    title: str
    finding: str
    draw: Callable[[Palette], Figure]

    def __post_init__(self) -> None:
        """The key becomes ids and file names, and may hold a name from the record: only harmless letters stay."""
        object.__setattr__(self, "key", re.sub(r"[^A-Za-z0-9_-]+", "-", self.key))

    def inline_svg(self) -> str:
        """SVG to stand inside HTML: colours are CSS variables, ids are the figure's own, the text is text."""
        with matplotlib.rc_context(_SETTINGS):
            buffer = io.StringIO()
            self.draw(SENTINEL).savefig(buffer, format="svg", transparent=True, metadata={
                "Date": None,
                "Creator": None,
                "Format": None,
                "Type": None})
        text = buffer.getvalue()
        text = text[text.index("<svg"):]
        text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
        for sentinel, variable in VARIABLES.items():
            text = text.replace(sentinel, variable)
        text = re.sub(r"'DejaVu Sans'[^;\"]*", lambda _: _FONT, text)
        text = re.sub(r'(id="|href="#|url\(#)', lambda match: match.group(1) + self.key + "-", text)
        words = (f'<title id="{self.key}-title">{html.escape(self.title)}</title>'
                 f'<desc id="{self.key}-desc">{html.escape(self.finding)}</desc>')
        view_box = re.search(r'viewBox="[^"]*"', text).group(0)
        head = (f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" {view_box} '
                f'role="img" aria-labelledby="{self.key}-title {self.key}-desc">{words}')
        return re.sub(r"<svg[^>]*>", lambda _: head, text, count=1)

    def standalone_svg(self) -> str:
        """The same as a file of its own, light and dark by the viewer's preference."""
        style = (f"<style>svg{{{css_variables(LIGHT)}background:var(--surface)}}"
                 f"@media (prefers-color-scheme:dark){{svg{{{css_variables(DARK)}}}}}</style>")
        return self.inline_svg().replace("</desc>", "</desc>" + style, 1)

    def write(self, folder: Path) -> list[Path]:
        """Writes <key>.svg and <key>.png (light, 200 dpi)."""
        svg, png = folder / f"{self.key}.svg", folder / f"{self.key}.png"
        svg.write_text(self.standalone_svg(), encoding="utf-8")
        with matplotlib.rc_context(_SETTINGS):
            self.draw(LIGHT).savefig(png, dpi=200, facecolor=LIGHT.surface, metadata={"Software": None})
        return [svg, png]


def bare_figure(width: float, height: float, palette: Palette, columns: int = 1, rows: int = 1,
                layout: str | None = "constrained") -> tuple[Figure, list[Axes]]:
    """A figure with axes, row by row, in the palette's ink and nothing else."""
    figure = Figure(figsize=(width, height), layout=layout)
    figure.patch.set_alpha(0)
    axes = [figure.add_subplot(rows, columns, place + 1) for place in range(rows * columns)]
    for one in axes:
        one.patch.set_alpha(0)
        one.tick_params(axis="both", colors=palette.muted, labelcolor=palette.ink)
        one.tick_params(axis="x", labelcolor=palette.muted)
        for spine in one.spines.values():
            spine.set_color(palette.rule)
        one.xaxis.label.set_color(palette.muted)
        one.yaxis.label.set_color(palette.muted)
        one.title.set_color(palette.ink)
    return figure, axes


def row_figure(names: list[str], palette: Palette) -> tuple[Figure, Axes]:
    """A figure of named rows from the top down, every second one shaded; the same margins whatever the names."""
    names = [name if len(name) <= _LONGEST else name[: _LONGEST - 14] + "…" + name[-13:] for name in names]
    height = 0.245 * len(names) + 0.62
    figure, (axes,) = bare_figure(WIDTH, height, palette, layout=None)
    left = 2.3 if max(map(len, names)) <= 30 else 3.2
    figure.subplots_adjust(left=left / WIDTH, right=1 - 0.95 / WIDTH, top=1 - 0.04 / height, bottom=0.54 / height)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_yticks(range(len(names)), names)
    for index in range(0, len(names), 2):
        axes.axhspan(index - 0.5, index + 0.5, color=palette.stripe, linewidth=0, zorder=0)
    return figure, axes
