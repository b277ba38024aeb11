#!/usr/bin/python3 -IS
"""A twinbench with made-up counts and times, for tests of ci/compare_revisions: a link to this file beside NAME.json.

NAME.json: {"cells": {cell: {"wall": seconds, "cpu": seconds, "counters": {...}, "instructions": n, "kernels": {...},
"error": text}}, "noise": deviation of a time, "seed": n, "drift": growth a call, "crash": engine that crashes,
"restless": cell whose instructions do not repeat}. The calls of both are counted in one file.
"""
import json
import math
import re
import sys
from _random import Random  # a few hundred of these processes are started: random and pathlib would take twice as long

HERE = sys.argv[0]
with open(re.sub(r"(\.py)?$", ".json", HERE, count=1)) as told:
    BEHAVIOUR = json.load(told)
CALLS = HERE.rpartition("/")[0] + "/calls"  # of both programs
with open(CALLS, "a") as calls:
    calls.write(" ".join(sys.argv[1:]) + "\n")
with open(CALLS) as calls:
    COUNT = calls.read().count("\n")


def flag(name: str, default: str = "") -> str:
    joined = [word.split("=", 1)[1] for word in sys.argv if word.startswith(name + "=")]
    return joined[0] if joined else sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default


def write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def chosen(pattern: str, device: str) -> dict[str, dict]:
    return {cell: row for cell, row in BEHAVIOUR["cells"].items()
            if re.search(pattern, cell) and f"/{device}/" in cell}


def gauss(rng: Random) -> float:
    """Box and Muller's normal number."""
    return math.sqrt(-2 * math.log(1 - rng.random())) * math.cos(2 * math.pi * rng.random())


def bench() -> None:
    if flag("--benchmark_list_tests"):
        print("\n".join(f"{cell}/real_time" for cell in chosen(".", "cpu")))
        return
    rng = Random(BEHAVIOUR["seed"] * 1000 + COUNT)
    rows = []
    for cell, row in chosen(".", "cpu").items():
        if not re.search(flag("--benchmark_filter"), f"{cell}/real_time"):
            continue
        if "error" in row:
            rows.append({"run_name": f"{cell}/real_time", "run_type": "iteration", "error_occurred": True,
                         "error_message": row["error"]})
            continue
        drift = (1 + BEHAVIOUR.get("drift", 0)) ** COUNT
        for _ in range(int(flag("--benchmark_repetitions"))):
            rows.append({"run_name": f"{cell}/real_time", "run_type": "iteration", **{
                f"{key}_time": row[name] * drift * math.exp(BEHAVIOUR["noise"] * gauss(rng))
                for key, name in (("real", "wall"), ("cpu", "cpu"))}})
    write(flag("--benchmark_out"), json.dumps({"context": {}, "benchmarks": rows}))


def pins(engine: str) -> None:
    device = flag("--device") or {"kernels": "simt"}.get(engine, "cpu")
    found = {cell: row[engine] for cell, row in chosen(flag("--filter"), device).items() if engine in row}
    if not found:
        sys.stderr.write(f"twinbench: unknown_name: --filter is {flag('--filter')!r}: no cell matches\n")
        sys.exit(2)
    if engine == "instructions":
        found = {"machine": {cell: [count + (COUNT if cell == BEHAVIOUR.get("restless") else 0), 1]
                             for cell, count in found.items()}}
    write(flag("--pins"), json.dumps({"cells": found} if engine == "kernels" else found))


def main() -> None:
    engine = sys.argv[1]
    if engine == BEHAVIOUR.get("crash"):
        sys.exit("planted crash")
    if engine == "list":
        components = {cell.split("/")[0] for cell in BEHAVIOUR["cells"]}
        print(json.dumps([{"id": name, "cases": [{"name": "train", "timed": True}, {"name": "tiny", "timed": False}]}
                          for name in sorted(components)]))
    elif engine == "bench":
        bench()
    else:
        pins(engine)


main()
