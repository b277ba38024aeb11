"""The backward pass of the whole flow beside a model of it in PyTorch, differentiated by central differences with every
distance held (decision 16); and the bytes on the two tapes."""
import os
import subprocess

import pytest
import torch
from safetensors.torch import load_file
from torch.nn.functional import gelu, layer_norm, linear

PROGRAM = os.environ["TWINBENCH_PROGRAM"]
STEP, TOLERANCE = 1e-6, 3e-5
SCALE, PROJECTION_AGE, HEIGHT, WIDTH = 2, 2, 6, 6  # of the case shared_cells


def dumped(folder, cell, *sizes):
    path = folder / "cell.safetensors"
    subprocess.run([PROGRAM, "dump", cell, *sizes, "--out", str(path)], check=True, capture_output=True, timeout=300)
    return load_file(path)


def cell_of(layer, x, h, p):
    gates_in = linear(x, p[f"weight_input_{layer}"], p[f"bias_input_{layer}"]).chunk(3, 1)
    gates_hidden = linear(h, p[f"weight_hidden_{layer}"], p[f"bias_hidden_{layer}"]).chunk(3, 1)
    reset, update = torch.sigmoid(gates_in[0] + gates_hidden[0]), torch.sigmoid(gates_in[1] + gates_hidden[1])
    candidate = torch.tanh(gates_in[2] + reset * gates_hidden[2])
    return (1 - update) * candidate + update * h


def neuron(position, energy, p):
    x = torch.cat([linear(position, p["coordinate_weight"], p["coordinate_bias"]), energy], 1)
    for layer in (1, 2):
        x = linear(x, p[f"neuron_weight_{layer}"], p[f"neuron_bias_{layer}"])
        x = gelu(layer_norm(x, x.shape[1:], p[f"neuron_gain_{layer}"], p[f"neuron_shift_{layer}"]))
    return linear(x, p["neuron_weight_3"], p["neuron_bias_3"])


def head(kind, x, p):
    hidden = gelu(linear(x, p[f"{kind}_hidden_weight"], p[f"{kind}_hidden_bias"]))
    return linear(hidden, p[f"{kind}_out_weight"], p[f"{kind}_out_bias"])


