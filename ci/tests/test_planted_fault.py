"""A real fault in the running program, and every command's exit code: 1 with it, 0 without."""
import os
import subprocess
from pathlib import Path

import pytest
import warm

PROGRAM = os.environ["TWINBENCH_PROGRAM"]
ROOT = Path(__file__).parents[2]
TINY = "simple_neuron/(baseline|optimized)/cpu/fp32/tiny$"
COMMANDS = {
    "parity": ["parity", "--filter", TINY],
    "counters": ["counters", "--filter", TINY],
    "bench": ["bench", "--quick", "--minutes", "1", "--null-cells", "1", "--null-blocks", "2",
              "--filter", "simple_neuron/.*/cpu/fp32/train$"],
    "selftest": ["selftest", "--filter", "^correct$"],
    "scenario": ["scenario", "flow_free_run", "--folder", str(ROOT / "scenarios")],
}


@pytest.fixture(scope="module")
def fault(tmp_path_factory):
    library = tmp_path_factory.mktemp("fault") / "wrong_operators.so"
    subprocess.run(["g++", "-x", "c", "-O1", "-shared", "-fPIC", "-o", str(library),
                    str(ROOT / "ci/tests/wrong_operators.c")], check=True)
    return library


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Where commands run: with the pins, and a small default dataset of real text for the scenarios."""
    folder = tmp_path_factory.mktemp("place")
    (folder / "ci").symlink_to(ROOT / "ci")
    (folder / "data").mkdir()
    # As many as the largest scenario takes: all files of the folder are checked before one of them runs.
    made = run(folder, ["data", "make", "--rows", "512", "--out", "data/default.efds"])
    assert made.returncode == 0, made.stderr
    return folder


def run(folder, arguments, preload=None):
    if preload is None:
        return warm.run(*arguments, cwd=folder)
    return subprocess.run([PROGRAM, *arguments], cwd=folder, env={**os.environ, "LD_PRELOAD": str(preload)},
                          capture_output=True, text=True)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_says_that_something_is_wrong(command, place, fault):
    result = run(place, COMMANDS[command], fault)
    told = f"{result.returncode}: {result.stdout[-2000:]}{result.stderr[-2000:]}"
    assert result.returncode == 1 and ", 0 failed" not in result.stdout, told


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "bench"])  # its verdict is about time
def test_and_passes_without_it(command, place):
    result = run(place, COMMANDS[command])
    assert result.returncode == 0, f"{result.returncode}: {result.stdout[-2000:]}{result.stderr[-2000:]}"


def test_a_dumped_file_is_judged_by_what_is_right_now(tmp_path, fault):
    cell, file = "energy_flow.simple_neuron/baseline/cpu/fp32/tiny", str(tmp_path / "cell.safetensors")
    assert run(tmp_path, ["dump", cell, "--out", file], fault).returncode == 0
    assert run(tmp_path, ["check", cell, "--from", file]).returncode == 1
    assert run(tmp_path, ["dump", cell, "--out", file]).returncode == 0
    assert run(tmp_path, ["check", cell, "--from", file]).returncode == 0
