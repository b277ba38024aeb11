#!/usr/bin/env python3
"""Plants every fault of ci/mutations.json, one at a time, in a copy of the tree, and sees whether its check catches it.

A fault is a text to find, exactly once, in a file, and what to put in its place; its check is a command that must then
exit with 1 (`caught_by`), or with one of the codes in `exit`. First the checks run on the copy as it is: one that fails
there catches nothing. Exit codes: 0 all caught, 1 a fault survived, 2 a fault that cannot be planted (the text is gone,
it does not build).

usage: ci/mutations.py [--filter RE] [--list] [--folder DIR: keeps the copy and its build there]"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SURVIVED, CAUGHT, UNPLANTABLE = "SURVIVED", "caught", "NOT PLANTED"


class Copy:
    """The tracked files of this checkout as they are now, with a build folder of their own."""

    def __init__(self, folder):
        self.folder = Path(folder)
        files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
        for name in filter(None, files.decode().split("\0")):
            source, target = ROOT / name, self.folder / name
            if source.is_file() and not (target.exists() and target.read_bytes() == source.read_bytes()):
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, target)
        for shared in (".venv", "data"):  # the compiler cache knows both by their names
            if (ROOT / shared).exists() and not (self.folder / shared).exists():
                (self.folder / shared).symlink_to((ROOT / shared).resolve())

    def run(self, command, log):
        """The exit code; output goes to `log`."""
        environment = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE", "PYTHONPATH": "reports",
                       "TWINBENCH_PROGRAM": str(self.folder / "build/cpu/bin/twinbench")}
        if os.environ.get("TWINBENCH_VENV") is None:
            environment["TWINBENCH_VENV"] = str(self.folder / ".venv")
        with open(log, "w") as output:
            return subprocess.run(["bash", "-c", command], cwd=self.folder, env=environment, stdout=output,
                                  stderr=subprocess.STDOUT, check=False).returncode

    def build(self, log, checks):
        """The program, and the tests that `checks` run."""
        targets = {"twinbench"} | {name for check in checks for name in re.findall(r"build/cpu/bin/(\w+)", check)}
        build = f"cmake --build --preset cpu --target {' '.join(sorted(targets))}"
        return self.run(f"cmake --preset cpu && {build}", log) == 0


def planted(text, fault):
    """`text` with the fault in it, or None where its place is not there exactly once."""
    return text.replace(fault["find"], fault["replace"]) if text.count(fault["find"]) == 1 else None


def needs_building(path):
    """Data beside a specification is built into the program, scripts and scenarios are not."""
    return path.suffix not in (".py", ".yaml", ".json", "") or "src" in path.parts


def judge(copy, fault, log):
    """(what came of it, why) of one fault; the copy is as before afterwards."""
    path = copy.folder / fault["file"]
    original = path.read_text() if path.exists() else ""
    changed = planted(original, fault)
    if changed is None:
        return UNPLANTABLE, f"its text stands {original.count(fault['find'])} times in {fault['file']}"
    path.write_text(changed)
    try:
        if needs_building(path) and not copy.build(log, [fault["caught_by"]]):
            return UNPLANTABLE, f"it does not build: {tail(log)}"
        code = copy.run(fault["caught_by"], log)
    finally:
        path.write_text(original)
    if code in fault.get("exit", [1]):
        return CAUGHT, tail(log, fault.get("shows", ""))
    return SURVIVED, f"`{fault['caught_by']}` exits with {code}: {tail(log)}"


def tail(log, pattern=""):
    lines = [line.strip() for line in Path(log).read_text(errors="replace").splitlines() if line.strip()]
    shown = [line for line in lines if pattern and re.search(pattern, line)] or lines
    return shown[-1][:160] if shown else "no output"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--filter", default=".")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--folder")
    options = parser.parse_args()
    faults = [fault for fault in json.loads((ROOT / "ci/mutations.json").read_text())
              if re.search(options.filter, fault["name"])]
    if options.list or not faults:
        print("\n".join(f"{fault['name']:32} {fault['what']}" for fault in faults) or "no fault has such a name")
        return 0 if faults else 2
    folder = options.folder or tempfile.mkdtemp(prefix="twinbench-mutations-")
    log = Path(folder) / "mutation.log"
    try:
        copy = Copy(folder)
        if not copy.build(log, [fault["caught_by"] for fault in faults]):
            print(f"the copy does not build: {tail(log)}")
            return 2
        worst = 0
        for command in dict.fromkeys(fault["caught_by"] for fault in faults):
            if copy.run(command, log) != 0:
                print(f"fails without any fault, so it proves nothing: {command}\n    {tail(log)}")
                worst = 2
        counts = {CAUGHT: 0, SURVIVED: 0, UNPLANTABLE: 0}
        for fault in faults:
            start = time.monotonic()
            outcome, why = judge(copy, fault, log)
            counts[outcome] += 1
            print(f"{outcome:11} {fault['name']:32} {time.monotonic() - start:5.0f} s  {fault['what']}\n"
                  f"            {why}", flush=True)
        print(", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
        return max(worst, 2 if counts[UNPLANTABLE] else 0) if not counts[SURVIVED] else 1
    finally:
        if not options.folder:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
