#!/usr/bin/env python3
"""Lets one thing go wrong in each of hundreds of runs: a system call or an allocation that fails once, a child or the
program killed at some moment, a limit. Each run must end with a named status: an exit code of the contract (0 only with
a whole record), within its time, no crash of the program itself, nothing left behind but a whole record.

usage: ci/injections.py [--count N] [--seed S] [--table FILE] [PROGRAM]     exit codes: 0 all did, 1 some did not"""
import argparse
import errno
import json
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
CELL = "energy_flow.simple_neuron/optimized/cpu/fp32/tiny"
ENGINES = {
    "parity": ["parity", "--held-out", "none", "--filter", f"^{CELL}$"],
    "counters": ["counters", "--filter", f"^{CELL}$"],
    "selftest": ["selftest", "--filter", "^another_formula$"],
    "kernels": ["kernels", "--filter", "^energy_flow.simple_neuron/.*/tiny$"],
    "dump": ["dump", CELL]}
ERRORS = {"open": ("EIO", "EMFILE", "ENOSPC"), "read": ("EIO", "EINTR"), "write": ("EIO", "ENOSPC", "EINTR"),
          "fsync": ("EIO", "ENOSPC"), "rename": ("EIO", "ENOSPC"), "pipe2": ("EMFILE",), "fork": ("EAGAIN",)}
LONGEST_S = 60


