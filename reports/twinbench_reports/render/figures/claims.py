"""Dot plot of documented speedups beside the measured ones."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from twinbench_reports.render import numbers
from twinbench_reports.render.figures.drawing import Drawing, row_figure
from twinbench_reports.render.figures.theme import Palette
from twinbench_reports.render.figures.ticks import log_axis, times
from twinbench_reports.render.twins import ClaimView


def claim_drawings(claims: Sequence[ClaimView]) -> list[Drawing]:
    """One drawing of every claim that is a speedup and was measured; none where there is no such claim."""
    rows = [claim for claim in claims if claim.claimed and claim.measured and claim.measured.ratio]
    if not rows:
        return []
    rows.sort(key=lambda claim: (-claim.measured.ratio / claim.claimed, claim.component))
    return [
        Drawing("claims", "Documented speedups and measured ones", claim_finding(claims),
                lambda palette: _draw(rows, palette))]


def claim_finding(claims: Sequence[ClaimView]) -> str:
    """One sentence: how many claimed ratios were reached."""
    if not claims:
        return "The components of this record make no claims."
    count = {
        word: sum(1 for claim in claims if claim.decision == word)
        for word in ("meets", "misses", "unproven", "not measured", "not a speedup")}
    judged = count["meets"] + count["misses"] + count["unproven"]
    text = (f"Of {numbers.plural(len(claims), 'claim')}, {judged} could be measured as a ratio on this machine: "
            f"{count['meets']} met, {count['misses']} missed, {count['unproven']} left open")
    rest = [f"{count[word]} {word}" for word in ("not measured", "not a speedup") if count[word]]
    return text + (f"; {', '.join(rest)}." if rest else ".")


def _draw(rows: Sequence[ClaimView], palette: Palette) -> Figure:
    figure, axes = row_figure([f"{claim.component} · {claim.document}" for claim in rows], palette)
    speedups = [claim.measured.speedup for claim in rows]
    values = [claim.claimed
              for claim in rows] + [row[key] for row in speedups for key in ("lower", "ratio", "upper") if row[key]]
    log_axis(axes, "x", min(0.5, min(values) / 1.25), max(2.0, max(values) * 1.25), times)
    axes.grid(axis="x", color=palette.rule, linewidth=0.6, zorder=0.5)
    axes.axvline(1, color=palette.ink, linewidth=1.1, zorder=1)
    for index, (claim, row) in enumerate(zip(rows, speedups)):
        colour = {"meets": palette.green, "misses": palette.vermillion}.get(claim.decision, palette.purple)
        axes.plot([claim.claimed, row["ratio"]], [index, index], color=colour, linewidth=0.9, linestyle=(0, (2, 2)),
                  zorder=2)
        if row["lower"] and row["upper"]:
            axes.plot([row["lower"], row["upper"]], [index, index], color=colour, linewidth=2.4, solid_capstyle="butt",
                      zorder=3)
        axes.plot(row["ratio"], index, marker="o", markersize=6.5, color=colour, zorder=4)
        axes.plot(claim.claimed, index, marker="D", markersize=6, color=palette.ink, markerfacecolor=palette.surface,
                  markeredgewidth=1.2, zorder=4)
        axes.text(1.012, index, claim.decision, transform=axes.get_yaxis_transform(), va="center_baseline", ha="left",
                  color=palette.ink)
    axes.set_xlabel("speedup (log scale):  ◇ documented  ● measured here, with interval")
    return figure
