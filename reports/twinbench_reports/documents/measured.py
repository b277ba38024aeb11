"""What a record measured of the claims of the documents: one view a row of the ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from twinbench_reports.cells import parse_cell
from twinbench_reports.documents.load import MEASURE, Claim, Documents
from twinbench_reports.judge.timing import disbelief
from twinbench_reports.render import numbers
from twinbench_reports.render.twins import Twin, decide, representative

# What became of a row, best first.
STATES = ("measured", "modelled", "not in this record", "not built", "nothing measures it")


@dataclass(frozen=True)
class Value:
    """One measure of a claim, and what it gave."""

    state: str  # of STATES, or recomputed
    text: str
    decision: str = ""  # of a ratio, where the claim is one: meets, misses, unproven


@dataclass(frozen=True)
class LedgerRow:
    """A claim beside everything that measures it."""

    claim: Claim
    values: tuple[Value, ...]

    @property
    def state(self) -> str:
        states = [value.state for value in self.values if value.state != "recomputed"]
        return min(states, key=STATES.index, default="nothing measures it")

    @property
    def decision(self) -> str:
        return next((value.decision for value in self.values if value.decision), "")

    @property
    def subject(self) -> str:
        return self.claim.component or self.claim.scenario


def ledger_rows(documents: Documents, block: dict[str, Any], twins: Sequence[Twin]) -> list[LedgerRow]:
    """Every claim in the order of its ledger."""
    return [LedgerRow(claim, tuple(_value(documents, block, twins, claim, text) for text in claim.measures))
            for claim in documents.claims]


def ledger_finding(rows: Sequence[LedgerRow]) -> str:
    """The ledger in one sentence."""
    states = Counter(row.state for row in rows)
    words = Counter(row.claim.word for row in rows)
    return (f"Of {numbers.plural(len(rows), 'claim')} of the documents, " + ", ".join(
        f"{states[state]} {state}" for state in STATES if states[state]) + ". By the specifications " + ", ".join(
            f"{count} {word}" for word, count in words.most_common()) + ".")


def _value(documents: Documents, block: dict[str, Any], twins: Sequence[Twin], claim: Claim, measure: str) -> Value:
    found = MEASURE.fullmatch(measure)
    if found["arithmetic"]:
        return Value("recomputed", found["arithmetic"])
    if found["reason"]:
        return Value("nothing measures it", found["reason"])
    if found["scenario"]:
        return _scenario(documents, block, found["scenario"])
    component = documents.whole(found["component"] or claim.component)
    if component not in documents.built:
        return Value("not built", f"{component}, {measure.partition(' of ')[0].replace('_', ' ')}")
    if found["counter"]:
        return _proof(twins, component, found["counter"])
    return _modelled(block, component) if found["kind"] == "modelled" else _speedup(twins, component, claim)


def _speedup(twins: Sequence[Twin], component: str, claim: Claim) -> Value:
    twin = representative(twins, component)
    if not twin or twin.ratio is None:
        why = twin.speedup["reason"] if twin else ""
        return Value("not in this record", f"{component}, speedup" + (f": {why}" if why else ""))
    row = twin.speedup
    decision = decide(claim.ratio, row)
    return Value("measured", f"{component} {numbers.ratio(row['ratio'])} {numbers.interval(row['lower'], row['upper'])}"
                 f" on {twin.setting}", "" if claim.ratio is None else decision)


def _proof(twins: Sequence[Twin], component: str, counter: str) -> Value:
    rows = [row for twin in twins if twin.component == component for row in twin.proofs
            if row["counter"] == counter and row["baseline"]["measured"] is not None
            and row["optimized"]["measured"] is not None]
    name = counter.replace("_", " ")
    if not rows:
        return Value("not in this record", f"{component}, {name}")
    row = min(rows, key=lambda row:
              (row["case"] != "train", row["dtype"] != "fp32", -row["baseline"]["measured"], row["device"]))
    before, after = (numbers.counter(counter, row[side]["measured"]) for side in ("baseline", "optimized"))
    return Value("measured", f"{component} {name} {before} → {after} on {row['device']} · {row['dtype']} · "
                 f"{row['case']}")


def _modelled(block: dict[str, Any], component: str) -> Value:
    rows = [(parse_cell(row["cell"]), row) for row in block.get("modelled", []) if row["seconds"] is not None]
    rows = [(cell, row) for cell, row in rows if cell.component == component and cell.variant == "optimized"]
    if not rows:
        return Value("not in this record", f"{component}, modelled time")
    case = min((cell for cell, _ in rows), key=lambda cell: (cell.case != "train", cell.dtype != "fp32", str(cell)))
    times = [f"{numbers.seconds(row['seconds'])} on {row['card']}" for cell, row in rows if cell == case]
    return Value("modelled", f"{component} modelled {', '.join(times)} · {case.dtype} · {case.case}")


def _scenario(documents: Documents, block: dict[str, Any], source: str) -> Value:
    rows = [row for row in block["scenarios"] if row.get("source") == source]
    if not rows:
        state = "not in this record" if source in documents.built_scenarios else "not built"
        return Value(state, f"scenario {source}, {documents.scenario_name(source).replace('_', ' ')}")
    texts = []
    for row in rows:
        ratio = None if disbelief(block) else (row["speedup"] or {}).get("ratio")
        part = " (a part of it)" if row.get("part") else ""
        texts.append(f"{row['name']} {row['verdict']} on {row['device']}{part}"
                     + (f", a step {numbers.ratio(ratio)} faster" if ratio else ""))
    ran = any(row["verdict"] != "skip" for row in rows)
    return Value("measured" if ran else "not in this record", f"scenario {source}: {'; '.join(texts)}")
