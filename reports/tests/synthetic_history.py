"""Builds synthetic histories: runs of made-up components over weeks, one of which became slower on a known day."""

from __future__ import annotations

import copy
import datetime
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import synthetic

from twinbench_reports.store.folder import Store
from twinbench_reports.store.importers import read_run
from twinbench_reports.store.records import keep_record

SLOWER, SLOWER_BY = "trainer2.attention", 1.25
FIRST_DAY = datetime.datetime(2026, 8, 1, 3, 0, 0)


def record_of(day: int, days: int, seed: int = 5, root: dict[str, Any] | None = None,
              **provenance: Any) -> dict[str, Any]:
    """The record of a day: times move with the machine, SLOWER loses its speed after two thirds of the days."""
    rng = np.random.default_rng([seed, day])
    root = copy.deepcopy(root or synthetic.full())
    block = root["twinbench"]
    stamp = (FIRST_DAY + datetime.timedelta(days=day)).strftime("%Y-%m-%dT%H:%M:%SZ")
    block["provenance"] |= {"utc": stamp, "revision": hashlib.sha1(bytes([seed, day])).hexdigest()[:20]} | provenance
    factor = {}
    for row in block["timings"]:
        moved = float(np.exp(rng.normal(0, 0.006)))
        late = SLOWER_BY if row["cell"].startswith(f"{SLOWER}/optimized/") and day >= 2 * days // 3 else 1.0
        factor[row["cell"]] = late
        for key in ("median_s", "q1_s", "q3_s", "minimum_s"):
            row[key] *= moved * late
    for row in block["speedups"]:
        lost = factor.get(synthetic.cell(row["component"], "optimized", row["dtype"], row["case"], row["device"]), 1.0)
        moved = float(np.exp(rng.normal(0, 0.004))) / lost
        for key in ("ratio", "lower", "upper"):
            row[key] *= moved
    return root


def fill(folder: Path, days: int, whole: int = 2, **provenance: Any) -> None:
    """Keeps a run a day, the last `whole` with their records; the rest of the folder stays as it is."""
    folder.mkdir(parents=True, exist_ok=True)
    store = Store(folder)
    scratch = folder.parent / "scratch.json"
    for day in range(days):
        data = json.dumps(record_of(day, days, **provenance)).encode()
        scratch.write_bytes(data)
        store.add(read_run(scratch))
        if day >= days - whole:
            keep_record(folder, data)
    scratch.unlink()


def of_components(*names: str) -> dict[str, Any]:
    """The realistic record with these components only."""
    root = synthetic.full()
    block = root["twinbench"]
    block["components"] = [component for component in block["components"] if component["id"] in names]
    for section in ("parity", "counters", "timings", "modelled"):
        block[section] = [row for row in block[section] if row["cell"].split("/")[0] in names]
    for section in ("proofs", "speedups"):
        block[section] = [row for row in block[section] if row["component"] in names]
    return synthetic.balance(root)
