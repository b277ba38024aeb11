"""The dry run: every stage begun in its order on a machine without a card, on the smallest component.

The CUDA path runs on device simt, what needs a clock on the CPU. Then the plan of a card is gone through with programs
that crash, refuse, or do nothing and say that all is well: no stage may pass or skip over that. dry_run.md shows each
stage's commands, what it left, and what it made of each failure.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from suite.engines import Bench
from suite.errors import FAIL, PASS
from suite.files import write_whole
from suite.plan import GROUPS
from suite.state import StepResult

STAGES = GROUPS[1:]  # the environment is no program's
# What every program of a leg does in place of its work; as a shell's line and as one of Python.
BROKEN = {
    "crashes": ("ulimit -c 0; kill -SEGV $$", "import os; os.kill(os.getpid(), 11)"),
    "refuses": ("echo refused as planted >&2; exit 1", "raise SystemExit('refused as planted')"),
    "does nothing": ("exit 0", "raise SystemExit(0)")}
PROGRAMS = ("twinbench", "kernel_tests", "sanitizer_probe", "compute-sanitizer", "ncu")


@dataclass
class Leg:
    """One call of the suite: which programs it ran, the steps in the order they were begun, their logs, its end."""

    what: str  # "here", or how its programs are broken
    bench: Bench
    results: Sequence[StepResult]
    report: Sequence[StepResult]
    exit_code: int

    def of(self, stage: str) -> list[StepResult]:
        return [result for result in self.results if _stage(result) == stage]

    def commands(self, stage: str, folders: Mapping[str, str]) -> list[str]:
        """The command lines that the stage's logs hold, with short names for the folders."""
        found = []
        for result in self.of(stage):
            log = self.bench.log_of(result.name)
            for line in log.read_text(errors="replace").splitlines() if log.is_file() else ():
                if line.startswith("$ "):
                    for folder, name in folders.items():
                        line = line.replace(folder, name)
                    found.append(line[2:])
        return list(dict.fromkeys(found))


def break_programs(folder: Path, program: Path, ending: str) -> Path:
    """Programs and tools that end so at once; `twinbench list` alone still answers, as it makes the plan: simt's cells
    are listed on the card, too, which only a program that was built for one does."""
    shell, python = BROKEN[ending]
    on_a_card = "awk '{print} sub(\"/optimized/simt/\", \"/optimized/cuda/\") {print}' | sort -u"
    lists = f"[ \"$1 $2\" = 'list --cells' ] && {{ '{program}' \"$@\" | {on_a_card}; exit; }}\n"
    lists += f"[ \"$1\" = list ] && exec '{program}' \"$@\"\n"
    folder.mkdir(parents=True, exist_ok=True)
    for name in PROGRAMS:
        write_whole(folder / name, f"#!/bin/sh\n{lists if name == 'twinbench' else ''}{shell}\n")
        (folder / name).chmod(0o755)
    write_whole(folder / "libtwinbench_ops.so", "")
    write_whole(folder / "cuda/__init__.py", "")
    write_whole(folder / "cuda/bench.py", python + "\n")
    return folder / "twinbench"


def dry_run(out: Path, make_suite: Callable[..., Any]) -> int:
    """`make_suite(**options)` makes a suite with these in place of the call's own. Returns the exit code."""
    started = time.monotonic()
    legs = [_leg("here", make_suite(device="simt", quick=True, jobs=1))]
    for ending in BROKEN:
        folder = legs[0].bench.work / "broken" / ending.replace(" ", "_")
        program = break_programs(folder / "bin", legs[0].bench.program, ending)
        suite = make_suite(device="cuda", quick=True, jobs=1, program=program, out=folder, work=folder / "work",
                           minutes=2)
        given = suite.bench.environment
        suite.bench.environment = {
            **given, "PATH": f"{program.parent}:{given.get('PATH', '')}",
            "PYTHONPATH": f"{program.parent}:{given['PYTHONPATH']}"}
        legs.append(_leg(ending, suite))
    found = problems(legs)
    write_whole(out / "dry_run.md", page(legs, found, time.monotonic() - started))
    print("\n".join(f"dry run: {one}" for one in found) or
          f"dry run: {len(STAGES)} stages began in their order; none let one of {len(BROKEN)} failures pass")
    print(f"see {out}/dry_run.md")
    return FAIL if found else PASS


