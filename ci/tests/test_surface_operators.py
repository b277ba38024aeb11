"""The operators of energy_flow.surface_collection (values and gradients, sizes given by name, any order of slots) and
energy_flow.output_collector (values, changes, bad keys)."""
import os
import sys
from pathlib import Path

import pytest
import torch

torch.ops.load_library(os.environ["TWINBENCH_OPERATORS"])
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
from operator_modules import collection_pairs, collector_pairs  # noqa: E402

OPERATOR = torch.ops.twinbench.energy_flow_surface_collection.default
LATTICE = dict(width=7, height=5)
SIZES = dict(LATTICE, batch=3, slots=90)


def pair():
    torch.manual_seed(20)
    return next(iter(collection_pairs(SIZES, {}, "cpu")))


def assert_same(one):
    energy = one.data[0].detach().requires_grad_()
    (ours,), (theirs,) = one.operator(energy, *one.data[1:]), one.module(energy, *one.data[1:])
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=2e-6)
    given = torch.randn_like(ours)
    torch.testing.assert_close(*(torch.autograd.grad(result, energy, given)[0] for result in (ours, theirs)),
                               rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("changed", range(6), ids=("energy", "position", "distance", "age", "status", "forward_id"))
def test_it_follows_every_change_in_place(changed):
    one = pair()
    assert_same(one)
    before = one.operator(*one.data)[0].clone()
    tensor = one.data[changed]
    if tensor.is_floating_point():
        tensor.mul_(0.5)
    else:
        tensor[:, ::2] = 3
    assert_same(one)
    assert not torch.equal(before, one.operator(*one.data)[0])


def test_the_order_of_slots_changes_no_bit():
    one, order = pair(), torch.randperm(SIZES["slots"])
    turned = [tensor.index_select(tensor.dim() - 1, order) for tensor in one.data]
    assert torch.equal(one.operator(*one.data)[0], one.operator(*turned)[0])


def test_opcheck():
    one = pair()
    arguments = (one.data[0].requires_grad_(), *one.data[1:])
    torch.library.opcheck(torch.ops.twinbench.energy_flow_surface_collection.default, arguments, LATTICE)


@pytest.mark.parametrize("lattice, said", [(dict(width=1, height=5), "width"), (dict(width=7, height=-2), "height")])
def test_bad_extents_are_named(lattice, said):
    with pytest.raises(ValueError, match=said):
        OPERATOR(*pair().data, **lattice)


def test_extents_must_be_given():
    with pytest.raises(RuntimeError, match="height"):
        OPERATOR(*pair().data, width=7)


def collector():
    torch.manual_seed(21)
    return next(iter(collector_pairs(dict(batch=5, embedding=37, width=5, height=4, entries=20), {}, "cpu")))


def test_the_collector_follows_every_change_in_place():
    one = collector()
    for change in (lambda: one.data[0].mul_(0.5), lambda: one.data[1].copy_(one.data[1].flip(1)), lambda: None,
                   lambda: one.module.cell_weight.mul_(1.5), lambda: one.module.layers[3].weight.mul_(0.7)):
        change()
        torch.testing.assert_close(one.operator(*one.data)[0], one.module(*one.data)[0], rtol=1e-4, atol=1e-5)


def test_a_row_alone_has_the_same_bits():
    one = collector()
    together = one.operator(*one.data)[0]
    assert torch.equal(together[3:4], one.operator(*(tensor[3:4] for tensor in one.data))[0])


@pytest.mark.parametrize("key", [20, -2, "twice"])
def test_keys_that_are_no_map_are_named(key):
    one = collector()
    one.data[1][2, 7] = one.data[1][2, 8] if key == "twice" else key
    with pytest.raises(ValueError, match="cell"):
        one.operator(*one.data)
