#!/usr/bin/env python3
"""Plants every fault of ci/mutations.json in a copy of the tree and sees whether its check catches it.

A fault is a text to find, exactly once, in a file, and what to put in its place; its check is a command that must then
exit with 1 (`caught_by`), or with one of the codes in `exit`. First the checks run on the copy as it is, after what
they compare with is made there (`before`): one that fails proves nothing. Faults are planted one at a time, the
cheapest to compile first, but for those of different components whose checks see no other component: a few of them
share a build. Exit codes: 0 all caught, 1 a fault survived, 2 a fault that cannot be planted (the text is gone, it does
not build) or whose check proves nothing, 3 all that were planted are caught and some were left for the time.

With --folder the copy, its build and what came of each fault (outcomes.jsonl) stay, and the next run goes on with what
has not been caught as it is now, in its file as that is now. With --outcomes that file is another: what is kept in
reports/records/mutations.jsonl goes with the tree, to wherever the next run is; --minutes begins nothing after so many.

usage: ci/mutations.py [--filter RE] [--list] [--folder DIR] [--outcomes FILE] [--again: forgets what came of them]
    [--minutes N] [--jobs N]"""
import argparse
import collections
import hashlib
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "ci"))

from registry import kinds_of  # noqa: E402

SURVIVED, CAUGHT, UNPLANTABLE, PROVES_NOTHING, PASSES = "SURVIVED", "caught", "NOT PLANTED", "NO PROOF", "passes"
LEFT = "left"
CHECK_LIMIT_S = 900  # a fault may let its check wait for ever
MAKE_DATA = "build/cpu/bin/twinbench data make --out data/default.efds"  # what scenarios train on
SHARE_A_BUILD = 8  # faults at most: where they do not build together, each is built by itself


class Copy:
    """The tracked files of this checkout as they are now, with a build folder of their own."""

    def __init__(self, folder, jobs=2):
        self.folder, self.jobs = Path(folder), jobs
        files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
        contents = hashlib.sha256()
        for name in filter(None, files.decode().split("\0")):
            source, target = ROOT / name, self.folder / name
            if not source.is_file():
                continue
            if not name.startswith("ci/mutations."):
                contents.update(f"{name}\0{source.stat().st_size}\0".encode() + source.read_bytes())
            if not (target.exists() and target.read_bytes() == source.read_bytes()):
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, target)
        self.contents = contents.hexdigest()
        for shared in (".venv", "data"):  # the compiler cache knows both by their names
            if (ROOT / shared).exists() and not (self.folder / shared).exists():
                (self.folder / shared).symlink_to((ROOT / shared).resolve())

    def run(self, command, log, limit_s=None):
        """The exit code, 124 where it took longer; output goes to `log`."""
        environment = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE", "PYTHONPATH": "reports",
                       "TWINBENCH_PROGRAM": str(self.folder / "build/cpu/bin/twinbench")}
        if os.environ.get("TWINBENCH_VENV") is None:
            environment["TWINBENCH_VENV"] = str(self.folder / ".venv")
        limit = ["timeout", str(limit_s)] if limit_s else []
        with open(log, "w") as output:
            return subprocess.run([*limit, "bash", "-c", command], cwd=self.folder, env=environment, stdout=output,
                                  stderr=subprocess.STDOUT, check=False).returncode

    def check(self, command, log):
        """As run(); what else the machine does must not decide, so the program's children may take their time."""
        patient = re.sub(r"(bin/twinbench (?:parity|counters|scenario|selftest|instructions)) ",
                         rf"\1 --time-limit {CHECK_LIMIT_S} ", command)
        return self.run(patient, log, CHECK_LIMIT_S)

    def build(self, log, checks):
        """What `checks` run. A file that CMake reads has it run again by itself."""
        targets = sorted(set().union(*map(targets_of, checks)))
        configure = "true" if (self.folder / "build/cpu/build.ninja").exists() else "cmake --preset cpu"
        build = f"cmake --build --preset cpu -j {self.jobs} --target {' '.join(targets)}"
        data = "true" if (self.folder / "data").exists() or "twinbench" not in targets else MAKE_DATA
        return self.run(f"{configure} && {build} && {data}", log) == 0

    def costs(self, faults):
        """By file: how many of the objects that its faults' checks are linked from depend on it."""
        def ninja(*arguments):
            return subprocess.run(["ninja", "-C", "build/cpu", "-t", *arguments], cwd=self.folder, check=True,
                                  capture_output=True, text=True).stdout.splitlines()
        dependents, current = collections.defaultdict(set), ""
        for line in ninja("deps"):
            if line.startswith(" "):
                dependents[os.path.normpath(os.path.join(self.folder, "build/cpu", line.strip()))].add(current)
            else:
                current = line.partition(":")[0]
        linked = {target: set(ninja("inputs", target)) for target in set().union(*(
            targets_of(fault["caught_by"]) for fault in faults))}
        return {file: max(len(dependents[str(self.folder / file)] & linked[target]) for fault in faults
                          if fault["file"] == file for target in targets_of(fault["caught_by"]))
                for file in {fault["file"] for fault in faults}}


