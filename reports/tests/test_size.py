"""A suite of 88 components and a hundred runs: the gate, the report and the site keep their time and size.

Slow: TWINBENCH_FULL_SIZE=1 runs it. Of each component a real record has 1,400 rows of parity and 125 of counters.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import synthetic
import synthetic_history

from twinbench_reports.store.folder import Store
from twinbench_reports.store.importers import read_run
from twinbench_reports.store.records import keep_record

COMPONENTS, RUNS = 88, 100
PARITY, COUNTERS = 1_400, 125  # rows of a component
CORES = 2  # the site takes all there are
MOST_SECONDS, MOST_BYTES = 180.0, 2_000_000  # of the two; of the single file
ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(not os.environ.get("TWINBENCH_FULL_SIZE"), reason="slow: TWINBENCH_FULL_SIZE=1")


def large():
    """The realistic record, its components repeated under other names, with as many rows as a real one has."""
    root = synthetic.full()
    block = root["twinbench"]
    names = [component["id"] for component in block["components"]]
    copies = [(name, f"{name}_{index}" if index else name) for index in range(COMPONENTS // len(names) + 1)
              for name in names][:COMPONENTS]
    for section, key in (("components", "id"), ("parity", "cell"), ("counters", "cell"), ("timings", "cell"),
                         ("modelled", "cell"), ("proofs", "component"), ("speedups", "component")):
        rows = {name: [row for row in block[section] if row[key].split("/")[0] == name] for name in names}
        block[section] = [row | {key: row[key].replace(name, new, 1)} for name, new in copies for row in rows[name]]
    block["parity"] = [row | {"cell": f"{row['cell']}_{index}"} for row in block["parity"]
                       for index in range(PARITY * COMPONENTS // len(block["parity"]))]
    block["counters"] = [row | {"cell": f"{row['cell']}_{index}"} for row in block["counters"]
                         for index in range(COUNTERS * COMPONENTS // len(block["counters"]))]
    block["scenarios"] = [row | {"name": f"{row['name']}_{index}"} for row in block["scenarios"] for index in range(84)]
    return synthetic.balance(root)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """(history, record, the one before): all runs in the history, the last two with their records."""
    folder, root = tmp_path_factory.mktemp("large"), large()
    store, rng, records = Store(folder / "kept"), np.random.default_rng(1), []
    for day in (RUNS - 2, RUNS - 1):
        path = folder / f"{day}.json"
        path.write_text(json.dumps(synthetic_history.record_of(day, RUNS, root=root)))
        keep_record(folder / "kept", path.read_bytes())
        run = read_run(path)
        store.add(run)
        records.append(path)
    for day in range(RUNS - 2):
        utc = (synthetic_history.FIRST_DAY + datetime.timedelta(days=day)).strftime("%Y-%m-%dT%H:%M:%SZ")
        points = {name: seconds * float(np.exp(rng.normal(0, 0.01))) for name, seconds in run.points.items()}
        store.add(dataclasses.replace(run, utc=utc, revision=f"{day:012x}", record="", points=points))
    return folder / "kept", records[1], records[0]


def timed(*arguments):
    """Processor seconds, so that what else the machine does is left out."""
    start = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-m", "twinbench_reports", *map(str, arguments)], capture_output=True,
                          text=True, env=os.environ | {"PYTHONPATH": str(ROOT / "reports")})
    assert done.returncode in (0, 1, 3), done.stderr
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    return end.ru_utime + end.ru_stime - start.ru_utime - start.ru_stime


def test_the_gate_the_report_and_the_site_keep_their_time_and_size(kept, tmp_path, capsys):
    history, now, before = kept
    seconds = {"gate": timed("gate", now, "--baseline", before, "--verdict", tmp_path / "verdict.json", "--quiet"),
               "report": timed("html", now, "-o", tmp_path / "report.html"),
               "site": timed("site", history, "-o", tmp_path / "site") / CORES}
    size, pages = (tmp_path / "report.html").stat().st_size, len(list((tmp_path / "site").rglob("*.html")))
    with capsys.disabled():
        print(f"\n{now.stat().st_size / 1e6:.0f} MB a record: "
              + ", ".join(f"{name} {value:.0f} s" for name, value in seconds.items())
              + f"; report {size / 1e6:.2f} MB, site {pages} pages")
    assert sum(seconds.values()) <= MOST_SECONDS
    assert size <= MOST_BYTES
    assert pages >= COMPONENTS + 84 + 5
