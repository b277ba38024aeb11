"""What a history keeps of a Twinbench record beside its times: what two runs are compared by without the records."""

from __future__ import annotations

from typing import Any

from twinbench_reports.judge.judge import judge
from twinbench_reports.judge.timing import HELD_OUT, usable_triple
from twinbench_reports.load import Record
from twinbench_reports.render.twins import gather_twins, telling_proofs


def run_facts(record: Record) -> dict[str, Any]:
    """The verdict, the speedups that are believed, with their intervals, and telling counts of the optimized side."""
    twins = gather_twins(record.block)
    ratios = {twin.name: list(triple) for twin in twins
              if twin.speedup and twin.key[3] != HELD_OUT and (triple := usable_triple(twin.speedup))}
    counts = {f"{row['component']}/{row['device']}/{row['dtype']}/{row['case']} [{row['counter']}]":
              row["optimized"]["measured"] for row in telling_proofs(twins)
              if row["case"] != HELD_OUT and row["optimized"]["measured"] is not None}
    return {"verdict": judge(record).word, "record": record.sha256, "ratios": ratios, "counts": counts}
