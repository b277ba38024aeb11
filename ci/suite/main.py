"""The command line and the loop: plan, run what is not done yet while time is left, then report whatever there is."""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from itertools import groupby
from pathlib import Path
from threading import Event, Lock
from typing import Any

from suite import machine
from suite.bits import run_bits
from suite.dry_run import dry_run
from suite.engines import Bench, run_counters, run_engine, run_unit_tests
from suite.errors import TOOL_ERROR, SuiteError
from suite.host_counts import judge_counts, run_sectors
from suite.plan import UNIT_TESTS, Step, make_plan, scenario_names, smallest_component
from suite.process import GRACE_S
from suite.results import make_report, pack, pins_held, summary_of, write_summary
from suite.sanitizer_steps import run_sanitizer
from suite.second_timer import run_second_timer
from suite.state import State, StepResult

_EPILOG = """\
exit codes: 0 pass; 1 a failure; 2 usage error, or a step that could not do its work; 3 inconclusive, cut by
the budget, or nothing measured. --out holds summary.md, summary.json, record.json, report.html, results.tar.gz and
gpu_suite.log."""
PACK_EVERY_S = 30.0
_FRESH = ("resume", "list")  # what a dry run is not given


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="gpu_suite", description=__doc__, epilog=_EPILOG, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR",
                        help="where the results go: at most eight files")
    parser.add_argument("--work", type=Path, metavar="DIR",
                        help="where records and logs of single steps are kept between calls (default: OUT/work)")
    parser.add_argument("--minutes", type=float, default=9,
                        help="time budget of this call, the report included (default: %(default)s)")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda",
                        help="default: %(default)s; cpu: the same steps without a card")
    parser.add_argument("--dry-run", action="store_true",
                        help="without a card: every stage on the smallest component, its CUDA path on the host, then "
                        "with programs that crash, refuse or do nothing; --out also holds dry_run.md")
    parser.add_argument("--resume", action="store_true", help="go on where the last call with this work folder stopped")
    parser.add_argument("--jobs", type=int, metavar="N", default=min(12, max(1, (os.cpu_count() or 1) - 2)),
                        help="steps side by side, of those that take no times, on device cuda (default here: "
                        "%(default)s)")
    parser.add_argument("--quick", action="store_true",
                        help="pass --quick to the engines: fewer pairs, smaller budgets")
    parser.add_argument("--only", default=".", metavar="RE",
                        help="only steps whose name matches, such as '^(parity|bench)[.]'")
    parser.add_argument("--list", action="store_true", help="print the steps in their order, and run none")
    parser.add_argument("--program", type=Path, metavar="FILE",
                        help="the twinbench program (default: the bundle's, else the newest built preset's)")
    parser.add_argument("--step-limit", type=float, metavar="SECONDS",
                        help="after which a step counts as hung, instead of its own limit")
    options = parser.parse_args(arguments)
    if options.jobs < 1:
        parser.error(f"--jobs {options.jobs}: give a positive number")
    if not options.minutes > 0:
        parser.error(f"--minutes {options.minutes}: give a positive number")
    try:
        re.compile(options.only)
    except re.error as error:
        parser.error(f"--only {options.only}: {error}")
    if options.dry_run and (given := [name for name in _FRESH if getattr(options, name)]):
        parser.error(f"--dry-run does not go with --{given[0]}: it goes through the whole plan anew")
    return options


def main(root: Path, arguments: Sequence[str]) -> int:
    started = time.monotonic()
    options = parse(arguments)

    def make_suite(**changes: Any) -> Suite:
        return Suite(root, argparse.Namespace(**(vars(options) | changes)), time.monotonic())

    try:
        return dry_run(options.out.resolve(), make_suite) if options.dry_run else Suite(root, options, started).run()
    except SuiteError as error:
        print(f"gpu_suite: {error}", file=sys.stderr)
        return TOOL_ERROR