class Campaign:
    """One program, one interposer, and what each fault came to."""

    def __init__(self, program, seed):
        self.program, self.random = program, random.Random(seed)
        self.outcomes = defaultdict(Counter)  # (engine, fault) -> outcome -> runs
        self.broken = []
        self.library = Path(tempfile.mkdtemp()) / "inject.so"
        source = ROOT / "ci/inject.c"
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-fno-builtin-malloc", "-o", self.library, source, "-ldl"],
                       check=True)

    def run(self, engine, inject="", kill_after=None, whom="program", memory=None):
        """(exit code or None for a hang, what it said, what it left beside the record, its record or None)."""
        with tempfile.TemporaryDirectory() as folder:
            out, temporary = Path(folder) / "out", Path(folder) / "tmp"
            out.mkdir()
            temporary.mkdir()
            file = out / ("record.safetensors" if engine == "dump" else "record.json")
            environment = os.environ | {"TMPDIR": str(temporary)}
            if inject:
                environment |= {"LD_PRELOAD": str(self.library), "TWINBENCH_INJECT": inject}
            process = subprocess.Popen([self.program, *ENGINES[engine], "--out", file], cwd=ROOT, env=environment,
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
                                       preexec_fn=memory and (lambda: resource.setrlimit(*memory)))
            if kill_after is not None:
                time.sleep(kill_after)
                self.kill(process, whom)
            try:
                said, _ = process.communicate(timeout=LONGEST_S)
                code = process.returncode
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                said, code = process.communicate()[0], None
            left = [path.name for path in (*out.iterdir(), *temporary.iterdir())
                    if path != file and not path.name.endswith("-record.json")]
            return code, said.decode("utf-8", "replace"), left, file.read_bytes() if file.exists() else None

    @staticmethod
    def kill(process, whom):
        victims = [process.pid]
        if whom == "child":
            listed = Path(f"/proc/{process.pid}/task/{process.pid}/children")
            victims = [int(child) for child in listed.read_text().split()] if listed.exists() else []
        for victim in victims:
            try:
                os.kill(victim, signal.SIGTERM if whom == "program" else signal.SIGKILL)
            except ProcessLookupError:
                pass

    def judge(self, engine, fault, detail, result, may_die_of=()):
        """Counts the outcome, and keeps what is no named status."""
        code, said, left, record = result
        names = {0: "unharmed", 1: "an error, named", 2: "refused, named", 3: "undecided", 4: "a limit"}
        outcome = names.get(code, "hung" if code is None else f"signal {-code}" if code < 0 else f"code {code}")
        wrong = "" if code in names or (code is not None and -code in may_die_of) else outcome
        if code == 0 and record is None:
            wrong = "0 without a record"
        if record is not None and engine != "dump":
            try:
                ledger = json.loads(record)["twinbench"]["ledger"]
                wrong = wrong or ("0 with another code in the record" if code == 0 and ledger["exit_code"] else "")
            except (ValueError, KeyError):
                wrong = "half a record"
        if code not in (0, 3) and not said.strip() and not may_die_of:
            wrong = wrong or "silent"
        if left:
            wrong = wrong or f"left {left[:3]}"
        self.outcomes[engine, fault][wrong and f"BROKEN: {wrong}" or outcome] += 1
        if wrong:
            self.broken.append(f"{engine} {fault} {detail}: {wrong}: {said.strip()[-300:]!r}")

    def calls(self, engine):
        """How many injectable calls of each kind the parent makes."""
        said = self.run(engine, "count")[1]
        return {line.split()[1]: int(line.split()[2]) for line in said.splitlines() if line.startswith("injectable ")}

    def places(self, count, most):
        """The first ones, where each is another, then some over the rest."""
        first = list(range(1, min(count, most // 2) + 1))
        rest = range(len(first) + 1, count + 1)
        return first + sorted(self.random.sample(rest, min(len(rest), most - len(first))))

    def inject_all(self, budget):
        """Every kind of call of every engine, within so many runs."""
        counted = {engine: self.calls(engine) for engine in ENGINES}
        kinds = [(engine, call, name) for engine in ENGINES for call, errors in ERRORS.items() for name in errors
                 if counted[engine].get(call)]
        for engine, call, name in kinds:
            for place in self.places(counted[engine][call], max(1, budget // max(1, len(kinds)))):
                self.judge(engine, f"{call} {name}", place,
                           self.run(engine, f"{call}:{place}:{getattr(errno, name)}"))

    def kill_all(self, budget):
        """Children and the program at random moments."""
        for turn in range(budget):
            engine = list(ENGINES)[turn % len(ENGINES)]
            whom = ("child", "program")[turn // len(ENGINES) % 2]
            moment = self.random.uniform(0.2, 1.0)
            self.judge(engine, f"{whom} killed", f"after {moment:.2f} s", self.run(engine, "", moment, whom),
                       (signal.SIGTERM, ) if whom == "program" else ())

    def starve_all(self, budget):
        """Allocations fail from somewhere on: so much address space, or data, less than the engine takes."""
        for turn in range(budget):
            engine = list(ENGINES)[turn % len(ENGINES)]
            bytes_ = int(self.random.uniform(0.05, 2.0) * 2**30)
            self.judge(engine, "memory refused", f"RLIMIT_DATA {bytes_ >> 20} MiB",
                       self.run(engine, memory=(resource.RLIMIT_DATA, (bytes_, bytes_))))

    def table(self):
        lines = ["| engine | fault | runs | came to |", "|---|---|--:|---|"]
        for (engine, fault), outcomes in sorted(self.outcomes.items()):
            told = ", ".join(f"{outcome} {count}" for outcome, count in outcomes.most_common())
            lines.append(f"| {engine} | {fault} | {sum(outcomes.values())} | {told} |")
        return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", default=str(ROOT / "build/cpu/bin/twinbench"))
    parser.add_argument("--count", type=int, default=600, help="about so many runs")
    parser.add_argument("--seed", type=int, default=1, help="of the places and moments")
    parser.add_argument("--table", type=Path, help="write the table, as Markdown")
    options = parser.parse_args()
    campaign = Campaign(options.program, options.seed)
    campaign.inject_all(options.count * 2 // 3)
    campaign.kill_all(options.count // 6)
    campaign.starve_all(options.count // 6)
    if options.table:
        options.table.write_text(campaign.table())
    print(campaign.table(), end="")
    for line in campaign.broken:
        print(f"BROKEN: {line}")
    runs = sum(sum(outcomes.values()) for outcomes in campaign.outcomes.values())
    print(f"injections: {runs} faults, {len(campaign.broken)} without a named status")
    return 1 if campaign.broken or not runs else 0


if __name__ == "__main__":
    sys.exit(main())
