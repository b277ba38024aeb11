"""One view of a pair of twins, gathered from every section of a record: what tables and figures draw."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from twinbench_reports.cells import Row, parse_cell
from twinbench_reports.judge.timing import disbelief
from twinbench_reports.render import numbers

Key = tuple[str, str, str, str]  # component, device, dtype, case
VERDICT_ORDER = ("error", "fail", "rejected", "slower", "inconclusive", "skip", "same", "faster", "pass", "")


@dataclass
class Twin:
    """All that is known of one component on one device, in one dtype and case."""

    key: Key
    speedup: Row | None = None  # baseline -> optimized
    library: Row | None = None  # library -> optimized
    timings: dict[str, Row] = field(default_factory=dict)  # by variant
    counters: dict[str, Row] = field(default_factory=dict)  # by variant
    proofs: list[Row] = field(default_factory=list)

    @property
    def component(self) -> str:
        return self.key[0]

    @property
    def name(self) -> str:
        return "/".join(self.key)

    @property
    def setting(self) -> str:
        """Everything but the component: cpu · fp32 · train."""
        return " · ".join(self.key[1:])

    @property
    def ratio(self) -> float | None:
        return self.speedup["ratio"] if self.speedup else None

    @property
    def library_speedup(self) -> float | None:
        """Baseline time over library time, from the two ratios that were paired."""
        return self.ratio / self.library["ratio"] if self.ratio and self.library and self.library["ratio"] else None

    @property
    def decomposed(self) -> bool:
        """Were the parts of its speedup measured (on a device)?"""
        return bool(self.speedup and self.speedup.get("decomposition"))

    def part(self, name: str) -> float | None:
        """A factor of the speedup in place: wall, host, launch_gap or kernel."""
        return self.speedup["decomposition"].get(name) if self.speedup and self.decomposed else None

    @property
    def gap_closed(self) -> float | None:
        """Of the time between the baseline and the floor, the share that the optimized variant saves: 1 at the floor,
        below 0 where it is slower. None where the floor does not bind."""
        row, clock = self.timings.get("baseline", {}), "median_s"
        if self.speedup and self.speedup.get("clock") == "gpu_span":
            clock = "gpu_median_s"
        if not self.ratio or self.roofline("optimized") is None or not row.get(clock) or not row.get("floor_s"):
            return None
        return (1 - 1 / self.ratio) / (1 - row["floor_s"] / row[clock]) if row[clock] > row["floor_s"] else None

    def busy_share(self, variant: str) -> float | None:
        """The device's busy time over the host's wall time, in place."""
        times = self.timings.get(variant, {}).get("in_place")
        return times["busy_s"] / times["wall_s"] if times and times["busy_s"] is not None and times["wall_s"] else None

    def parts_reasons(self) -> str:
        """Why a part, a trace or a graph is missing, and why the host's clock is published; once each."""
        row = self.speedup or {}
        reasons = [row.get("decomposition_reason"), row.get("clock_reason")]
        for variant, timing in sorted(self.timings.items()):
            reasons += [f"{variant}: {timing[key]}" for key in ("graph_reason",) if timing.get(key)]
        return "; ".join(dict.fromkeys(reason for reason in reasons if reason))

    def roofline(self, variant: str) -> float | None:
        """Share of the roof; none where the data stays in a cache, which the roof of the memory says nothing about."""
        row = self.timings.get(variant)
        if not row or row["verdict"] != "pass" or row["roofline_fraction"] is None:
            return None
        return row["roofline_fraction"] if row["impossible_below_s"] or row["roofline_fraction"] <= 1 else None


def gather_twins(block: dict[str, Any]) -> list[Twin]:
    """Every pair of twins that was timed, counted or proved, in the order of the component list."""
    twins: dict[Key, Twin] = {}

    def at(key: Key) -> Twin:
        return twins.setdefault(key, Twin(key))

    why = disbelief(block)
    for section in ("speedups", "proofs"):
        for row in block[section]:
            twin = at(_key(row))
            if why and section == "speedups":
                row = without_figures(row, why)
            if section == "proofs":
                twin.proofs.append(row)
            elif row["to"] == "optimized" and row["from"] in ("baseline", "library"):
                setattr(twin, "speedup" if row["from"] == "baseline" else "library", row)
    for section in ("timings", "counters"):
        for row in block[section]:
            cell = parse_cell(row["cell"])
            if why and section == "timings" and row["verdict"] == "pass":
                row = {**row, "verdict": "inconclusive", "median_s": None, "roofline_fraction": None}
            getattr(at((cell.component, cell.device, cell.dtype, cell.case)), section)[cell.variant] = row
    order = {component["id"]: index for index, component in enumerate(block["components"])}
    return sorted(twins.values(), key=lambda twin: (order.get(twin.component, len(order)), twin.key))


