"""What the site shows of a history: its machines, newest first, with their runs and the records of the last two."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from twinbench_reports.errors import ReportError
from twinbench_reports.judge.findings import Verdict
from twinbench_reports.judge.judge import judge
from twinbench_reports.load import Record
from twinbench_reports.statistics.change_points import ChangePoint, change_points
from twinbench_reports.store.folder import Store
from twinbench_reports.store.records import kept_at, kept_record
from twinbench_reports.store.run import Run


@dataclass(frozen=True)
class Level:
    """A change of the level of one series, and the run at which it began."""

    series: str
    point: ChangePoint
    run: Run


@dataclass(frozen=True)
class Machine:
    """One machine with one toolchain. Times of two are never compared."""

    name: str
    slug: str
    runs: Sequence[Run]  # oldest first
    record: Record | None = None  # of the newest run that kept one
    before: Record | None = None  # of the one before it
    verdict: Verdict | None = None
    levels: Sequence[Level] = field(default_factory=tuple)

    @property
    def last(self) -> Run:
        return self.runs[-1]

    def series(self, name: str) -> list[tuple[Run, float]]:
        """The times of a cell, oldest first."""
        return [(run, run.points[name]) for run in self.runs if name in run.points]

    def levels_of(self, name: str) -> list[Level]:
        return [level for level in self.levels if level.series == name]


@dataclass(frozen=True)
class Gathered:
    """All machines: first those with a record, the newest run first; and files that are no runs, with the reason."""

    machines: Sequence[Machine]
    refused: Sequence[str]


def gather(folder: Path) -> Gathered:
    """Reads the whole history; a folder without a run is an error."""
    if not folder.is_dir():
        raise ReportError("there is no such folder", file=str(folder),
                          remedy="keep a run in it first: twinbench-report keep RECORD --to DIR")
    store = Store(folder)
    by_machine: dict[str, list[Run]] = {}
    for run in store.runs():
        by_machine.setdefault(run.machine, []).append(run)
    if not by_machine:
        raise ReportError("it holds no run", file=str(folder),
                          remedy="keep one first: twinbench-report keep RECORD --to DIR")
    slugs = distinct_slugs(by_machine)
    machines = [_machine(folder, name, slugs[name], runs) for name, runs in by_machine.items()]
    machines.sort(key=lambda one: one.last.utc, reverse=True)
    machines.sort(key=lambda one: one.record is None)
    return Gathered(machines, store.refused)


def _machine(folder: Path, name: str, slug: str, runs: Sequence[Run]) -> Machine:
    kept = [run.record for run in runs if run.record and kept_at(folder, run.record).is_file()]
    records = [kept_record(folder, sha256) for sha256 in list(dict.fromkeys(reversed(kept)))[:2]]
    record, before = (*records, None, None)[:2]
    return Machine(name, slug, runs, record, before, judge(record, before) if record else None,
                   tuple(levels(runs)))


def levels(runs: Sequence[Run]) -> list[Level]:
    """The changes of level of every optimized variant's times (of another program's: of all), the largest slowdown
    first."""
    times: dict[str, list[tuple[Run, float]]] = {}
    for run in runs:
        for name, seconds in run.points.items():
            if run.source != "twinbench" or "/optimized/" in name:
                times.setdefault(name, []).append((run, seconds))
    found = [Level(name, point, series[point.index][0]) for name, series in times.items()
             for point in change_points(np.log([seconds for _, seconds in series]))]
    return sorted(found, key=lambda level: (-level.point.change, level.series))


def slug(name: str) -> str:
    """A name as a file name: harmless letters only."""
    return re.sub(r"[^a-z0-9_.]+", "-", name.lower()).strip("-.")[:60] or "unnamed"


def distinct_slugs(names: Iterable[str]) -> dict[str, str]:
    """Each name's file name; names that would share one get a number."""
    taken: dict[str, str] = {}
    for name in names:
        wanted, number = slug(name), 1
        while (own := wanted if number == 1 else f"{wanted}-{number}") in taken.values():
            number += 1
        taken[name] = own
    return taken
