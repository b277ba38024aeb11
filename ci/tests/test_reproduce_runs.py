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



def listed():
    done = subprocess.run([PROGRAM, "list", "--cells"], capture_output=True, text=True, cwd=ROOT, timeout=60)
    cells = [line.split()[0] for line in done.stdout.splitlines() if line.count("/") == 4]
    return [cell for cell in cells if cell.endswith("/optimized/cpu/fp32/tiny")]


@pytest.mark.parametrize("section", ["parity", "counters"])
def test_the_command_of_a_failing_row_runs_that_cell(section, tmp_path):
    cell = listed()[0]
    root = synthetic.full()
    root["twinbench"][section][0].update(cell=cell, verdict="fail", reason="planted")
    (tmp_path / "record.json").write_text(json.dumps(root))
    finding = judge(load_record(tmp_path / "record.json")).findings[0]
    assert finding.subject.startswith(cell) and finding.reproduce
    command = finding.reproduce.replace("build/cpu/bin/twinbench", PROGRAM, 1)
    out = tmp_path / "again.json"
    done = subprocess.run(f"{command} --out {out}", shell=True, capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads(out.read_text())["twinbench"][section]
    assert rows and {row["cell"] for row in rows} == {cell}
