"""Every documented component and scenario, whether it is built, and what the record says of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from twinbench_reports.documents.load import Documents
from twinbench_reports.render import numbers
from twinbench_reports.render.twins import Twin, gather_parity, representative

# How far an item has come, furthest first; what fails stands apart.
STAGES = ("measured", "checked", "built", "not built", "fails")
MEANING = {
    "measured": "a component that is checked and has a speedup; a scenario that passes whole",
    "checked": "a component whose parity passes, or that lacks a part; a scenario that passes for a part of its "
               "source",
    "built": "in the source tree; this record has no verdict on it",
    "not built": "documented, and not in the source tree",
    "fails": "in this record parity or a scenario's criterion fails", }


@dataclass(frozen=True)
class Item:
    """A documented component or scenario."""

    source: str  # energy_flow C06, energy_flow SC21
    name: str
    stage: str
    note: str
    twin: Twin | None = None  # what stands for a component

    @property
    def pipeline(self) -> str:
        return self.source.split(" ")[0]


@dataclass(frozen=True)
class Traced:
    """An item of a document's text, and the components and scenarios that it became."""

    document: str
    item: str
    components: tuple[Item, ...]
    scenarios: tuple[Item, ...]


@dataclass(frozen=True)
class Coverage:
    """All that is documented."""

    components: tuple[Item, ...]
    scenarios: tuple[Item, ...]
    trace: tuple[Traced, ...]

    def counted(self) -> list[tuple[str, Counter[str]]]:
        """How many of a pipeline's components and scenarios are how far."""
        return [(f"{pipeline} {kind}", Counter(item.stage for item in items if item.pipeline == pipeline))
                for kind, items in (("components", self.components), ("scenarios", self.scenarios))
                for pipeline in dict.fromkeys(item.pipeline for item in items)]


def coverage(documents: Documents, block: dict[str, Any], twins: Sequence[Twin]) -> Coverage:
    """Nothing documented is left out: what is not built has a row that says so."""
    parity: dict[str, Counter[str]] = {}
    for view in gather_parity(block):
        parity.setdefault(view.component, Counter()).update(view.verdicts)
    components = tuple(_component(documents, row, parity, twins) for row in documents.components)
    scenarios = tuple(_scenario(documents, block, row) for row in documents.scenarios)
    by_source = {item.source: item for item in (*components, *scenarios)}
    trace = tuple(Traced(row["document"], row["item"], tuple(by_source[source] for source in row["components"]),
                         tuple(by_source[source] for source in row["scenarios"])) for row in documents.trace)
    return Coverage(components, scenarios, trace)


def coverage_finding(found: Coverage) -> str:
    """The section in one sentence."""
    return ". ".join(f"Of {numbers.plural(len(items), f'documented {name}')} {stages_text(items)}"
                     for name, items in (("component", found.components), ("scenario", found.scenarios))) + "."


def stages_text(items: Sequence[Item]) -> str:
    """"2 measured, 1 not built", or a dash."""
    stages = Counter(item.stage for item in items)
    return ", ".join(f"{stages[stage]} {stage}" for stage in STAGES if stages[stage]) or numbers.DASH


def _component(documents: Documents, row: dict[str, Any], parity: dict[str, Counter[str]],
               twins: Sequence[Twin]) -> Item:
    name = documents.whole(row["component"])
    part = "" if name == row["component"] else f"part of {name}"
    missing = f"missing: {row['missing']}" if "missing" in row else ""
    if name not in documents.built:
        return Item(row["source"], row["component"], "not built", part)
    verdicts = parity.get(name, Counter())
    twin = representative(twins, name)
    if verdicts["fail"] or verdicts["error"]:
        stage, note = "fails", f"{verdicts['fail'] + verdicts['error']} of {sum(verdicts.values())} parity checks"
    elif not verdicts["pass"]:
        stage, note = "built", "no parity check in this record"
    elif twin and twin.ratio is not None and not missing:
        stage, note = "measured", f"{verdicts['pass']:,} parity checks pass"
    else:
        stage, note = "checked", f"{verdicts['pass']:,} parity checks pass"
        if not twin or twin.ratio is None:
            note += "; no speedup in this record"
    return Item(row["source"], row["component"], stage, "; ".join(filter(None, (part, note, missing))), twin)


def _scenario(documents: Documents, block: dict[str, Any], row: dict[str, Any]) -> Item:
    source = row["source"]
    found = [one for one in block["scenarios"] if one.get("source") == source and one["verdict"] != "skip"]
    if any(one["verdict"] != "pass" for one in found):
        stage = "fails"
    elif found:
        stage = "checked" if all(one.get("part") for one in found) else "measured"
    else:
        stage = "built" if source in documents.built_scenarios else "not built"
    shown = "; ".join(f"{one['name']} on {one['device']}" + (f" ({one['part']})" if one.get("part") else "")
                      for one in found)
    return Item(source, row["name"], stage, shown or row["proves"])
