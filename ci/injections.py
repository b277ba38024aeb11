#!/usr/bin/env python3
"""Lets one thing go wrong in each of a thousand runs: a system call or an allocation that fails once, a clock that
jumps, a call of a driver library that is refused or crashes, a child or the program killed at some moment, a limit.
Each run must end with a named status: 0 only with the very results of an undisturbed run, else a code of the contract
and a word for what happened, with everything that was planned accounted for; within its time, no crash of the program
itself, nothing left behind but a whole record.

usage: ci/injections.py [--count N] [--seed S] [--jobs N] [--only WORD] [--table FILE] [PROGRAM]
exit codes: 0 all did, 1 some did not"""
import argparse
import concurrent.futures
import errno
import itertools
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "ci"), str(ROOT / "reports")]
import injection_outcome as outcome  # noqa: E402
from twinbench_reports.files import write_file  # noqa: E402

NEURON = "^energy_flow.simple_neuron/(baseline|optimized)/cpu/fp32/tiny$"
CELL = "energy_flow.simple_neuron/optimized/cpu/fp32/tiny"
# OUT is what it writes; two cells each where there are cells, so that one is there to be lost with the other.
ENGINES = {
    "parity": ["parity", "--held-out", "none", "--filter", NEURON, "--out", "OUT"],
    "counters": ["counters", "--filter", NEURON, "--out", "OUT"],
    "selftest": ["selftest", "--filter", "^another_formula$|^row_scale$", "--out", "OUT"],
    "kernels": ["kernels", "--filter", "^energy_flow.simple_neuron/.*/tiny$", "--out", "OUT"],
    "scenario": ["scenario", "scan_memory_budget", "--out", "OUT"],
    "ceilings": ["ceilings", "--quick", "--out", "OUT"],
    "bench": ["bench", "--quick", "--session-only", "--filter", "collation/.*/cpu/fp32/train_16$", "--held-out", "none",
              "--out", "OUT"],
    "coverage": ["coverage"],
    "configuration": ["configuration"],
    "list": ["list", "--json"],
    "dump": ["dump", CELL, "--out", "OUT"],
    "check": ["check", CELL, "--from", "DUMPED"],
    "data": ["data", "make", "--rows", "20", "--out", "OUT"]}
ERRORS = {"open": ("EIO", "EMFILE", "ENOSPC"), "read": ("EIO", "EINTR"), "write": ("EIO", "ENOSPC", "EINTR"),
          "pipe_write": ("EINTR",),
          "writev": ("EIO", "ENOSPC", "EINTR"), "close": ("EIO", "EINTR"), "fsync": ("EIO", "ENOSPC"),
          "rename": ("EIO", "ENOSPC"), "mkostemp": ("EMFILE", "ENOSPC"), "mkdtemp": ("EMFILE", "ENOSPC"),
          "opendir": ("EMFILE",), "pipe2": ("EMFILE",), "fork": ("EAGAIN",), "socketpair": ("EMFILE",),
          "poll": ("EINTR",), "wait4": ("EINTR",), "pthread_create": ("EAGAIN",)}
DRIVERS = {"cuda": "cu", "cupti": "cupti", "nvml": "nvml"}  # library -> what its functions begin with
TRACED = ["counters", "--trace-all", "--filter", NEURON, "--out", "OUT"]
LONGEST_S = 150  # a driver that hangs in the probe is waited for a minute