def without_figures(row: Row, why: str) -> Row:
    """A speedup that is not believed: what it read is told as such, and no table, figure or claim takes it for one."""
    read = ""
    if row["ratio"] is not None:
        read = f" It read {numbers.ratio(row['ratio'])} {numbers.interval(row['lower'], row['upper'])}."
    reason = f"not believed: {why}.{read}" + (f" {row['reason']}" if row["reason"] else "")
    figures = {"ratio": None, "lower": None, "upper": None, "decomposition": None, "log_ratios": []}
    return {**row, **{key: value for key, value in figures.items() if key in row},
            "verdict": row["verdict"] if row["verdict"] == "rejected" else "inconclusive", "reason": reason}


def _key(row: Row) -> Key:
    return row["component"], row["device"], row["dtype"], row["case"]


def telling_proofs(twins: Iterable[Twin]) -> list[Row]:
    """The proofs worth a line: every one that does not hold, and of the others the largest case of each counter."""
    failed: list[Row] = []
    largest: dict[tuple[str, str, str], Row] = {}
    for row in (row for twin in twins for row in twin.proofs):
        if row["verdict"] != "pass":
            failed.append(row)
            continue
        key = (row["component"], row["device"], row["counter"])
        if key not in largest or (row["baseline"]["measured"] or 0) > (largest[key]["baseline"]["measured"] or 0):
            largest[key] = row
    return failed + list(largest.values())


@dataclass
class ParityView:
    """The parity checks of one component on one device and and in one dtype, every variant and case together."""

    component: str
    device: str
    dtype: str
    verdicts: dict[str, int] = field(default_factory=lambda: {"pass": 0, "fail": 0, "error": 0, "skip": 0})
    worst_ratio: float | None = None
    worst_output: str = ""
    worst_cell: str = ""
    max_absolute: float | None = None
    max_relative: float | None = None
    planted: int = 0
    rejected: int = 0
    not_finite: bool = False

    @property
    def verdict(self) -> str:
        return next((word for word in ("error", "fail", "pass", "skip") if self.verdicts[word]), "")


def gather_parity(block: dict[str, Any]) -> list[ParityView]:
    """One view per component, device and dtype, in the order of the component list."""
    views: dict[tuple[str, str, str], ParityView] = {}
    for row in block["parity"]:
        cell = parse_cell(row["cell"])
        view = views.setdefault((cell.component, cell.device, cell.dtype),
                                ParityView(cell.component, cell.device, cell.dtype))
        view.verdicts[row["verdict"]] += 1
        if row["vacuity"]:
            view.planted += row["vacuity"]["checked"]
            view.rejected += row["vacuity"]["rejected"]
        if row["verdict"] in ("skip", "error"):
            continue
        for output in row["outputs"]:
            view.max_absolute = _larger(view.max_absolute, output["max_absolute_error"])
            view.max_relative = _larger(view.max_relative, output["max_relative_error"])
            view.not_finite |= output["worst_ratio"] is None
            if output["worst_ratio"] is not None and (view.worst_ratio is None
                                                      or output["worst_ratio"] > view.worst_ratio):
                view.worst_ratio, view.worst_output, view.worst_cell = output["worst_ratio"], output["name"], row[
                    "cell"]
    order = {component["id"]: index for index, component in enumerate(block["components"])}
    return sorted(views.values(), key=lambda view:
                  (order.get(view.component, len(order)), view.component, view.device, view.dtype))


def _larger(one: float | None, other: float | None) -> float | None:
    return other if one is None else one if other is None else max(one, other)


def representative(twins: Iterable[Twin], component: str) -> Twin | None:
    """The twin that stands for a component beside a claim: on the GPU where there is one, at training size, in fp32.

    Never the best of several: a claim is checked where the documents make it, not where it comes out well.
    """
    candidates = [twin for twin in twins if twin.component == component and twin.speedup]
    return min(candidates, key=lambda twin:
               (twin.ratio is None, twin.key[1] != "cuda", twin.key[3] != "train", twin.key[2] != "fp32", twin.key),
               default=None)


@dataclass(frozen=True)
class ClaimView:
    """A figure in a document beside what was measured here."""

    component: str
    document: str
    text: str
    figure: str
    claimed: float | None
    verdict: str
    measured: Twin | None
    decision: str  # meets, misses, unproven, not measured, not a speedup


def gather_claims(block: dict[str, Any], twins: list[Twin]) -> list[ClaimView]:
    """Every claim of every component, with its decision from the interval of the measured ratio."""
    views = []
    for component in block["components"]:
        for claim in component["claims"]:
            twin = representative(twins, component["id"])
            views.append(ClaimView(component["id"], claim["document"], claim["text"], claim["figure"], claim["ratio"],
                                   claim["verdict"], twin, decide(claim["ratio"], twin.speedup if twin else None)))
    return views


def decide(claimed: float | None, speedup: Row | None) -> str:
    """meets if the whole interval reaches the claimed ratio, misses if none of it does, else unproven."""
    if claimed is None:
        return "not a speedup"
    if not speedup:
        return "not measured"
    if speedup["lower"] is None or speedup["upper"] is None:
        return "unproven"
    if speedup["lower"] >= claimed:
        return "meets"
    return "misses" if speedup["upper"] < claimed else "unproven"
