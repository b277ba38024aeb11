"""Times of both sides, side by side: blocks of processes A B B A or B A A B, judged cell by cell at fixed looks.

Every process times all cells of its group, so the two sides are seconds apart. Wall time and CPU time are two metrics:
a wait shows in one, more work in both, and a busy machine disturbs the second least.
"""

from __future__ import annotations

import math
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from comparing.side import Side
from twinbench_reports.errors import ReportError
from twinbench_reports.load import parse_json, read_bytes
from twinbench_reports.statistics import looks
from twinbench_reports.statistics.looks import FASTER, SLOWER, UNDECIDED, Rule

# What a process's repetitions come to. A wait must show, so wall time is the median; CPU time is the least, for others
# on the machine only add to it: 3 to 5 % noise between processes beside two other builds, where the median has 11 %.
METRICS = {"real_time": np.median, "cpu_time": np.min}
GROUP = 12  # cells that one process times
SLOT_LIMIT_S = 600.0


@dataclass
class Series:
    """The blocks of one metric of one cell: log ratios head over base, and which side began each."""

    ratios: list[float] = field(default_factory=list)
    base_began: list[bool] = field(default_factory=list)
    verdict: int = UNDECIDED
    fresh: list[float] = field(default_factory=list)  # of the run that confirms a slowdown
    reason: str = ""
    closed: bool = False  # a slowdown was seen and the fresh run, or its absence, has had the last word

    @property
    def open(self) -> bool:
        return self.verdict == UNDECIDED and not self.closed

    @property
    def blocks(self) -> list[float]:
        """What the verdict rests on."""
        return self.fresh or self.ratios


@dataclass
class CellTimes:
    """Both metrics of a cell; `error` says why it cannot be timed."""

    name: str
    series: dict[str, Series] = field(default_factory=lambda: {metric: Series() for metric in METRICS})
    error: str = ""

    def undecided(self) -> bool:
        return not self.error and any(one.open for one in self.series.values())

    def candidate(self) -> bool:
        return not self.error and any(one.verdict == SLOWER and not one.closed for one in self.series.values())

    @property
    def count(self) -> int:
        return len(next(iter(self.series.values())).ratios)