class Suite:
    """One call of the suite."""

    def __init__(self, root: Path, options: argparse.Namespace, started: float) -> None:
        self.root, self.options, self.started = root, options, started
        self.out = options.out.resolve()
        self.work = (options.work or options.out / "work").resolve()
        try:
            for folder in (self.out, self.work / "steps"):
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SuiteError("input_output", "--out", error.filename,
                             f"{error.strerror}: name another folder") from error
        self.listed = listed = machine.manifest(root)
        machine.check_bundle(root, listed)
        torch = machine.torch_folder()
        self.torch = machine.torch_version(torch)
        self.revision = listed.get("revision", "")
        self.missing = machine.missing_packages()
        self.gpu = machine.gpu_status(self.work / "steps/nvidia_smi.log") if options.device == "cuda" else {
            "status": f"not used (device {options.device})"}
        self.bench = Bench(root, self._program(), self.work, options.device,
                           machine.environment_of(root, torch, self.revision), limit_s=options.step_limit,
                           grace_s=min(GRACE_S, options.step_limit or GRACE_S))
        identity = {
            "revision": self.revision,
            "program": listed.get("files", {}).get("bin/twinbench", ""),
            "torch": self.torch,
            "device": options.device,
            "gpu": self.gpu.get("name", ""),
            "quick": str(options.quick)}
        self.state = State.begin(self.work / "state.json", identity, resume=options.resume)
        self.plan: list[Step] = []
        self.lock, self.no_device, self.packed = Lock(), False, time.monotonic()
        self.report: list[StepResult] = []
        # The page takes seconds; what it takes must be left when the engines stop.
        self.engines_end = started + 60 * options.minutes - min(40.0, 15 * options.minutes)

    def _program(self) -> Path:
        given = self.options.program
        candidates = [given] if given else [
            self.root / "bin/twinbench", *(self.root / f"build/{preset}/bin/twinbench"
                                           for preset in ("gpu", "cuda-compile", "cpu"))]
        found = next((candidate.absolute() for candidate in candidates if candidate.is_file()), None)
        if not found:
            raise SuiteError("missing_file", "--program", candidates[0],
                             "unpack the bundle, or build with `cmake --build --preset gpu`")
        return found

    def run(self) -> int:
        """Everything; the report is made whatever happened before it."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: self.bench.interrupted.set())
        self._plan_steps()
        if self.options.list:
            print("\n".join(step.name for step in self.plan))
            return 0
        for wave, steps in groupby(self.plan, lambda step: step.wave):
            jobs = self.options.jobs if wave and self.options.device == "cuda" else 1
            bench = self.bench.sharing(jobs) if jobs > 1 else self.bench
            with ThreadPoolExecutor(jobs) as pool:
                list(pool.map(lambda step, bench=bench: self._take(bench, step), steps))
        return self._finish()

    def _take(self, bench: Bench, step: Step) -> None:
        """Runs a step that is not done yet while time is left, and keeps what came of it."""
        left = self.engines_end - time.monotonic()
        if self.state.finished(step.name) or self.no_device or bench.interrupted.is_set() or left < 1:
            return
        with self.lock:
            self._note(f"{step.name} ...")
        result = self._run_step(bench, step, left)
        with self.lock:
            self.state.put(result)
            self._note(f"{step.name}: {result.verdict} in {result.seconds:.1f} "
                       f"s{'; ' + result.reason if result.reason else ''}")
            write_summary(self.out, self._summary())
            self.no_device = self.no_device or "missing_device" in result.reason  # all others would say the same
            if time.monotonic() - self.packed > PACK_EVERY_S:  # some machines end a call in the middle of it
                pack(self.bench, self.out)
                self.packed = time.monotonic()

    def _plan_steps(self) -> None:
        cells, rows = self._ask("--cells").split(), self._ask("--json")
        try:
            table = json.loads(rows)
            full = make_plan(cells, table, scenario_names(self.root), device=self.options.device,
                             quick=self.options.quick, unit_tests=self._unit_tests(),
                             only=smallest_component(cells, table) if self.options.dry_run else "")
        except (ValueError, KeyError, IndexError) as error:
            raise SuiteError(
                "bad_answer", "twinbench list", repr(error),
                "the program and the suite are of different revisions: take both from one bundle") from error
        self.plan = [step for step in full if re.search(self.options.only, step.name)]
        if not self.plan:
            raise SuiteError("unknown_name", "--only", self.options.only, "it matches no step; --list prints them")
        facts = f"python {sys.version.split()[0]}, torch {self.torch}, GPU {self.gpu.get('name') or self.gpu['status']}"
        facts += f"; missing packages: {', '.join(self.missing)}" if self.missing else ""
        self.state.put(
            StepResult("environment", "done", "pass", facts, detail={
                "gpu": self.gpu,
                "program": str(self.bench.program)}))
        self._note(
            f"{facts}; {len(self.plan)} steps, {sum(self.state.finished(step.name) for step in self.plan)} done before")

    def _unit_tests(self) -> list[str]:
        """What the bundle says it carries; of a checkout, what is built."""
        built = [name for name in UNIT_TESTS if self.bench.program.with_name(name).is_file()]
        return self.listed.get("unit_tests", built)

    def _ask(self, flag: str) -> str:
        """What `twinbench list` prints: also the first sign whether the program loads here at all."""
        try:
            answer = subprocess.run([str(self.bench.program), "list", flag], cwd=self.root,
                                    env=dict(self.bench.environment), capture_output=True, text=True, timeout=120)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise SuiteError("cannot_run", str(self.bench.program), error, "the program does not start here") from error
        if answer.returncode != 0:
            raise SuiteError("cannot_run", str(self.bench.program),
                             answer.stderr.strip()[-400:] or f"exit code {answer.returncode}",
                             "a shared library is missing or too old: compare MANIFEST.json with this machine")
        return answer.stdout

    def _run_step(self, bench: Bench, step: Step, left_s: float) -> StepResult:
        if step.group == "sanitizer":
            return run_sanitizer(bench, self.state, step, left_s)
        if step.group == "bits":
            return run_bits(bench, step, left_s)
        if step.group == "counters":
            pins = self.root / "ci/counters.json"
            return judge_counts(bench, run_counters(bench, step, left_s, pins), pins)
        if step.group == "sectors":
            return run_sectors(bench, step, left_s, self.root / "ci/kernel_counts.json")
        if step.group == "nvbench":
            return run_second_timer(bench, step, left_s)
        if step.group == "unit":
            return run_unit_tests(bench, step, left_s)
        extra: tuple[str, ...] = ()
        if step.group in ("null", "bench"):
            # Roofs and null test are measured once, not again for every component.
            sessions = [
                name for name in ("ceilings", "null")
                if name in self.state.results and self.state.results[name].record and name != step.name]
            extra = tuple(word for name in sessions for word in ("--session-from", str(bench.record_of(name))))
        return run_engine(bench, step, left_s, extra)

    def _summary(self) -> dict[str, Any]:
        about = {
            "schema": 1,
            "utc": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "revision": self.revision,
            "device": self.options.device,
            "torch": self.torch,
            "gpu": self.gpu,
            "missing_packages": self.missing,
            "minutes": self.options.minutes,
            "seconds": round(time.monotonic() - self.started, 1),
            "command_line": sys.argv[1:]}
        return summary_of(about, self.plan, self.state, self.report)

    def _finish(self) -> int:
        self.bench.interrupted.clear()  # a second signal ends the report too
        self.report = make_report(self.bench, self.state, self.out,
                                  pins_held(self.root, self.options.device, self.plan), self.missing)
        for result in self.report:
            self._note(f"{result.name}: {result.verdict}{'; ' + result.reason if result.reason else ''}")
        summary = self._summary()
        write_summary(self.out, summary)
        left_out = pack(self.bench, self.out)
        if left_out:
            self._note(left_out)
        self._note(
            f"exit code {summary['exit_code']}; {len(summary['not_run'])} steps not run; see {self.out}/summary.md")
        return summary["exit_code"]

    def _note(self, text: str) -> None:
        line = f"{time.monotonic() - self.started:7.1f} s  {text}"
        print(line, flush=True)
        with (self.out / "gpu_suite.log").open("a") as log:
            log.write(line + "\n")