def problems(legs: Sequence[Leg]) -> list[str]:
    """What is wrong: a stage that is missing or out of its order, one that fails here, a failure that was swallowed."""
    found = []
    for leg in legs:
        begun = list(dict.fromkeys(_stage(result) for result in leg.results if result.name != "environment"))
        found += [f"{leg.what}: stage {stage} did not begin" for stage in STAGES if stage not in begun]
        if (known := [stage for stage in STAGES if stage in begun]) != begun:
            found.append(f"{leg.what}: the stages began in the order {', '.join(begun)}, not {', '.join(known)}")
    here, broken = legs[0], legs[1:]
    found += [f"here: {result.name}: {result.verdict}: {result.reason}" for result in (*here.results, *here.report)
              if result.verdict in ("fail", "error") or result.status in ("cut", "interrupted")]
    for leg in broken:
        found += [f"a program that {leg.what} is called {result.verdict} by {result.name}"
                  for result in leg.results if result.name != "environment"
                  and (result.verdict in ("pass", "skip") or not result.reason)]
        if leg.exit_code == PASS:
            found.append(f"a suite whose programs all {leg.what} ends with exit code 0")
    return found


def page(legs: Sequence[Leg], found: Sequence[str], seconds: float) -> str:
    """dry_run.md."""
    here, broken = legs[0], legs[1:]
    component = next((result.name.split(".", 1)[1] for result in here.of("counters")), "none")
    lines = [
        "# Dry run of the GPU suite", "",
        f"No card took part; component {component}, {seconds:.0f} s. Under *on a card* stand the commands that the",
        "suite gave to broken programs in place of a card's; under *here*, what ran on this machine.", "",
        *([f"- **{one}**" for one in found] or ["Every stage began in its order; no planted failure passed."]), ""]
    for number, stage in enumerate(STAGES, 1):
        lines += [f"## {number}. {stage}", ""]
        silent = next((leg for leg in broken if leg.what == "does nothing"), None)
        lines += _listed("On a card", silent.commands(stage, _folders(silent)) if silent else [])
        lines += _listed("Here", here.commands(stage, _folders(here)))
        lines += ["| programs | step | verdict | reason | left |", "|---|---|---|---|---|"]
        lines += [_row(leg.what, result) for leg in legs for result in leg.of(stage)]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _leg(what: str, suite: Any) -> Leg:
    code = suite.run()
    return Leg(what, suite.bench, list(suite.state.results.values()), suite.report, code)


def _stage(result: StepResult) -> str:
    return result.name.split(".")[0]


def _row(what: str, result: StepResult) -> str:
    cells = (what, result.name, result.verdict, " ".join(result.reason.split())[:300], _left(result))
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def _left(result: StepResult) -> str:
    """The record and its ledger, or the detail of a stage that has none."""
    if not result.record:
        return "log" if not result.detail else f"`{json.dumps(result.detail)[:200]}`"
    counts = ", ".join(f"{count} {name}" for name, count in (result.detail or {}).items()
                       if isinstance(count, int) and count)
    return f"{result.record}: {counts}"


def _folders(leg: Leg) -> dict[str, str]:
    return {str(leg.bench.program.parent) + "/": "", str(leg.bench.work): "WORK", str(leg.bench.root) + "/": ""}


def _listed(title: str, commands: Iterable[str]) -> list[str]:
    lines = [f"    {command}" for command in commands]
    return [f"{title}:", "", *lines, ""] if lines else [f"{title}: no command.", ""]
