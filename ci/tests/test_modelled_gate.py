"""`twinbench kernels`, its record and the gate, on one small cell: a kernel that the model finds slower exits 1."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CELL = "energy_flow.carrier_heads/optimized/simt/fp32/unit"
ARITHMETIC = "sem.selective_scan/optimized/simt/fp32/short"  # no products of a library
PROGRAM = os.environ["TWINBENCH_PROGRAM"]


def kernels(*options, cards=ROOT / "ci" / "cards"):
    command = [PROGRAM, "kernels", "--timed", "--pins-only", "--filter", f"^{CELL}$", "--cards", str(cards), *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)


def times(*options):
    command = [PROGRAM, "kernels", "--json", "--filter", f"^{ARITHMETIC}$", *map(str, options)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    return json.loads(done.stdout)["cells"][0]["modelled"], done.stderr


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


def test_no_time_is_shorter_than_the_arithmetic_takes(tmp_path):
    """One FMA unit a multiprocessor: the model sees every product. Without them in the machine code it is told."""
    cards, code = tmp_path / "cards", tmp_path / "code.json"
    cards.mkdir()
    for path in (ROOT / "ci" / "cards").glob("*.json"):
        card = json.loads(path.read_text())
        card["constants"]["fma_lanes"]["value"] = 0.01
        (cards / path.name).write_text(json.dumps(card))
    said = "the FLOPs of its cost alone take"
    rows, errors = times("--cards", cards)
    assert said not in errors and all(0 < row["arithmetic_microseconds"] < float(row["microseconds"]) for row in rows)
    pins = json.loads((ROOT / "ci" / "kernel_sass.json").read_text())
    for kernel in pins["kernels"].values():
        for figures in kernel.values():
            for piece in figures["pieces"] if isinstance(figures, dict) else ():
                piece.pop("fma", None)
    code.write_text(json.dumps(pins))
    _, errors = times("--cards", cards, "--machine-code", code)
    assert said in errors and "arithmetic" in errors and ARITHMETIC in errors
