#!/usr/bin/env python3
"""How long the CUDA path on the host takes: parity, counters and counted accesses on simt, each and together.

usage: ci/simt_seconds.py [--components NAME ...] [--at-most SECONDS] [--program FILE]
Without names: the first seven components, of which three read and collate and have no kernels. Everything is checked
that ci/slow would check of them; nothing is sampled. As many processes at once as there are cores: parity and counters
in three shards a core, accesses in one process a component.
Exit 0 within the limit, 1 beyond it or a check failed, 2 usage.
"""
import argparse
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SEVEN = [f"energy_flow.{name}" for name in ("dataset_file", "dataset_loader", "collation", "embedding_mapper",
                                            "simple_neuron", "energy_carrier", "carrier_heads")]


def run(command: list[str]) -> int:
    """The exit code; what it printed only where it fails."""
    ended = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if ended.returncode:
        print(ended.stdout[-4000:], file=sys.stderr)
    return ended.returncode


def with_kernels(program: str, names: list[str]) -> list[str]:
    cells = subprocess.run([program, "list", "--cells"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    found = {cell.split("/")[0] for cell in cells.split() if "/simt/" in cell}
    return [name for name in names if name in found]


def timed(name: str, work: Callable[[], int]) -> tuple[int, float]:
    """Runs it and prints its seconds, by the clock and of all cores. Its exit code and seconds."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    code, seconds, after = work(), time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cores = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{name:17} {seconds:7.1f} s  {cores:7.1f} core s  exit code {code}", flush=True)
    return code, seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--components", nargs="+", default=SEVEN, metavar="NAME")
    parser.add_argument("--at-most", type=float, default=90, metavar="SECONDS", help="default: %(default)s")
    parser.add_argument("--program", type=Path, default=ROOT / "build/cpu/bin/twinbench", metavar="FILE")
    options = parser.parse_args()
    if not options.program.is_file():
        parser.error(f"--program {options.program}: not there; build it, or name another")
    program = str(options.program.resolve())
    names = with_kernels(program, options.components)
    if not names:
        parser.error(f"--components {' '.join(options.components)}: none of them has cells on simt")
    filters = [f"^{re.escape(name)}/" for name in names]

    cores = os.cpu_count() or 1

    def side_by_side(commands: list[list[str]]) -> int:
        with ThreadPoolExecutor(cores) as pool:
            return max(pool.map(lambda one: run([program, *one]), commands))

    def engine(word: str) -> int:
        words = [word, "--device", "simt", "--filter", "|".join(filters)]
        return side_by_side([[*words, "--shard", f"{at}/{3 * cores}"] for at in range(1, 3 * cores + 1)])

    def accesses() -> int:
        return side_by_side([["kernels", "--filter", one] for one in filters])

    print(f"simt, {', '.join(names)}; {cores} cores")
    took = [timed("parity", lambda: engine("parity")), timed("counters", lambda: engine("counters")),
            timed("counted accesses", accesses)]
    seconds = sum(each for _, each in took)
    late = seconds > options.at_most
    print(f"{'together':17} {seconds:7.1f} s  at most {options.at_most:g} s: {'no' if late else 'yes'}")
    return 1 if late or any(code for code, _ in took) else 0


if __name__ == "__main__":
    sys.exit(main())
