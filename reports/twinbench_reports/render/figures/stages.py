"""Bars of counts by stage: how much of what is documented is built, checked and measured, and what became of claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from twinbench_reports.documents import coverage
from twinbench_reports.documents.measured import STATES, LedgerRow, ledger_finding
from twinbench_reports.render.figures.drawing import Drawing, row_figure
from twinbench_reports.render.figures.theme import Palette

# The role of each stage's colour; a stage without one is drawn hollow.
_ROLES = {
    "measured": "green", "checked": "blue", "modelled": "ochre", "built": "purple", "not in this record": "purple",
    "nothing measures it": "muted", "fails": "vermillion"}
_PALE = ("vermillion", )  # no number can be read on it in both themes: it stands beside the bar
_NARROWEST = 0.03  # of the width: a segment that has room for its number
Bars = Sequence[tuple[str, Mapping[str, int]]]


def coverage_drawings(found: coverage.Coverage) -> list[Drawing]:
    """Components and scenarios by pipeline."""
    return [Drawing("coverage", "What is documented, and how far it has come", coverage.coverage_finding(found),
                    lambda palette: _draw(found.counted(), coverage.STAGES, palette))]


def ledger_drawings(rows: Sequence[LedgerRow]) -> list[Drawing]:
    """Claims by ledger."""
    bars = {}
    for row in rows:
        counts = bars.setdefault(row.claim.order[0] + " claims", dict.fromkeys(STATES, 0))
        counts[row.state] += 1
    return [Drawing("ledger", "Claims of the documents, and what became of them", ledger_finding(rows),
                    lambda palette: _draw(list(bars.items()), STATES, palette))] if bars else []


def _draw(bars: Bars, stages: Sequence[str], palette: Palette) -> Figure:
    figure, axes = row_figure([name for name, _ in bars], palette)
    present = [stage for stage in stages if any(counts.get(stage) for _, counts in bars)]
    most = max(sum(counts.values()) for _, counts in bars)
    for index, (_, counts) in enumerate(bars):
        left = 0
        for stage in present:
            count = counts.get(stage, 0)
            if not count:
                continue
            axes.barh(index, count, left=left, height=0.62, zorder=3, linewidth=0.9, **_paint(stage, palette))
            if count >= _NARROWEST * most and _ROLES.get(stage) not in _PALE:
                axes.text(left + count / 2, index, str(count), ha="center", va="center_baseline", zorder=4,
                          color=palette.surface if stage in _ROLES else palette.ink)
            left += count
        pale = "".join(f", {counts[stage]} {stage}" for stage in present
                       if _ROLES.get(stage) in _PALE and counts.get(stage))
        axes.text(left + 0.012 * most, index, f"{left}{pale}", ha="left", va="center_baseline", color=palette.ink)
    axes.set_xlim(0, most)
    axes.set_xticks([])
    axes.legend(handles=[Patch(label=stage, **_paint(stage, palette)) for stage in present], ncols=len(present),
                loc="upper left", bbox_to_anchor=(0, 0), frameon=False, labelcolor=palette.ink, borderpad=0.2,
                handlelength=1.1, columnspacing=1.6)
    return figure


def _paint(stage: str, palette: Palette) -> dict[str, str]:
    if stage not in _ROLES:
        return {"facecolor": palette.surface, "edgecolor": palette.muted}
    colour = getattr(palette, _ROLES[stage])
    return {"facecolor": colour, "edgecolor": palette.surface}
