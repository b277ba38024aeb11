"""The steps, the most valuable first: a cut loses what is last, and at most one component of an engine."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GROUPS = ("environment", "ceilings", "bits", "sanitizer", "parity", "counters", "sectors", "modelled", "null", "bench",
          "nvbench", "scenario", "selftest", "unit")
# Nothing runs beside what takes times; of the others those of one wave run side by side (--jobs).
WAVES = {"bits": "first", "parity": "checks", "sanitizer": "checks", "counters": "checks", "sectors": "checks",
         "modelled": "checks"}
# Seconds after which a step counts as hung. Far above what one takes: the budget cuts slow ones.
LIMITS = {
    "bits": 120,
    "sectors": 180,
    "modelled": 240,
    "nvbench": 120,
    "ceilings": 120,
    "parity": 300,
    "sanitizer": 150,
    "counters": 240,
    "null": 240,
    "bench": 420,
    "scenario": 300,
    "selftest": 240,
    "unit": 120}
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
NULL_CELLS, NULL_BLOCKS = 10, 40
SECOND_TIMER = 3  # components whose time is taken a second way
UNIT_TESTS = ("kernel_tests",)  # those that need no source tree and no fake driver
SHORT_SCENARIO = "slot_leak"  # of a dry run


@dataclass(frozen=True)
class Step:
    """`arguments` of the twinbench program, or the tool and component of a sanitizer step."""

    name: str
    group: str
    arguments: tuple[str, ...] = ()
    tool: str = ""
    component: str = ""
    cells: tuple[str, ...] = ()

    @property
    def limit_s(self) -> float:
        return LIMITS[self.group]

    @property
    def wave(self) -> str:
        """Which steps may run beside it; "": none. What a tool's probe says must be known before the tool's steps."""
        return "first" if self.group == "sanitizer" and not self.component else WAVES.get(self.group, "")


def make_plan(cells: Sequence[str], table: Sequence[Mapping[str, Any]], scenarios: Sequence[str], *, device: str,
              quick: bool, unit_tests: Sequence[str] = (), only: str = "") -> list[Step]:
    """All steps on a device. `cells`: of `twinbench list --cells`; `table`: of `twinbench list --json`; `unit_tests`:
    programs beside twinbench; `only`: every stage as short as it can be, of this component alone (a dry run).

    On device simt nothing has a time: what needs a clock runs on the CPU."""
    clock = "cpu" if device == "simt" else device
    chosen: tuple[str, ...] = ()
    calm = ("--timing", "without") if only else ()  # what time decides wants a quiet machine
    null = ("--null-cells", str(NULL_CELLS), "--null-blocks", str(NULL_BLOCKS))
    if only:
        chosen, null = ("--filter", f"^{re.escape(only)}/"), ("--null-cells", "1", "--null-blocks", "2")
        cells = [cell for cell in cells if cell.startswith(f"{only}/")]
        scenarios = [name for name in scenarios if name == SHORT_SCENARIO]
    here = [cell for cell in cells if cell.split("/")[2] == device]
    components = list(dict.fromkeys(cell.split("/")[0] for cell in here))
    timed = {row["id"] for row in table if any(case["timed"] for case in row["cases"])}
    hurry = ("--quick",) if quick else ()

    def engine(group: str, component: str, *flags: str, variants: str = "") -> Step:
        where = clock if group == "bench" else device
        name = f"{group}.{component}" + (".baseline" if variants == "baseline" else "")
        return Step(name, group, (group, "--device", where, "--filter",
                                  f"^{re.escape(component)}/" + (f"({variants})/" if variants else ""), *flags),
                    component=component)

    on_simt = {component: smallest_cells(component, [cell for cell in cells if "/simt/" in cell], table)
               for component in components}
    twins = [component for component in components if on_simt[component]]
    steps = [Step("ceilings", "ceilings", ("ceilings", "--device", clock, *hurry))]
    # What the host has computed, counted and modelled, now on the card: bits, then all answers, counts, at last times.
    steps += [Step(f"bits.{component}", "bits", component=component, cells=tuple(on_simt[component]))
              for component in twins]
    steps += [Step(f"sanitizer.{tool}.probe", "sanitizer", tool=tool) for tool in TOOLS]
    # A baseline's launches take longest, and its answers are the others' measure anyway: last, in steps of their own.
    steps += [engine("parity", component, *hurry, variants=variants)
              for variants in ("optimized|library", "baseline") for component in components]
    steps += [Step(f"sanitizer.{tool}.{component}", "sanitizer", tool=tool, component=component,
                   cells=tuple(smallest_cells(component, here, table))) for tool in TOOLS for component in components]
    steps += [engine("counters", component, *hurry) for component in components]
    steps += [Step(f"sectors.{component}", "sectors", component=component, cells=tuple(on_simt[component][:1]))
              for component in twins]
    if twins:
        steps.append(Step("modelled", "modelled", ("kernels", "--timed", "--pins-only", *chosen)))
    steps.append(Step("null", "null", ("bench", "--device", clock, "--session-only", *null, *chosen, *hurry)))
    steps += [engine("bench", component, *hurry) for component in components if component in timed]
    for component in [component for component in twins if component in timed][:SECOND_TIMER]:
        cell = largest_timed_cell(component, device, here, table)
        if cell:
            steps.append(Step(f"nvbench.{component}", "nvbench", component=component, cells=(cell, )))
    steps += [
        Step(f"scenario.{name}", "scenario", ("scenario", name, "--device", device, *hurry)) for name in scenarios]
    steps.append(Step("selftest", "selftest", ("selftest", "--device", device, *calm)))
    return [*steps, *(Step(f"unit.{name}", "unit", (name,)) for name in unit_tests)]


def smallest_cells(component: str, cells: Sequence[str], table: Sequence[Mapping[str, Any]]) -> list[str]:
    """The optimized cells, each dtype, of the smallest case with work in it; one case of each pass."""
    row = next((row for row in table if row["id"] == component), None)
    cases: list[str] = []
    for direction in ("forward", "backward"):
        usable = [
            case for case in (row or {
                "cases": []})["cases"] if case["pass"] == direction and not case["degenerate"]]
        if usable:
            cases.append(min(usable, key=_work)["name"])
    return [cell for cell in cells if cell.startswith(f"{component}/optimized/") and cell.rsplit("/", 1)[1] in cases]


def smallest_component(cells: Sequence[str], table: Sequence[Mapping[str, Any]]) -> str:
    """Of the components with cells on simt and timed cases the one whose largest case has the least to do."""
    on_simt = {cell.split("/")[0] for cell in cells if "/simt/" in cell}
    rows = [row for row in table if row["id"] in on_simt and any(case["timed"] for case in row["cases"])]
    return str(min(rows, key=lambda row: max(map(_work, row["cases"])))["id"])


def largest_timed_cell(component: str, device: str, cells: Sequence[str],
                       table: Sequence[Mapping[str, Any]]) -> str:
    """The optimized fp32 cell of the largest timed forward case, or ""."""
    row = next((row for row in table if row["id"] == component), {"cases": []})
    cases = [case for case in row["cases"] if case["timed"] and case["pass"] == "forward"]
    cell = f"{component}/optimized/{device}/fp32/{max(cases, key=_work)['name']}" if cases else ""
    return cell if cell in cells else ""


def scenario_names(root: Path) -> list[str]:
    """Names of the scenarios whose files lie below the root, as `twinbench scenario NAME` takes them."""
    names = []
    for file in sorted((root / "scenarios").rglob("*.yaml")):
        found = re.search(r"^name:\s*[\"']?([\w.-]+)", file.read_text(), re.MULTILINE)
        if found:
            names.append(found[1])
    return names


def _work(case: Mapping[str, Any]) -> float:
    product = 1.0
    for size in case["sizes"].values():
        product *= max(1, size)
    return product