class Budget:
    """Seconds that timing may take. A block that would not end in time is not begun."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._end = clock, clock() + seconds

    def allows(self, seconds: float) -> bool:
        return self._clock() + seconds <= self._end

    def now(self) -> float:
        return self._clock()


class Comparison:
    """Runs the blocks. Its order of sides comes from a seed that is printed."""

    def __init__(self, base: Side, head: Side, *, rule: Rule, budget: Budget, seed: int, least_s: float = 0.01,
                 repetitions: int = 15) -> None:
        self._sides, self._rule, self._budget = (base, head), rule, budget
        self._coin = np.random.default_rng(seed)
        self._flags = [f"--benchmark_min_time={least_s}", f"--benchmark_repetitions={repetitions}", "--threads", "1"]
        self.block_s: dict[str, float] = {}  # how long a block of the group took that the cell was in, a cell
        self.processes = 0

    def run(self, names: Sequence[str]) -> list[CellTimes]:
        """First looks, then confirmations, then what is undecided as far as the budget goes, the nearest first."""
        cells = [CellTimes(name) for name in names]
        self._advance(cells, self._rule.looks[0])
        self._confirm(cells)
        for look in self._rule.looks[1:]:
            self._advance(sorted((cell for cell in cells if cell.undecided()), key=self._distance), look)
            self._confirm(cells)
        for cell in cells:
            for series in cell.series.values():
                if series.verdict == UNDECIDED and not series.reason:
                    series.reason = self._why_open(series)
        return cells

    def _advance(self, cells: list[CellTimes], look: int) -> None:
        for group in _groups(cells):
            while any(cell.count < look for cell in group if not cell.error) and self._block(group, "ratios"):
                pass
            for cell in group:
                for series in cell.series.values():
                    if series.open and len(series.ratios) in self._rule.looks:
                        series.verdict = int(looks.judge(series.ratios, self._rule))

    def _confirm(self, cells: list[CellTimes]) -> None:
        for group in _groups([cell for cell in cells if cell.candidate()]):
            done = 0
            while done < self._rule.confirm_blocks and self._block(group, "fresh"):
                done += 1
            for cell in group:
                for series in cell.series.values():
                    if series.verdict == SLOWER and not series.closed:
                        self._last_word(series)
                    elif not series.closed:
                        series.fresh = []

    def _last_word(self, series: Series) -> None:
        series.closed = True
        if len(series.fresh) < self._rule.confirm_blocks:
            series.verdict, series.fresh = UNDECIDED, []
            series.reason = "a slowdown was seen, and the budget ended before a fresh run could confirm it"
            return
        series.verdict = int(looks.judge_fresh(series.fresh, self._rule))
        began = np.array(series.base_began[-len(series.fresh):])
        if series.verdict == SLOWER and one_sided(np.array(series.fresh), began, self._rule):
            series.verdict = UNDECIDED
            series.reason = "slower in one order of the two programs only: that is the machine's doing"
        elif series.verdict == UNDECIDED:
            series.reason = "a slowdown was seen, and the fresh run did not confirm it"

    def _block(self, group: list[CellTimes], target: str) -> bool:
        """One block of every cell of the group; false where none is left or the budget does not allow it."""
        alive = [cell for cell in group if not cell.error]
        expected = sum(self.block_s.get(cell.name, 0.0) for cell in alive)
        if not alive or not self._budget.allows(expected):
            return False
        start = self._budget.now()
        base_begins = bool(self._coin.random() < 0.5)
        a, b = self._sides if base_begins else self._sides[::-1]
        slots = [(side, self._slot(side, alive)) for side in (a, b, b, a)]
        for cell in alive:
            lacking = {side.name for side, times in slots if cell.name not in times}
            if lacking:
                cell.error = cell.error or f"{' and '.join(sorted(lacking))} did not time it"
                continue
            for metric, series in cell.series.items():
                logs = {side.name: 0.0 for side in self._sides}
                for side, times in slots:
                    logs[side.name] += math.log(times[cell.name][metric]) / 2
                if target == "fresh" and series.closed:
                    continue
                getattr(series, target).append(logs[self._sides[1].name] - logs[self._sides[0].name])
                series.base_began.append(base_begins)
        for cell in alive:
            self.block_s[cell.name] = (self._budget.now() - start) / len(alive)
        return True

    def _slot(self, side: Side, cells: list[CellTimes]) -> dict[str, dict[str, float]]:
        """What the repetitions of one process come to, by cell and metric."""
        self.processes += 1
        pattern = "^(" + "|".join(re.escape(cell.name) for cell in cells) + ")(/real_time)?$"
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "times.json"
            side.call(["bench", f"--benchmark_filter={pattern}", f"--benchmark_out={out}",
                       "--benchmark_out_format=json", *self._flags], limit_s=SLOT_LIMIT_S, codes=(0, 1, 2, 3))
            if not out.is_file() or not out.stat().st_size:
                raise ReportError(f"{side.name}: bench wrote no times", file=str(side.program),
                                  remedy="run it by hand with --benchmark_filter")
            rows = parse_json(read_bytes(out), f"times of {side.name}")["benchmarks"]
        samples: dict[str, dict[str, list[float]]] = {}
        for row in rows:
            name = row["run_name"].removesuffix("/real_time")
            if row.get("error_occurred"):
                for cell in cells:
                    if cell.name == name:
                        cell.error = f"{side.name}: {row.get('error_message', 'an error')}"
            elif row["run_type"] == "iteration" and all(row[metric] > 0 for metric in METRICS):
                times = samples.setdefault(name, {metric: [] for metric in METRICS})
                for metric in METRICS:
                    times[metric].append(row[metric])
        return {name: {metric: float(METRICS[metric](values)) for metric, values in times.items()}
                for name, times in samples.items()}

    def _distance(self, cell: CellTimes) -> float:
        """How far an undecided cell is from the limit, in deviations: the nearest to a slowdown comes first."""
        found = [looks.estimate(series.ratios, self._rule) for series in cell.series.values()
                 if series.open and series.ratios]
        return min((abs(math.log1p(one.change) - math.log1p(self._rule.least_failing)) / max(one.deviation, 1e-9)
                    for one in found), default=math.inf)

    def _why_open(self, series: Series) -> str:
        count = len(series.ratios)
        if count < self._rule.looks[0]:
            return f"the budget ended after {count} of {self._rule.looks[0]} blocks"
        more = "" if count >= self._rule.looks[-1] else ", and the budget ended before the next look"
        return f"blocks deviate by {looks.estimate(series.ratios, self._rule).deviation:.1%}{more}"


def one_sided(ratios: np.ndarray, base_began: np.ndarray, rule: Rule) -> bool:
    """Is the slowdown there in one order of the sides and not in the other? Code does not know the order."""
    if base_began.all() or not base_began.any():
        return False
    halves = sorted(float(np.median(ratios[mask])) for mask in (base_began, ~base_began))
    return halves[0] < math.log1p(rule.least_failing) / 3


def judge_null(cells: Sequence[CellTimes], rule: Rule = looks.RULE) -> tuple[str, float]:
    """(what is wrong with a comparison of base with itself, its noise floor): any difference there is the machine's."""
    floor, wrong = 0.0, ""
    for cell in cells:
        for metric, series in cell.series.items():
            if series.ratios:
                floor = max(floor, abs(math.expm1(float(looks.order.hodges_lehmann(series.ratios)))))
            if series.verdict in (SLOWER, FASTER):
                wrong = f"{cell.name}: base is {looks.WORDS[series.verdict]} than itself in {metric}"
    most = max((cell.count for cell in cells), default=0)
    if most < rule.looks[0]:
        wrong = f"base was compared with itself in {most} of {rule.looks[0]} blocks: more --minutes are needed"
    return wrong, floor


def _groups(cells: Sequence[CellTimes]) -> Iterator[list[CellTimes]]:
    """Cells with equally many blocks, some at a time."""
    usable = [cell for cell in cells if not cell.error]
    for count in sorted({cell.count for cell in usable}):
        same = [cell for cell in usable if cell.count == count]
        for start in range(0, len(same), GROUP):
            yield same[start:start + GROUP]


def timed_cells(side: Side, pattern: str) -> list[str]:
    """The names of the cells with a timed case that match, in the program's order."""
    listed = side.call(["bench", "--benchmark_list_tests=true", "--benchmark_filter=."], limit_s=120, codes=(0, 3))
    timed = {(row["id"], case["name"]) for row in side.components() for case in row["cases"] if case["timed"]}
    names = (line.strip().removesuffix("/real_time") for line in listed.stdout.splitlines())
    expression = re.compile(pattern)
    return [name for name in names if name.count("/") == 4 and expression.search(name)
            and (name.split("/")[0], name.split("/")[4]) in timed]
