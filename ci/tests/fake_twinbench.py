#!/usr/bin/python3 -IS
"""A twinbench that does as $FAKE_BEHAVIOUR says, step by step: what the GPU suite's tests run in place of the program.

$FAKE_BEHAVIOUR: JSON, step name (the stem of --out) -> ok, fail, hang, crash, half, killed_while_writing, slow, brief,
missing_device; of `dump` the cell -> other_bits, other_inputs, missing_device; of `check` "check" -> fail.
$FAKE_RECORD: an empty valid record. $FAKE_CALLS: a file that gets a line for every call.
"""
import json
import os
import re
import signal
import struct
import sys
import time
import zlib
from pathlib import Path

COMPONENTS = ("energy_flow.first", "energy_flow.second")
CELLS = [
    f"{component}/{variant}/{device}/{dtype}/{case}" for component in COMPONENTS
    for variant in ("baseline", "optimized") for device in ("cpu", "cuda", "simt") for dtype in ("fp32", "bf16")
    for case in ("tiny", "train", "backward_tiny")]
CHECKS = ("oracle", "vacuity", "determinism", "input_mutation", "guard_bands", "non_contiguous", "stale", "threads",
          "instances", "sensitivity", "precision", "late", "global_state", "outlives")
CASES = [{"name": "train", "sizes": {"n": 512}, "pass": "forward", "timed": True, "degenerate": False},
         {"name": "empty", "sizes": {"n": 0}, "pass": "forward", "timed": False, "degenerate": True},
         {"name": "tiny", "sizes": {"n": 4}, "pass": "forward", "timed": False, "degenerate": False},
         {"name": "backward_tiny", "sizes": {"n": 4}, "pass": "backward", "timed": False, "degenerate": False}]


def flag(name: str, default: str = "") -> str:
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default


def write_record(out: Path, engine: str, verdict: str) -> None:
    root = json.loads(Path(os.environ["FAKE_RECORD"]).read_text())
    block = root["twinbench"]
    block["engines"] = [engine]
    second = zlib.crc32(out.stem.encode()) % 86400  # no two runs are the same one
    block["provenance"]["utc"] = f"2026-11-21T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}Z"
    if engine == "parity":
        block["parity"] = [{
            "cell": cell,
            "check": check,
            "verdict": verdict,
            "reason": "" if verdict == "pass" else "planted",
            "seed": block["provenance"]["seed"],
            "seconds": 0.1,
            "outputs": [{
                "name": "output", "tolerance_class": "op", "max_absolute_error": 0, "max_relative_error": 0, "rmse": 0,
                "rmse_baseline": 0, "worst_ratio": 0, "elements": 8}]
            if check in ("oracle", "non_contiguous", "stale") else [],
            "vacuity": {"checked": 1, "rejected": 1} if check == "vacuity" else None} for check in CHECKS
                           for cell in CELLS
                           if re.search(flag("--filter", "."), cell) and f"/{flag('--device')}/" in cell]
    if engine == "ceilings":
        block["ceilings"] = [{"device": flag("--device"), "name": "copy", "unit": "B/s", "value": 1e12,
                              "data_sheet": None, "method": "made up"}]
    if engine == "selftest":
        block["selftest"] = [{"name": "made_up", "kind": "wrong_twin", "caught_by": "oracle", "expected": "oracle",
                              "got": "oracle", "verdict": verdict, "reason": ""}]
    if engine == "bench":
        block["session"] = {"null_test": {"verdict": "same", "pairs": 20, "cells": [], "noise_floor": 0.01},
                            "dispatcher_ns_per_call": None, "clock_resolution_ns": None}
    count = max(1, len({row["cell"] for row in block["parity"]}))
    block["ledger"].update({
        "planned": count,
        "passed" if verdict == "pass" else "failed": count,
        "exit_code": 0 if verdict == "pass" else 1})
    out.write_text(json.dumps(root))


def write_tensors(out: Path, behaviour: str) -> None:
    """An input and an output of two floats each, with a last bit of one of them flipped where asked."""
    values = {"input.x": [1.0, 2.0], "output.y": [3.0, 4.0]}
    flipped = {"other_bits": "output.y", "other_inputs": "input.x"}.get(behaviour)
    body, header = b"", {"__metadata__": {}}
    for name, floats in values.items():
        data = bytearray(struct.pack("<2f", *floats))
        data[0] ^= name == flipped
        header[name] = {"dtype": "F32", "shape": [2], "data_offsets": [len(body), len(body) + len(data)]}
        body += bytes(data)
    text = json.dumps(header).encode()
    out.write_bytes(struct.pack("<Q", len(text)) + text + body)


def main() -> int:
    with open(os.environ["FAKE_CALLS"], "a") as calls:
        calls.write(" ".join(sys.argv[1:]) + "\n")
    engine = sys.argv[1]
    if engine == "list":
        print("\n".join(CELLS) if "--cells" in sys.argv else json.dumps([{
            "id": component,
            "cases": CASES} for component in COMPONENTS]))
        return 0
    if engine in ("dump", "check"):
        asked = json.loads(os.environ.get("FAKE_BEHAVIOUR", "{}"))
        word = asked.get(sys.argv[2] if engine == "dump" else "check", "ok")
        if word == "missing_device":
            print("twinbench: missing_device: no CUDA device is visible here", file=sys.stderr)
            return 2
        if engine == "dump":
            write_tensors(Path(flag("--out")), word)
        print(f"{engine}: {word}")
        return 1 if word == "fail" else 0
    out = Path(flag("--out"))
    behaviour = json.loads(os.environ.get("FAKE_BEHAVIOUR", "{}")).get(out.stem, "ok")
    if behaviour == "hang":
        import subprocess  # of all the others only this one would make starts slow

        signal.signal(signal.SIGINT, signal.SIG_IGN)
        child = subprocess.Popen([
            sys.executable, "-c", "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(60)"])
        Path(os.environ["FAKE_CALLS"] + ".child").write_text(str(child.pid))
        time.sleep(60)
    if behaviour == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if behaviour == "half":
        out.write_text(Path(os.environ["FAKE_RECORD"]).read_text()[:400])
        return 0
    if behaviour == "killed_while_writing":
        out.with_name(f"{out.name}.partial.{os.getpid()}").write_text('{"context":')
        os.kill(os.getpid(), signal.SIGKILL)
    if behaviour == "slow":  # stopped by SIGINT, it writes what it has, as the real one does
        try:
            time.sleep(60)
        except KeyboardInterrupt:
            write_record(out, engine, "pass")
            return 3
    if behaviour == "brief":
        time.sleep(1)
    if behaviour == "missing_device":
        print("twinbench: missing_device: --device is 'cuda': no CUDA device is visible to LibTorch", file=sys.stderr)
        return 2
    write_record(out, engine, "fail" if behaviour == "fail" else "pass")
    print(f"{engine}: done")
    return 1 if behaviour == "fail" else 0


if __name__ == "__main__":
    sys.exit(main())
