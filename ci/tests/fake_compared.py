#!/usr/bin/python3 -IS
"""A twinbench with made-up counts and times, for tests of ci/compare_revisions: a link to this file beside NAME.json.

NAME.json: {"cells": {cell: {"wall": seconds, "cpu": seconds, "counters": {...}, "instructions": n, "kernels": {...},
"error": text}}, "noise": deviation of a time, "seed": n, "drift": growth a call, "crash": engine that crashes,
"restless": cell whose instructions do not repeat, "moves": by how many a call}. The calls of both are counted in one
file. Started as a program, or
asked within a test by answer(): a comparison of times makes hundreds of calls.
"""
import json
import math
import re
import sys
from _random import Random  # random and pathlib would take twice as long to start


class Call:
    """One call of the program: what it was told beforehand, its words, and how many calls of both there were."""

    def __init__(self, program: str, words: list[str]) -> None:
        self.words = words
        with open(re.sub(r"(\.py)?$", ".json", program, count=1)) as told:
            self.behaviour = json.load(told)
        counted = program.rpartition("/")[0] + "/calls"  # of both programs
        with open(counted, "a") as calls:
            calls.write(" ".join(words) + "\n")
        with open(counted) as calls:
            self.count = calls.read().count("\n")

    def flag(self, name: str, default: str = "") -> str:
        joined = [word.split("=", 1)[1] for word in self.words if word.startswith(name + "=")]
        return joined[0] if joined else self.words[self.words.index(name) + 1] if name in self.words else default

    def chosen(self, pattern: str, device: str) -> dict[str, dict]:
        return {cell: row for cell, row in self.behaviour["cells"].items()
                if re.search(pattern, cell) and f"/{device}/" in cell}

    def bench(self) -> None:
        if self.flag("--benchmark_list_tests"):
            print("\n".join(f"{cell}/real_time" for cell in self.chosen(".", "cpu")))
            return
        rng = Random(self.behaviour["seed"] * 1000 + self.count)
        rows = []
        for cell, row in self.chosen(".", "cpu").items():
            if not re.search(self.flag("--benchmark_filter"), f"{cell}/real_time"):
                continue
            if "error" in row:
                rows.append({"run_name": f"{cell}/real_time", "run_type": "iteration", "error_occurred": True,
                             "error_message": row["error"]})
                continue
            drift = (1 + self.behaviour.get("drift", 0)) ** self.count
            for _ in range(int(self.flag("--benchmark_repetitions"))):
                rows.append({"run_name": f"{cell}/real_time", "run_type": "iteration", **{
                    f"{key}_time": row[name] * drift * math.exp(self.behaviour["noise"] * gauss(rng))
                    for key, name in (("real", "wall"), ("cpu", "cpu"))}})
        write(self.flag("--benchmark_out"), json.dumps({"context": {}, "benchmarks": rows}))

    def pins(self, engine: str) -> int:
        device = self.flag("--device") or {"kernels": "simt"}.get(engine, "cpu")
        chosen = self.chosen(self.flag("--filter"), device)
        found = {cell: row[engine] for cell, row in chosen.items() if engine in row}
        if chosen and not found and engine == "instructions":  # which counts one cell of each kind
            print("instructions: 0 passed, 0 failed, 0 skipped (nothing was planned)")
            return 3
        if not found:
            sys.stderr.write(f"twinbench: unknown_name: --filter is {self.flag('--filter')!r}: no cell matches\n")
            return 2
        if engine == "instructions":
            restless = self.behaviour.get("restless")
            moved = self.behaviour.get("moves", 1) * self.count
            found = {"machine": {cell: count + (moved if cell == restless else 0)
                                 for cell, count in found.items()}}
        write(self.flag("--pins"), json.dumps({"cells": found} if engine == "kernels" else found))
        return 0

    def components(self) -> None:
        names = {cell.split("/")[0] for cell in self.behaviour["cells"]}
        print(json.dumps([{"id": name, "cases": [{"name": "train", "timed": True}, {"name": "tiny", "timed": False}]}
                          for name in sorted(names)]))


def write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def gauss(rng: Random) -> float:
    """Box and Muller's normal number."""
    return math.sqrt(-2 * math.log(1 - rng.random())) * math.cos(2 * math.pi * rng.random())


def answer(program: str, words: list[str]) -> int:
    """Does what the words ask of that program, and returns its exit code."""
    call = Call(program, words)
    engine = words[0]
    if engine == call.behaviour.get("crash"):
        sys.stderr.write("planted crash\n")
        return 1
    if engine == "list":
        call.components()
    elif engine == "bench":
        call.bench()
    else:
        return call.pins(engine)
    return 0


if __name__ == "__main__":
    sys.exit(answer(sys.argv[0], sys.argv[1:]))
