"""The same cells on the card and on simt, before anything else: how far their outputs are the same bits.

Classes, best first: same_bits; close (the tolerances of the card's cell accept it, `twinbench check`); different, which
fails.
A kernel that computes without a library product promises the same bits, so what falls to `close` there is worth a look.
"""

from __future__ import annotations

import json
import struct
from collections import Counter
from pathlib import Path

from suite.engines import Bench
from suite.errors import SuiteError
from suite.files import last_line
from suite.plan import Step
from suite.state import StepResult

CLASSES = ("same_bits", "close", "different")


def read_tensors(path: Path) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    """name -> (element type, shape, bytes) of a safetensors file."""
    try:
        data = path.read_bytes()
        length = struct.unpack("<Q", data[:8])[0]
        header = json.loads(data[8:8 + length])
        body = data[8 + length:]
        found = {}
        for name, row in header.items():
            if name != "__metadata__":
                begin, end = row["data_offsets"]
                if end > len(body):
                    raise ValueError(f"{name} ends beyond the file")
                found[name] = (row["dtype"], tuple(row["shape"]), body[begin:end])
        return found
    except (OSError, ValueError, KeyError, struct.error) as error:
        raise SuiteError("bad_file", path.name, error, "see the step's log") from error


def differing(simt: Path, card: Path) -> list[str]:
    """Names of tensors that are not the same bits in both files. Throws where the inputs are others: then nothing is
    compared."""
    one, other = read_tensors(simt), read_tensors(card)
    if one.keys() != other.keys():
        raise SuiteError("bad_file", card.name, f"tensors {sorted(one.keys() ^ other.keys())} are in one file only",
                         "dump both with one program")
    names = [name for name in one if one[name] != other[name]]
    inputs = [name for name in names if name.startswith("input")]
    if inputs:
        raise SuiteError("bad_file", card.name, f"the inputs {inputs} differ", "dump both with one seed")
    return names


def run_bits(bench: Bench, step: Step, budget_s: float) -> StepResult:
    """Dumps each cell on simt and on the device (in a dry run on simt: the CPU) and sorts the pairs into classes."""
    other = "cpu" if bench.device == "simt" else bench.device
    result = StepResult(step.name, "done", "pass", detail={"classes": {}, "cells": {}})
    folder = bench.work / "bits"
    folder.mkdir(parents=True, exist_ok=True)
    seconds = 0.0
    for cell in step.cells:
        card = cell.replace("/simt/", f"/{other}/")
        files = {which: folder / f"{name.replace('/', '_')}.safetensors" for which, name in
                 (("simt", cell), ("card", card))}
        for which, name in (("simt", cell), ("card", card)):
            ended = bench.run(step.name, [str(bench.program), "dump", name, "--out", str(files[which])], step.limit_s,
                              budget_s - seconds)
            seconds += ended.seconds
            if ended.how in ("cut", "interrupted"):
                result.status, result.verdict, result.reason = ended.how, "inconclusive", ended.what
            elif ended.how != "exited" or ended.code != 0:
                result.verdict = "error"
                result.reason = f"dump of {name}: {ended.what or last_line(bench.log_of(step.name))}"
            if result.verdict != "pass":
                result.seconds = round(seconds, 2)
                return result
        try:
            names = differing(files["simt"], files["card"])
        except SuiteError as error:
            result.verdict, result.reason = "error", str(error)
            break
        kind, why = "same_bits", ""
        if names:
            check = bench.run(step.name, [str(bench.program), "check", card, "--from", str(files["card"])],
                              step.limit_s, budget_s - seconds)
            seconds += check.seconds
            kind = "close" if check.code == 0 else "different"
            why = f"{', '.join(names)}: {last_line(bench.log_of(step.name))}"
        result.detail["cells"][cell] = f"{kind} ({why})" if why else kind
        for path in files.values():
            path.unlink()
    counts = Counter(text.split(" ")[0] for text in result.detail["cells"].values())
    result.detail["classes"] = {kind: counts[kind] for kind in CLASSES}
    bad = [f"{cell}: {text}" for cell, text in result.detail["cells"].items() if text.startswith("different")]
    if bad:
        result.verdict, result.reason = "fail", f"on the card other than on simt: {bad[0]}" + (
            f" and {len(bad) - 1} more" if len(bad) > 1 else "")
    elif result.verdict == "pass":
        result.reason = ", ".join(f"{counts[kind]} {kind}" for kind in CLASSES if counts[kind])
    result.seconds = round(seconds, 2)
    return result
