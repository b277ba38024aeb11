"""Instruction counts: they repeat, 2 % more work is found, and every way of not counting has its own exit code."""
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

PROGRAM = os.environ["TWINBENCH_PROGRAM"]
ROOT = Path(__file__).parents[2]
CELLS = "simple_neuron/(baseline|optimized)/cpu/fp32/uniform$"


def instructions(pins, *flags, cells=CELLS, **environment):
    return subprocess.run([PROGRAM, "instructions", "--filter", cells, "--pins", str(pins), *flags], cwd=ROOT,
                          capture_output=True, text=True, env={**os.environ, **environment})


@pytest.fixture(scope="module")
def pinned(tmp_path_factory):
    pins = tmp_path_factory.mktemp("pins") / "instructions.json"
    result = instructions(pins, "--pin")
    assert result.returncode == 0, result.stdout + result.stderr
    return pins


def test_counts_repeat_and_two_percent_more_work_is_found(pinned, tmp_path):
    content = json.loads(pinned.read_text())
    (machine, cells), = content.items()
    baseline, optimized = sorted(cells)
    assert all(count > 0 for count in cells.values())
    cells[baseline] = cells[baseline] * 100 // 102
    padded = tmp_path / "padded.json"
    padded.write_text(json.dumps(content))
    record = tmp_path / "record.json"
    result = instructions(padded, "--out", str(record))
    assert result.returncode == 1 and "1 passed, 1 failed" in result.stdout  # the other one repeats
    rows = {row["cell"]: row for row in json.loads(record.read_text())["twinbench"]["instructions"]}
    assert rows[optimized]["unseen"] > 0 and "unseen" not in rows[baseline]  # an opponent may keep what it likes
    assert 0 < rows[baseline]["own"] < 0.3 * rows[baseline]["total"]
    assert rows[optimized]["own"] > 0.9 * rows[optimized]["total"]
    assert re.search(rf"{baseline}: instructions {cells[baseline]} -> [0-9]+ \(\+(1.9|2.0)[0-9] %\)", result.stdout)


def test_what_ran_before_in_the_process_moves_no_count(tmp_path):
    def of_the_last(cells):
        pins = tmp_path / "of_some.json"
        pins.unlink(missing_ok=True)
        assert instructions(pins, "--pin", cells=f"memory_lifetime/optimized/cpu/fp32/{cells}$").returncode == 0
        (_, counted), = json.loads(pins.read_text()).items()
        return next(count for cell, count in counted.items() if cell.endswith("peak_reset"))

    assert of_the_last("peak_reset") == pytest.approx(of_the_last("(batches_kept|peak_reset)"), rel=0.003)


def test_a_baseline_is_counted_where_it_is_timed(tmp_path):
    pins, cells = tmp_path / "timed.json", "rotor_update/"
    assert instructions(pins, "--timed", "--pin", cells=cells).returncode == 0
    (machine, counted), = json.loads(pins.read_text()).items()
    (cell, count), = counted.items()
    assert cell == "trainer2.rotor_update/baseline/cpu/fp32/default"
    pins.write_text(json.dumps({machine: {cell: count * 100 // 102}}))
    result = instructions(pins, "--timed", cells=cells)
    assert result.returncode == 1 and f"{cell}: instructions {count * 100 // 102} -> " in result.stdout


def test_what_is_not_pinned_fails_and_an_unknown_machine_is_undecided(pinned, tmp_path):
    content = json.loads(pinned.read_text())
    (machine, cells), = content.items()
    pins = tmp_path / "pins.json"
    pins.write_text(json.dumps({machine: {}}))
    result = instructions(pins)
    assert result.returncode == 1 and all(f"{cell}: not pinned" in result.stdout for cell in cells)
    pins.write_text(json.dumps({"another machine": cells}))
    result = instructions(pins)
    assert result.returncode == 3 and "no counts are pinned for this machine (" + machine in result.stdout


def test_without_valgrind_and_on_other_devices_it_refuses(tmp_path):
    pins = tmp_path / "pins.json"
    pins.write_text("{}")
    result = instructions(pins, PATH="/nonexistent")
    assert result.returncode == 2 and "valgrind" in result.stderr and "ci/setup" in result.stderr
    result = instructions(pins, "--device", "cuda")
    assert result.returncode == 2 and "--device" in result.stderr


def test_pins_that_are_none_are_refused_by_name(tmp_path):
    pins = tmp_path / "pins.json"
    for text in ("[]", '{"machine": 3}', '{"machine": {"cell": [1]}}', '{"machine": {"cell": -1}}', "{"):
        pins.write_text(text)
        result = instructions(pins)
        assert result.returncode == 2 and str(pins) in result.stderr, text


def test_every_kind_of_small_cell_has_its_instructions_pinned():
    facts = (ROOT / "ci/coverage.txt").read_text().splitlines()
    kinds = {line.removeprefix("instructions of ") for line in facts if line.startswith("instructions of ")}
    pinned = set().union(*json.loads((ROOT / "ci/instructions.json").read_text()).values())
    assert len(kinds) > 600
    assert not sorted(kinds - pinned), "pin them with `twinbench instructions --pin --filter ...`"
    assert not sorted(pinned - kinds), "nobody counts these: take them out of the file"
