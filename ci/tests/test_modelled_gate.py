"""`twinbench kernels`, its record and the gate, on one small cell: a kernel that the model finds slower exits 1."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CELL = "energy_flow.carrier_heads/optimized/simt/fp32/unit"
PROGRAM = os.environ["TWINBENCH_PROGRAM"]


def kernels(*options, cards=ROOT / "ci" / "cards"):
    command = [PROGRAM, "kernels", "--timed", "--pins-only", "--filter", f"^{CELL}$", "--cards", str(cards), *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)


def gate(*arguments):
    return subprocess.run([sys.executable, "-m", "twinbench_reports", "gate", *map(str, arguments)], cwd=ROOT,
                          capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(ROOT / "reports")})


def slow_cards(folder: Path) -> Path:
    """The cards with memories of five times the latency: every kernel that waits for them is slower by the model."""
    folder.mkdir()
    for path in (ROOT / "ci" / "cards").glob("*.json"):
        card = json.loads(path.read_text())
        for constant in ("memory_latency", "l2_latency"):
            card["constants"][constant]["value"] *= 5
        (folder / path.name).write_text(json.dumps(card))
    return folder


def test_a_kernel_that_the_model_finds_slower_exits_1(tmp_path):
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    right = kernels("--out", str(good))
    assert right.returncode == 0, right.stderr
    rows = json.loads(good.read_text())["twinbench"]["modelled"]
    assert [(row["cell"], row["card"], row["verdict"]) for row in rows] == [(CELL, "H200", "pass"),
                                                                            (CELL, "RTX 5090", "pass")]
    assert all(row["seconds"] > row["floor_s"] > 0 and row["limiter"] and row["pinned"] for row in rows)

    wrong = kernels("--out", str(bad), cards=slow_cards(tmp_path / "cards"))
    assert wrong.returncode == 1
    for part in (CELL, "H200", "RTX 5090", "floor / modelled fell", "limited by"):
        assert part in wrong.stderr
    assert gate(good).returncode == 3  # times alone are modelled: nothing was measured
    for judged in (gate(bad), gate(bad, "--baseline", good)):
        assert judged.returncode == 1 and f"fail modelled {CELL} on H200" in judged.stdout
        assert "floor / modelled fell" in judged.stdout