def targets_of(check):
    """Programs and object libraries that a check names; scripts call the program."""
    named = set(re.findall(r"build/cpu/(?:bin|src/CMakeFiles)/(\w+)", check))
    return named | ({"twinbench"} if "pytest" in check or not named else set())


def planted(text, fault):
    """`text` with the fault in it, or None where its place is not there exactly once."""
    return text.replace(fault["find"], fault["replace"]) if text.count(fault["find"]) == 1 else None


def lone_component(fault, components):
    """The component, not made of others, that the fault lies in and that is all its check looks at; else "". The lint
    sees to it that no other includes its file."""
    place = re.match(r"(?:baselines|optimized|kernels)/(\w+)/(\w+)/", fault["file"])
    check = re.fullmatch(r"build/cpu/bin/twinbench (?:parity|counters|instructions) [^;&|]*--filter '([^/()|]+)/[^']*'"
                         r"|TWINBENCH_FAR_COMPONENTS='([^/()|]+)\$' [^;&|]*",
                         fault["caught_by"])
    mine = ".".join(place.groups()) if place else ""
    seen = [name for name in components if check and re.search((check[1] or check[2]) + "$", name)]
    return mine if seen == [mine] and components[mine] != "composite" else ""


def rounds(faults, cost, components):
    """Lists of faults to plant at once, those of the cheapest files first, a file's own one after the other."""
    result = []  # (components, faults)
    for fault in sorted(faults, key=lambda fault: (cost[fault["file"]], fault["file"])):
        mine = lone_component(fault, components)
        for others, shared in result if mine else []:
            if "" not in others and mine not in others and len(shared) < SHARE_A_BUILD:
                others.add(mine)
                shared.append(fault)
                break
        else:
            result.append(({mine}, [fault]))
    return [shared for _, shared in result]


def judge(copy, faults, log):
    """What came of each of the faults, planted together, and why; the copy is as before afterwards."""
    originals, built = {}, False
    try:
        for fault in faults:
            path = copy.folder / fault["file"]
            original = path.read_text() if path.exists() else ""
            if (changed := planted(original, fault)) is None:
                yield fault, UNPLANTABLE, f"its text stands {original.count(fault['find'])} times in {fault['file']}"
            else:
                originals[path] = original
                path.write_text(changed)
        there = [fault for fault in faults if copy.folder / fault["file"] in originals]
        # A script's fault too: the one before it is still built in.
        built = bool(there) and copy.build(log, [fault["caught_by"] for fault in there])
        if not built and len(there) == 1:
            yield there[0], UNPLANTABLE, f"it does not build: {tail(log)}"
        for fault in there if built else []:
            code = copy.check(fault["caught_by"], log)
            if code in fault.get("exit", [1]):
                yield fault, CAUGHT, tail(log, fault.get("shows", ""))
            else:
                yield fault, SURVIVED, f"`{fault['caught_by']}` exits with {code}: {tail(log)}"
    finally:
        for path, original in originals.items():
            path.write_text(original)
    if not built and len(there) > 1:
        for fault in there:
            yield from judge(copy, [fault], log)


def tail(log, pattern=""):
    lines = [line.strip() for line in Path(log).read_text(errors="replace").splitlines() if line.strip()]
    shown = [line for line in lines if pattern and re.search(pattern, line)] or lines
    return shown[-1][:160] if shown else "no output"


