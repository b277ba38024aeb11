#!/usr/bin/env python3
"""How long the CUDA path on the host takes: parity, counters and counted accesses on simt, each and together.

usage: ci/simt_seconds.py [--filter RE] [--at-most SECONDS] [--keep FOLDER] [--program FILE]
Without a filter: the first seven components, of which three read and collate and have no kernels. Everything is checked
that ci/slow would check of them; nothing is sampled. Exit 0 within the limit, 1 beyond it or a check failed, 2 usage.
"""
import argparse
import resource
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SEVEN = (r"^energy_flow\.(dataset_file|dataset_loader|collation|embedding_mapper|simple_neuron|energy_carrier|"
         r"carrier_heads)/")


def engines(keep: Path | None) -> list[tuple[str, list[str]]]:
    """Name and command of what is timed; parity first, as it takes longest."""
    def out(name: str) -> list[str]:
        return ["--out", str(keep / f"{name}.json")] if keep else []
    return [("parity", ["parity", "--device", "simt", *out("parity")]),
            ("counters", ["counters", "--device", "simt", *out("counters")]),
            ("counted accesses", ["kernels", *out("kernels")])]


def timed(command: list[str]) -> tuple[int, float, float]:
    """Exit code, seconds by the clock, seconds of all cores of it and its children. It prints only where it fails."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    run = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    seconds, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if run.returncode:
        print(run.stdout[-4000:], file=sys.stderr)
    return run.returncode, seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--filter", default=SEVEN, metavar="RE", help="of cells, as twinbench takes it")
    parser.add_argument("--at-most", type=float, default=90, metavar="SECONDS", help="default: %(default)s")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where the records go")
    parser.add_argument("--program", type=Path, default=ROOT / "build/cpu/bin/twinbench", metavar="FILE")
    options = parser.parse_args()
    if not options.program.is_file():
        parser.error(f"--program {options.program}: not there; build it, or name another")
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    failed, all_seconds, all_cores = [], 0.0, 0.0
    for name, words in engines(options.keep and options.keep.resolve()):
        code, seconds, cores = timed([str(options.program.resolve()), *words, "--filter", options.filter])
        print(f"{name:17} {seconds:7.1f} s  {cores:7.1f} core s  exit code {code}", flush=True)
        failed += [name] if code else []
        all_seconds, all_cores = all_seconds + seconds, all_cores + cores
    late = all_seconds > options.at_most
    print(f"{'together':17} {all_seconds:7.1f} s  {all_cores:7.1f} core s  at most {options.at_most:g} s: "
          f"{'no' if late else 'yes'}")
    return 1 if failed or late else 0


if __name__ == "__main__":
    sys.exit(main())
