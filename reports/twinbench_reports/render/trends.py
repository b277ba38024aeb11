"""`twinbench-report trends`: each series of the history with its latest time and the changes of its level."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from twinbench_reports.render import numbers
from twinbench_reports.render.columns import Style, render_columns
from twinbench_reports.statistics.change_points import LEAST_POINTS, ChangePoint, change_points
from twinbench_reports.store.folder import Trend

HEAD = ("series", "machine", "runs", "latest", "change of level", "at", "revision")


def trend_rows(trends: Sequence[Trend], changed_only: bool) -> list[tuple[str, ...]]:
    """One row a change of level, the largest slowdown first, then the series without one."""
    changed: list[tuple[float, tuple[str, ...]]] = []
    quiet = []
    for trend in trends:
        about = (trend.series, trend.machine, str(len(trend.seconds)), numbers.seconds(trend.seconds[-1]))
        points = change_points(np.log(trend.seconds))
        changed += [(point.change, (*about, *_change(trend, point))) for point in points]
        if not points and not changed_only:
            few = "" if len(trend.seconds) >= LEAST_POINTS else f"too few runs: {LEAST_POINTS} are needed"
            quiet.append((*about, few or "none", "", ""))
    return [row for _, row in sorted(changed, key=lambda pair: (-pair[0], pair[1]))] + quiet


def _change(trend: Trend, point: ChangePoint) -> tuple[str, str, str]:
    utc, revision = trend.runs[point.index]
    return f"{100 * math.expm1(point.change):+.1f} %", utc, revision[:12] or "unknown"


def trends_text(rows: Sequence[tuple[str, ...]], style: Style) -> str:
    """The table."""
    return render_columns(HEAD, rows, style, right={2, 3, 4})