class Outcomes:
    """What came of the faults and of the checks without them: a line each in a file beside the copy."""

    def __init__(self, copy, forgotten, file=None):
        self.copy, self.file = copy, Path(file or copy.folder / "outcomes.jsonl").absolute()
        revision = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, check=False,
                                  capture_output=True, text=True).stdout.strip()
        self.revision = revision or "unknown"
        self.passes = copy.folder / "passes.jsonl"  # of this copy, as it is now; not worth keeping elsewhere
        rows = [row for row in self.rows_of(self.file) if row["name"] not in forgotten]
        self.file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        self.good = {row["key"] for row in rows + self.rows_of(self.passes) if row["outcome"] in (CAUGHT, PASSES)}

    @staticmethod
    def rows_of(file):
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def key(self, fault):
        """Of the fault, but for its words, and the text that it is planted in."""
        path = self.copy.folder / fault["file"]
        return digest([{**fault, "what": ""}, path.read_text() if path.exists() else ""])

    def add(self, name, key, outcome, why, seconds):
        row = {"name": name, "outcome": outcome, "why": why, "seconds": round(seconds), "key": key,
               "revision": self.revision}
        if outcome in (CAUGHT, PASSES):
            self.good.add(key)
        with open(self.passes if outcome == PASSES else self.file, "a") as file:
            file.write(json.dumps(row) + "\n")
        if outcome != PASSES:
            print(f"{outcome:11} {name:40} {seconds:5.0f} s\n            {why}", flush=True)


def digest(what):
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()


def failing_without_a_fault(copy, faults, outcomes, log):
    """The checks of the faults that do not pass on the copy as it is, each after what it compares with is made."""
    failing = set()
    for check, before in {fault["caught_by"]: fault.get("before", "true") for fault in faults}.items():
        if (key := digest([check, before, copy.contents])) in outcomes.good:
            continue
        start = time.monotonic()
        if (code := copy.check(f"{before} && {{ {check}; }}", log)) == 0:
            outcomes.add(check, key, PASSES, "", time.monotonic() - start)
        else:
            failing.add(check)
            print(f"exits with {code} without any fault, so it proves nothing: {check}\n    {tail(log)}", flush=True)
    return failing


def plant_all(copy, faults, outcomes, log, until=math.inf):
    """How many of the faults came to what; none is planted after `until`."""
    components = kinds_of(copy.folder)
    counts = collections.Counter()
    for shared in rounds(faults, copy.costs(faults), components):
        if time.monotonic() > until:
            counts[LEFT] += len(shared)
            continue
        start, keys = time.monotonic(), {fault["name"]: outcomes.key(fault) for fault in shared}
        for fault, outcome, why in judge(copy, shared, log):
            counts[outcome] += 1
            outcomes.add(fault["name"], keys[fault["name"]], outcome, why, time.monotonic() - start)
            start = time.monotonic()
    return counts


def judge_all(copy, faults, outcomes, log, until=math.inf):
    """How many of the faults came to what; those that were caught before are not planted again."""
    left = [fault for fault in faults if outcomes.key(fault) not in outcomes.good]
    failing = failing_without_a_fault(copy, left, outcomes, log)
    unproven = [fault for fault in left if fault["caught_by"] in failing]
    for fault in unproven:
        outcomes.add(fault["name"], "", PROVES_NOTHING, fault["caught_by"], 0)
    counts = plant_all(copy, [fault for fault in left if fault not in unproven], outcomes, log, until)
    return counts + collections.Counter({CAUGHT: len(faults) - len(left), PROVES_NOTHING: len(unproven)})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--filter", default=".")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--folder")
    parser.add_argument("--outcomes")
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    began = time.monotonic()
    faults = [fault for fault in json.loads((ROOT / "ci/mutations.json").read_text())
              if re.search(options.filter, fault["name"])]
    if options.list or not faults:
        print("\n".join(f"{fault['name']:40} {fault['what']}" for fault in faults) or "no fault has such a name")
        return 0 if faults else 2
    folder = options.folder or tempfile.mkdtemp(prefix="twinbench-mutations-")
    log = Path(folder) / "mutation.log"
    try:
        copy = Copy(folder, options.jobs)
        if not copy.build(log, [fault["caught_by"] for fault in faults]):
            print(f"the copy does not build: {tail(log)}")
            return 2
        outcomes = Outcomes(copy, {fault["name"] for fault in faults} if options.again else set(), options.outcomes)
        counts = judge_all(copy, faults, outcomes, log, began + 60 * options.minutes)
        told = (CAUGHT, SURVIVED, UNPLANTABLE, PROVES_NOTHING, LEFT)
        print(", ".join(f"{counts[outcome]} {outcome}" for outcome in told))
        if counts[SURVIVED]:
            return 1
        return 2 if counts[UNPLANTABLE] or counts[PROVES_NOTHING] else 3 if counts[LEFT] else 0
    finally:
        if not options.folder:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
