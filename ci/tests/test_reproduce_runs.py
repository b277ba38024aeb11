"""The reproduce command of a failing row runs that row: failures of real cells are planted, each command is run."""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("TWINBENCH_PROGRAM", str(ROOT / "build/cpu/bin/twinbench"))
sys.path[:0] = [str(ROOT / "reports"), str(ROOT / "reports" / "tests")]
import synthetic  # noqa: E402

from twinbench_reports.judge.judge import judge  # noqa: E402
from twinbench_reports.load import load_record  # noqa: E402

TWIN = {"component": "trainer2.rotor_update", "device": "cpu", "dtype": "fp32", "case": "default"}
CELL = "trainer2.rotor_update/optimized/cpu/fp32/default"
SCENARIO = "scan_memory_budget"
QUICK = "--quick --null-cells 1 --null-blocks 2"


def of_twin(row):
    if "cell" in row:
        row = dict(zip(("component", "variant", "device", "dtype", "case"), row["cell"].split("/"), strict=True))
    return {key: row[key] for key in TWIN} == TWIN


# Of each kind of row: what names a small real one, the command's word, what keeps its run short, and whether a row
# that the command writes is one of those (times are measured by twins).
ROWS = {
    "parity": ({"cell": CELL}, "parity", "", lambda row: row["cell"] == CELL),
    "counters": ({"cell": CELL}, "counters", "", lambda row: row["cell"] == CELL),
    "proofs": (TWIN, "counters", "", of_twin),
    "timings": ({"cell": CELL}, "bench", QUICK, of_twin),
    "speedups": (TWIN, "bench", QUICK, of_twin),
    "scenarios": ({"name": SCENARIO, "device": "cpu"}, "scenario", "", lambda row: row["name"] == SCENARIO),
    "modelled": ({"cell": CELL.replace("/cpu/", "/simt/")}, "kernels", "",
                 lambda row: row["cell"] == CELL.replace("/cpu/", "/simt/")),
}


@pytest.mark.parametrize("section", ROWS)
def test_the_command_of_a_failing_row_runs_that_row(section, tmp_path):
    name, engine, short, is_that_row = ROWS[section]
    root = synthetic.full()
    root["twinbench"][section][0].update(name, reason="planted",
                                         verdict="rejected" if section == "speedups" else "fail")
    (tmp_path / "record.json").write_text(json.dumps(root))
    finding = next(finding for finding in judge(load_record(tmp_path / "record.json")).findings
                   if finding.severity == "fail" and finding.kind == section and finding.reproduce)
    assert finding.reproduce.startswith(f"build/cpu/bin/twinbench {engine} ")
    command = finding.reproduce.replace("build/cpu/bin/twinbench", PROGRAM, 1)
    out = tmp_path / "again.json"
    done = subprocess.run(f"{command} {short} --out {out}", shell=True, capture_output=True, text=True, cwd=ROOT,
                          timeout=120)
    assert done.returncode in ((0, 3) if engine == "bench" else (0,)), done.stdout + done.stderr  # 3: undecided times
    rows = json.loads(out.read_text())["twinbench"][section]
    assert rows and all(map(is_that_row, rows)), [row for row in rows if not is_that_row(row)]


def test_every_kind_of_row_is_run_here():
    everywhere = {section for section, rows in synthetic.full()["twinbench"].items()
                  if isinstance(rows, list) and rows and "verdict" in rows[0]}
    assert everywhere - set(ROWS) == {"selftest"}  # the whole self-test is its command: ctest runs it
