"""Modelled times: how near a card's floor the model puts a cell may not fall below the pin or the earlier record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from twinbench_reports.cells import Row, named_rows
from twinbench_reports.judge.findings import Finding
from twinbench_reports.judge.reproduce import reproduce
from twinbench_reports.load import Record

ROUNDING = 0.001  # of a share: the pin keeps three decimals


def drop(row: Row, earlier: Row | None) -> str:
    """What floor / modelled fell from and to, in words with the card and the limiter; "" where it did not fall."""
    before, after = (earlier or {}).get("floor_share"), row["floor_share"]
    if before is not None and after is None and row["verdict"] == "pass":
        return f"modelled on {row['card']}: there is no floor / modelled, and it was {before:.3f}"
    if before is None or after is None or after >= before - ROUNDING:
        return ""
    limiter = row["limiter"] if row["limiter"] == earlier["limiter"] else f"{row['limiter']}, was {earlier['limiter']}"
    return f"modelled on {row['card']}: floor / modelled fell {before:.3f} -> {after:.3f}, limited by {limiter}"


def judge_modelled_against(now: Record, before: Record | None) -> Iterator[Finding]:
    """A finding for every cell and card whose share of the floor is lower than in the baseline record."""
    if before is None:
        return
    earlier = {name: row for name, row in named_rows(before.block, "modelled")}
    for name, row in named_rows(now.block, "modelled"):
        text = drop(row, earlier.get(name))
        if text:
            yield Finding("fail", "modelled", name, f"{text}, against the baseline record", reproduce("modelled", row),
                          magnitude(row, earlier[name]))


def magnitude(row: Row, earlier: Row | None) -> float | None:
    """The loss as a fraction of the earlier share."""
    before, after = (earlier or {}).get("floor_share"), row["floor_share"]
    return 1 - after / before if before and after is not None else None