def surface(p, held=None):
    """One sample without noise and spawning, every flow projected after PROJECTION_AGE steps at the latest. Returns the
    surface and the distances of the flows, which are those of `held` where it is given."""
    cells = torch.arange(HEIGHT * WIDTH)
    x, y = (cells % WIDTH).double(), (cells // WIDTH).double()
    position = torch.stack([2 * x / (WIDTH - 1) - 1, 2 * y / (HEIGHT - 1) - 1, torch.zeros_like(x)], 1)
    energy = p["initial_energy"][0].reshape(-1, 1)
    layers = [name for name in p if name.startswith("weight_input_")]
    hidden = [p["initial_energy"].new_zeros(len(cells), p["weight_hidden_0"].shape[1]) for _ in layers]
    live, done = torch.ones(len(cells), dtype=torch.bool), []
    for age in range(1, PROJECTION_AGE + 1):
        x = torch.cat([neuron(position, energy, p), energy], 1)
        for layer in range(len(layers)):
            x = hidden[layer] = cell_of(layer, x, hidden[layer], p)
        energy = torch.tanh(head("energy", x, p))
        raw = position + (SCALE * head("displacement", x, p)).clamp(-0.5, 0.5)
        folded = (2 * raw[:, :2].clamp(-1, 1) - raw[:, :2]).clamp(-1, 1)
        ends = live & ((raw[:, 2].abs() >= 1) | (age == PROJECTION_AGE))
        distance = (1 - raw[:, 2].abs()).clamp_min(0)
        done += [(int(f), folded[f], energy[f, 0], distance[f], age) for f in ends.nonzero()[:, 0]]
        live, position = live & ~ends, torch.cat([folded, raw[:, 2:]], 1)
    assert not live.any()
    distances = {flow: distance for flow, _, _, distance, _ in done}
    groups = {}
    for flow, place, value, distance, age in done:
        extent = torch.tensor([WIDTH - 1, HEIGHT - 1])
        column, row = torch.round((place + 1) * 0.5 * extent).long().tolist()
        weight = value.abs() / (1 + (held[flow] if held else distance)) * (1 + 0.1 * age)
        groups.setdefault(row * WIDTH + column, []).append((weight, value))
    out = torch.zeros(HEIGHT * WIDTH, dtype=torch.float64)
    for cell, members in groups.items():
        weights, values = (torch.stack(part) for part in zip(*members, strict=True))
        out[cell] = (torch.softmax(weights, 0) * values).sum()
    return out, distances, max(len(members) for members in groups.values())


def differences(hold, folder, only=""):
    """Central differences of the loss by every trained parameter, and what the baseline says."""
    tensors = dumped(folder, "energy_flow.flow_backward/baseline/cpu/fp32/shared_cells")
    p = {name[6:]: value.double() for name, value in tensors.items() if name.startswith("input.")}
    grad = p.pop("grad_surface")[0]
    _, distances, most = surface(p)
    assert most > 1 and max(distances.values()) > 0.1, "flows that were projected share a cell"
    found = {}
    for name in [name[12:] for name in tensors if name.startswith("output.grad_" + only)]:
        values = p[name].view(-1)
        by_difference = torch.zeros_like(values)
        for i in range(len(values)):
            loss = []
            for step in (STEP, -STEP):
                before = values[i].item()
                values[i] = before + step
                loss.append((surface(p, distances if hold else None)[0] * grad).sum())
                values[i] = before
            by_difference[i] = (loss[0] - loss[1]) / (2 * STEP)
        found[name] = (by_difference.view_as(p[name]), tensors["output.grad_" + name].double())
    return found


def error(pair):
    return ((pair[0] - pair[1]).norm() / pair[0].norm().clamp_min(1e-9)).item()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("flow")


def test_gradients_are_those_of_a_model_whose_distances_are_held(folder):
    found = differences(True, folder)
    assert len(found) > 20
    for name, pair in found.items():
        assert error(pair) < TOLERANCE, (name, error(pair))


def test_free_distances_would_show(folder):
    found = differences(False, folder, only="displacement_out_bias")
    assert error(found["displacement_out_bias"]) > 20 * TOLERANCE


def work(folder, variant, case, *sizes):
    names = ("steps", "tests", "placed", "children", "collected", "cells", "held", "left", "peak", "computed")
    tensors = dumped(folder, f"energy_flow.flow_backward/{variant}/cpu/fp32/{case}", *sizes)
    return dict(zip(names, tensors["output.work"].tolist(), strict=True))


def documented_floats(hidden, layers):  # C34's, at the documents' neuron and head widths
    return 594 + (7 * layers + 1) * hidden


@pytest.mark.parametrize("sizes", [(), ("--size", "samples=1"), ("--size", "hidden=48", "--size", "energy_width=24"),
                                   ("--size", "layers=3")])
def test_the_baseline_tape_holds_what_is_documented(folder, sizes):
    told = work(folder, "baseline", "small_lattice", *sizes)
    given = {"hidden": 32, "layers": 2} | {k: int(v) for k, v in (s.split("=") for s in sizes if "=" in s)}
    documented = 4 * told["steps"] * documented_floats(given["hidden"], given["layers"])
    assert told["steps"] > 50 and abs(told["held"] / documented - 1) < 0.01 and told["left"] == 0


def test_states_alone_are_a_small_part_of_it(folder):
    whole = work(folder, "baseline", "unit")
    states, everything = (work(folder, "optimized", case) for case in ("unit", "unit_kept"))
    assert states["held"] <= 0.15 * whole["held"] < everything["held"] < whole["held"]
    assert states["left"] == everything["left"] == 0
