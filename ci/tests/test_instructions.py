"""Instruction counts: they repeat, 1 % more work is found, and every way of not counting has its own exit code."""
import json
import os
import subprocess
from pathlib import Path

import pytest

PROGRAM = os.environ["TWINBENCH_PROGRAM"]
ROOT = Path(__file__).parents[2]
CELLS = "simple_neuron/(baseline|optimized)/cpu/fp32/uniform$"


def instructions(pins, *flags, **environment):
    return subprocess.run([PROGRAM, "instructions", "--filter", CELLS, "--pins", str(pins), *flags], cwd=ROOT,
                          capture_output=True, text=True, env={**os.environ, **environment})


@pytest.fixture(scope="module")
def pinned(tmp_path_factory):
    pins = tmp_path_factory.mktemp("pins") / "instructions.json"
    result = instructions(pins, "--pin")
    assert result.returncode == 0, result.stdout + result.stderr
    return pins


def test_counts_repeat_to_the_last_instruction(pinned, tmp_path):
    again = tmp_path / "again.json"
    assert instructions(again, "--pin").returncode == 0
    assert json.loads(again.read_text()) == json.loads(pinned.read_text())
    result = instructions(pinned)
    assert result.returncode == 0 and "2 passed, 0 failed" in result.stdout


def test_one_percent_more_work_is_found_and_named(pinned, tmp_path):
    content = json.loads(pinned.read_text())
    (machine, cells), = content.items()
    assert len(cells) == 2 and all(total > outside > 0 for total, outside in cells.values())
    cell = next(cell for cell in cells if "/baseline/" in cell)
    measured = cells[cell][0]
    cells[cell][0] = measured * 100 // 101
    padded = tmp_path / "padded.json"
    padded.write_text(json.dumps(content))
    result = instructions(padded)
    assert result.returncode == 1 and f"{cell}: instructions {cells[cell][0]} -> {measured} (+1.00 %)" in result.stdout
    del cells[cell]
    padded.write_text(json.dumps(content))
    result = instructions(padded)
    assert result.returncode == 1 and f"{cell}: not pinned" in result.stdout
    padded.write_text(json.dumps({"another machine": cells}))
    result = instructions(padded)
    assert result.returncode == 3 and "no counts are pinned for this machine (" + machine in result.stdout


def test_without_valgrind_and_on_other_devices_it_refuses(tmp_path):
    result = instructions(tmp_path / "pins.json", PATH="/nonexistent")
    assert result.returncode == 2 and "valgrind" in result.stderr and "ci/setup" in result.stderr
    result = instructions(tmp_path / "pins.json", "--device", "cuda")
    assert result.returncode == 2 and "--device" in result.stderr


def test_pins_that_are_none_are_refused_by_name(tmp_path):
    pins = tmp_path / "pins.json"
    for text in ("[]", '{"machine": 3}', '{"machine": {"cell": [1]}}', "{"):
        pins.write_text(text)
        result = instructions(pins)
        assert result.returncode == 2 and str(pins) in result.stderr, text
