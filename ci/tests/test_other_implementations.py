"""dump and check: another implementation passes, a wrong one fails, and bad files are typed errors."""
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = os.environ["TWINBENCH_PROGRAM"]
CELL = "energy_flow.energy_carrier/optimized/cpu/fp32/tiny"


def run(*arguments, cwd=None):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, timeout=120)


def test_the_documented_example_passes(tmp_path):
    result = subprocess.run([sys.executable, str(ROOT / "ci/examples/check_gru.py"), PROGRAM], cwd=tmp_path,
                            capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.fixture()
def dumped(tmp_path):
    path = tmp_path / "cell.safetensors"
    result = run("dump", CELL, "--seed", 7, "--out", path)
    assert result.returncode == 0, result.stderr
    return path


def change(path, name, function):
    tensors = load_file(path)
    tensors[name] = function(tensors[name].clone())
    save_file(tensors, path)


def test_own_outputs_pass(dumped):
    result = run("check", CELL, "--from", dumped)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("spoil", [
    lambda t: torch.zeros_like(t),
    lambda t: t + 0.01,
    lambda t: t.index_put_((torch.tensor([0]), torch.tensor([0])), torch.tensor(float("nan"))),
    lambda t: t.to(torch.bfloat16).to(torch.float32),
])
def test_wrong_outputs_fail(dumped, spoil):
    change(dumped, "output.output", spoil)
    result = run("check", CELL, "--from", dumped)
    assert result.returncode == 1, result.stdout + result.stderr


def test_wrong_shape_and_dtype_are_named(dumped):
    change(dumped, "input.features", lambda t: t[:, :1].contiguous())
    result = run("check", CELL, "--from", dumped)
    assert result.returncode == 2 and "features" in result.stderr, result.stderr


def test_missing_output_is_named(dumped):
    tensors = load_file(dumped)
    del tensors["output.output"]
    save_file(tensors, dumped)
    result = run("check", CELL, "--from", dumped)
    assert result.returncode == 2 and "output" in result.stderr


@pytest.mark.parametrize("damage, kind", [
    (lambda data: data[:20], "truncated"),
    (lambda data: b"\xff" * 8 + data[8:], ""),
    (lambda data: b"not a safetensors file at all", ""),
])
def test_damaged_files_are_typed_errors(dumped, damage, kind):
    dumped.write_bytes(damage(dumped.read_bytes()))
    result = run("check", CELL, "--from", dumped)
    assert result.returncode == 2 and kind in result.stderr and "twinbench: " in result.stderr


def test_unknown_size_suggests(tmp_path):
    result = run("dump", CELL, "--size", "flow=3", "--out", tmp_path / "x.safetensors")
    assert result.returncode == 2 and "did you mean 'flows'" in result.stderr
    assert not list(tmp_path.iterdir()), "a refused dump leaves nothing behind"


def test_sizes_from_the_command_line(tmp_path):
    path = tmp_path / "sized.safetensors"
    assert run("dump", CELL, "--size", "flows=11", "--out", path).returncode == 0
    assert load_file(path)["output.output"].shape[0] == 11