class Campaign:
    """One program, one interposer, and what each fault came to."""

    def __init__(self, program, seed, jobs=1):
        self.program, self.random, self.jobs = str(program), random.Random(seed), jobs
        self.outcomes = defaultdict(Counter)  # (engine, fault) -> outcome -> runs
        self.broken = []
        self.folder = tempfile.TemporaryDirectory()
        self.library, self.dumped = (Path(self.folder.name) / name for name in ("inject.so", "dumped.safetensors"))
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-fno-builtin", "-o", self.library, ROOT / "ci/inject.c",
                        "-ldl"], check=True)
        self.undisturbed = {}  # engine, with or without fake drivers -> Result
        self.seconds = {}

    def run(self, engine, inject="", strike=None, memory=None, driver=None, more=()):
        """strike: (seconds, "child" or "program", signal). driver: variables of the fake libraries; {}: good ones."""
        with tempfile.TemporaryDirectory() as folder:
            out, temporary = Path(folder) / "out", Path(folder) / "tmp"
            out.mkdir()
            temporary.mkdir()
            file = out / {"dump": "file.safetensors", "data": "file.efds"}.get(engine, "record.json")
            words = {"OUT": str(file), "DUMPED": str(self.dumped)}
            command = [words.get(word, word) for word in (TRACED if driver is not None else ENGINES[engine])]
            environment = {key: value for key, value in os.environ.items() if key != "GOMP_SPINCOUNT"} | {
                "TMPDIR": str(temporary), "OMP_WAIT_POLICY": "PASSIVE"}  # as it wants them: it does not start twice
            if inject:
                environment |= {"LD_PRELOAD": str(self.library), "TWINBENCH_INJECT": inject}
            if driver is not None:
                fakes = Path(self.program).parents[1] / "fake"
                environment |= driver | {f"TWINBENCH_{name.upper()}_LIBRARY": str(fakes / f"libfake_{name}.so")
                                         for name in DRIVERS} | {"FAKE_CUPTI_KERNELS": "6"}
            process = subprocess.Popen([self.program, *command, *more], cwd=ROOT, env=environment,
                                       start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       preexec_fn=memory and (lambda: resource.setrlimit(*memory)))
            if strike is not None:
                time.sleep(strike[0])
                self.strike(process, *strike[1:])
            try:
                said, complained = process.communicate(timeout=LONGEST_S)
                code = process.returncode
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                (said, complained), code = process.communicate(), None
            left = [path.name for path in (*out.iterdir(), *temporary.iterdir())
                    if path.name not in (file.name, file.name + ".valid") and not path.name.endswith("-record.json")]
            return outcome.Result(code, said.decode("utf-8", "replace"), complained.decode("utf-8", "replace"), left,
                                  file.read_bytes() if file.exists() else None)

    @staticmethod
    def strike(process, whom, number):
        victims = [process.pid]
        if whom == "child":
            listed = Path(f"/proc/{process.pid}/task/{process.pid}/children")
            victims = [int(child) for child in listed.read_text().split()] if listed.exists() else []
        for victim in victims:
            try:
                os.kill(victim, number)
            except ProcessLookupError:
                pass

    def begin(self, engines):
        """What each engine does undisturbed, and how long that takes."""
        subprocess.run([self.program, "dump", CELL, "--out", self.dumped], cwd=ROOT, check=True, capture_output=True)
        for engine in engines:
            began = time.monotonic()
            result = self.undisturbed[engine] = self.run(engine, driver={} if engine == "traced" else None)
            self.seconds[engine] = time.monotonic() - began
            if result.code not in outcome.EXPECTED.get(engine, (0,)) or result.left:
                raise SystemExit(f"injections: {engine} undisturbed ends with {result.code}, leaves {result.left}: "
                                 f"{result.complained[-500:]}")

    def judge(self, engine, fault, detail, result, **rules):
        """Counts the outcome, and keeps what is no named status."""
        what, wrong = outcome.judged(engine, result, self.undisturbed[engine], **rules)
        self.outcomes[engine, fault][f"BROKEN: {wrong}" if wrong else what] += 1
        if wrong:
            spoken = (result.said + result.complained).strip()[-300:]
            self.broken.append(f"{engine} {fault} {detail}: {wrong}: {spoken!r}")

    def calls(self, engine):
        """How many injectable calls of each kind there are."""
        said = self.run(engine, "count").complained
        return {line.split()[1]: int(line.split()[2]) for line in said.splitlines() if line.startswith("injectable ")}

    def places(self, count, most):
        """The first ones, where each is another, then some over the rest."""
        first = list(range(1, min(count, most // 2) + 1))
        rest = range(len(first) + 1, count + 1)
        return first + sorted(self.random.sample(rest, min(len(rest), most - len(first))))

    def planned(self, count, only):
        """(engine, fault, detail, how to run, rules of judgement) of about so many runs."""
        every = {"calls": self.of_calls(count * 45 // 100), "allocations": self.of_allocations(count // 4),
                 "clocks": self.of_clocks(count // 20), "drivers": self.of_drivers(),
                 "deaths": self.of_deaths(count // 8), "memory": self.of_memory(count // 12)}
        return itertools.chain(*(plan for name, plan in every.items() if only in (None, name)))

    def of_calls(self, budget):
        counted = {engine: self.calls(engine) for engine in ENGINES}
        kinds = [(engine, call, name) for engine in ENGINES for call, errors in ERRORS.items() for name in errors
                 if counted[engine].get(call)]
        least = max(1, budget // max(1, len(kinds)))
        for engine, call, name in kinds:
            for place in self.places(counted[engine][call], least):
                yield engine, f"{call} {name}", place, {"inject": f"{call}:{place}:{getattr(errno, name)}"}, {}

    def of_allocations(self, budget):
        """Over the whole run, and as many more over its last tenth: most are those of the registry, at the start."""
        for engine in ENGINES:
            count = self.calls(engine)["alloc"]
            for turn in range(max(2, budget // len(ENGINES))):
                place = self.random.randint(1 if turn % 2 else count * 9 // 10, count)
                yield engine, "allocation refused", place, {"inject": f"alloc:{place}:{errno.ENOMEM}"}, {}

    def of_clocks(self, budget):
        timed = ("parity", "counters", "selftest", "scenario", "ceilings", "bench")
        jumps = [("wall", jump) for jump in (-10**9, -3600, 3600, 10**9)]
        jumps += [("steady", jump) for jump in (1, 100, 10**6)]
        for turn in range(budget):
            engine, (clock, jump) = timed[turn % len(timed)], jumps[turn % len(jumps)]
            place = self.random.randint(1, {"wall": 2, "steady": 20}[clock])
            yield (engine, f"the {clock} clock jumps", f"by {jump} s at reading {place}",
                   {"inject": f"{clock}:{place}:{jump}"}, {"times_too": True})

    def of_drivers(self):
        for library, beginning in DRIVERS.items():
            source = (ROOT / f"harness/gpu/fake/{library}.cpp").read_text()
            functions = [line.split("(")[0].split()[-1] for line in source.splitlines()
                         if line[:2] in ("CU", "nv") and f" {beginning}" in line and line.endswith("{")]
            for function in functions:
                for how in ("", "crash") + (("hang",) if function == functions[1] else ()):
                    yield ("traced", f"{library} call {({'crash': 'crashes', 'hang': 'hangs'}).get(how, 'is refused')}",
                           function, {"driver": {"FAKE_REFUSE": function, "FAKE_REFUSE_BY": how},
                                      "more": ("--time-limit", "10")},
                           {"of_driver": True, "of_work": how == "crash"})  # in the cell's own process

    def of_deaths(self, budget):
        """Children and the program at random moments."""
        kinds = [("child", signal.SIGKILL), ("program", signal.SIGTERM), ("child", signal.SIGSEGV),
                 ("program", signal.SIGINT), ("child", signal.SIGSTOP), ("program", signal.SIGHUP)]
        engines = [engine for engine in ENGINES if engine not in ("list", "configuration", "coverage", "check")]
        for turn in range(budget):
            engine, (whom, number) = engines[turn % len(engines)], kinds[turn // len(engines) % len(kinds)]
            if whom == "child" and engine in ("dump", "kernels", "data"):
                whom, number = "program", signal.SIGTERM  # they have none
            moment = self.random.uniform(0.0, 1.1 * self.seconds[engine])
            limited = ("--time-limit", "3") if number == signal.SIGSTOP else ()
            yield (engine, f"{whom} gets {number.name}", f"after {moment:.2f} s",
                   {"strike": (moment, whom, number), "more": limited},
                   {"may_die_of": (number,), "ended": True} if whom == "program" else {"of_work": True})

        for engine in engines:  # and at the calls that make, fill and move files
            counted = self.calls(engine)
            for call in ("mkostemp", "mkdtemp", "write", "fsync", "rename"):
                if counted.get(call):
                    place = self.random.randint(1, counted[call])
                    yield (engine, f"SIGTERM at a {call}", place, {"inject": f"{call}:{place}:{-signal.SIGTERM}"},
                           {"may_die_of": (signal.SIGTERM,), "ended": True, "of_work": True})

    def of_memory(self, budget):
        """Allocations fail from somewhere on, often before main begins: less data than the engine takes."""
        for turn in range(budget):
            engine = list(ENGINES)[turn % len(ENGINES)]
            bytes_ = int(2**self.random.uniform(23, 30.5))  # from where the loader is refused to where all is well
            yield (engine, "memory refused", f"RLIMIT_DATA {bytes_ >> 20} MiB",
                   {"memory": (resource.RLIMIT_DATA, (bytes_, bytes_))}, {})

    def inject_all(self, count, only=None):
        self.begin([*ENGINES, "traced"])
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            plan = list(self.planned(count, only))
            running = [pool.submit(self.run, engine, **how) for engine, _, _, how, _ in plan]
            for (engine, fault, detail, _, rules), result in zip(plan, running):
                self.judge(engine, fault, detail, result.result(), **rules)

    def table(self):
        lines = ["| engine | fault | runs | came to |", "|---|---|--:|---|"]
        for (engine, fault), outcomes in sorted(self.outcomes.items()):
            told = ", ".join(f"{what} {count}" for what, count in outcomes.most_common())
            lines.append(f"| {engine} | {fault} | {sum(outcomes.values())} | {told} |")
        return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", default=str(ROOT / "build/cpu/bin/twinbench"))
    parser.add_argument("--count", type=int, default=1000, help="about so many runs")
    parser.add_argument("--seed", type=int, default=1, help="of the places and moments")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs at once")
    parser.add_argument("--only", choices=("calls", "allocations", "clocks", "drivers", "deaths", "memory"))
    parser.add_argument("--table", type=Path, help="put the table into this page, from its first line of a table on")
    options = parser.parse_args()
    campaign = Campaign(options.program, options.seed, options.jobs)
    began = time.monotonic()
    campaign.inject_all(options.count, options.only)
    runs = sum(sum(outcomes.values()) for outcomes in campaign.outcomes.values())
    summary = f"{runs} faults, {len(campaign.broken)} without a named status"
    if options.table:
        page = options.table.read_text().partition("\n| engine |")[0] if options.table.exists() else ""
        write_file(options.table, f"{page}\n{campaign.table()}\n{summary}; seed {options.seed}.\n")
    print(campaign.table(), end="")
    for line in campaign.broken:
        print(f"BROKEN: {line}")
    print(f"injections: {summary}, {time.monotonic() - began:.0f} s")
    return 1 if campaign.broken or not runs else 0


if __name__ == "__main__":
    sys.exit(main())
