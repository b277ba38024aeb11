"""dump and check: another implementation passes, a wrong one fails, and bad files are typed errors."""
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import warm
from safetensors import safe_open
from safetensors.torch import load_file, save_file

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = os.environ["TWINBENCH_PROGRAM"]
CELL = "energy_flow.energy_carrier/optimized/cpu/fp32/tiny"


def run(*arguments):
    return warm.run(*arguments, timeout=120)


def test_the_documented_example_passes(tmp_path):
    result = subprocess.run([sys.executable, str(ROOT / "ci/examples/check_gru.py"), PROGRAM], cwd=tmp_path,
                            capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr
    assert not list(tmp_path.iterdir())  # it leaves nothing where it was started


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


@pytest.mark.parametrize("component", warm.components())
def test_what_is_dumped_is_judged(component, tmp_path):
    """Of every component, at a seed whose texts have other lengths than the first one's."""
    cells = run("list", "--cells", "--filter", f"^{component}/optimized/cpu/fp32/tiny$").stdout.split()
    for cell in cells:
        assert run("dump", cell, "--seed", 9, "--out", tmp_path / "cell").returncode == 0
        judged = run("check", cell, "--from", tmp_path / "cell")
        assert judged.returncode == 0, judged.stdout + judged.stderr


def test_inputs_that_tell_nothing_apart_are_inconclusive(dumped):
    """NaN everywhere is what any answer gives to such inputs."""
    tensors = {name: torch.zeros_like(tensor) for name, tensor in load_file(dumped).items()}
    with safe_open(dumped, "pt") as file:
        metadata = {key: value for key, value in file.metadata().items() if key != "seed"}
    save_file(tensors, dumped, metadata)
    result = run("check", CELL, "--from", dumped)
    assert result.returncode == 3 and "other inputs" in result.stdout, result.stdout + result.stderr


def test_nothing_but_nan_is_inconclusive(tmp_path):
    """Whole numbers beside it, such as the lengths of texts, do not make it a pass."""
    cell, path = "energy_flow.dataset_file/optimized/cpu/fp32/zeros", tmp_path / "cell.safetensors"
    assert run("dump", cell, "--out", path).returncode == 0
    all_nan = lambda tensors: {name: torch.full_like(tensor, float("nan")) if tensor.is_floating_point() else tensor
                               for name, tensor in tensors.items()}
    rewrite(path, all_nan, seed=None)
    result = run("check", cell, "--from", path)
    assert result.returncode == 3 and "no finite floating number" in result.stdout, result.stdout + result.stderr


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


def rewrite(path, tensors=lambda t: t, **metadata):
    """The file with other metadata (None takes an entry out) and other tensors."""
    with safe_open(path, "pt") as file:
        merged = file.metadata() | metadata
    save_file(tensors(load_file(path)), path, {key: value for key, value in merged.items() if value is not None})


@pytest.mark.parametrize("asked, named", [
    ("energy_flow.energy_carrier/optimized/cpu/fp32/odd", "case"),
    ("energy_flow.energy_carrier/optimized/cpu/bf16/tiny", "dtype"),
    ("energy_flow.simple_neuron/optimized/cpu/fp32/tiny", "component"),
])
def test_a_file_of_another_cell_is_refused_by_name(dumped, asked, named):
    result = run("check", asked, "--from", dumped)
    assert result.returncode == 2 and f"metadata cell: {named}" in result.stderr and "check it as" in result.stderr
    assert run("check", CELL.replace("optimized", "baseline"), "--from", dumped).returncode == 0, "no matter whose"


def test_a_seed_promises_its_inputs(dumped):
    rewrite(dumped, seed="8")
    result = run("check", CELL, "--from", dumped)
    assert result.returncode == 2 and "metadata seed" in result.stderr and "take 'seed' out" in result.stderr
    rewrite(dumped, seed="8x")
    assert "whole number" in run("check", CELL, "--from", dumped).stderr
    rewrite(dumped, seed=None)
    assert run("check", CELL, "--from", dumped).returncode == 0


def test_zeros_and_nothing_are_no_pass(dumped, tmp_path):
    rewrite(dumped, lambda t: t | {"output.next_hidden": torch.zeros_like(t["output.next_hidden"])})
    assert run("check", CELL, "--from", dumped).returncode == 1
    empty = tmp_path / "empty.safetensors"
    cell = CELL.replace("tiny", "empty")
    assert run("dump", cell, "--out", empty).returncode == 0
    result = run("check", cell, "--from", empty)
    assert result.returncode == 2 and "no elements" in result.stderr


@pytest.mark.parametrize("metadata", [{}, {"sizes": None, "cell": None, "seed": None}])
def test_backward_cells_at_another_number_of_layers(tmp_path, metadata):
    cell, path = CELL.replace("tiny", "backward_odd"), tmp_path / "three.safetensors"
    assert run("dump", cell, "--size", "layers=3", "--size", "hidden=5", "--out", path).returncode == 0
    rewrite(path, **metadata)
    result = run("check", cell, "--from", path)
    assert result.returncode == 0 and "grad_weight_hidden_2" in result.stdout, result.stdout + result.stderr
    rewrite(path, lambda t: t | {"output.grad_weight_hidden_2": t["output.grad_weight_hidden_2"] * 1.01})
    assert run("check", cell, "--from", path).returncode == 1
