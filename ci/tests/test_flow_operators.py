"""The operators of the flow's step: values and gradients against masks in PyTorch, gradcheck, opcheck, errors."""
import os
import sys
from pathlib import Path

import pytest
import torch

torch.ops.load_library(os.environ["TWINBENCH_OPERATORS"])
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
from operator_modules import admission_data, admitted, flow_step, flow_step_data, placed_flows  # noqa: E402

PLACE = torch.ops.twinbench.energy_flow_flow_placement.default
ADMIT = torch.ops.twinbench.energy_flow_spawn_admission.default
MOVE = torch.ops.twinbench.energy_flow_flow_movement.default
NAMES = ("raw", "position", "energy", "next_energy", "age", "sample", "stopped")
OPTIONS = [{}, {"boundary": "kill", "on_stop": "drop"}, {"projection_age": 0}]


def step_data(dtype=torch.float64, flows=131, samples=5):
    torch.manual_seed(20)
    return [t.requires_grad_() if t.is_floating_point() else t for t in flow_step_data(flows, samples, dtype=dtype)]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_step_equals_masks(dtype, options):
    given = step_data(dtype)
    ours, theirs = MOVE(*given, **options), flow_step(*given, **options)
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.dtype == other.dtype
        torch.testing.assert_close(mine, other, rtol=1e-6, atol=1e-6)
    assert all(len(counts.unique()) > 1 for counts in (ours[5], ours[3]))  # flows end in several ways
    weights = [torch.randn_like(result) for result in theirs[:2]]
    gradients = [torch.autograd.grad(result[:2], given[:4], weights) for result in (ours, theirs)]
    for mine, other in zip(*gradients, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_gradcheck_of_a_step(options):
    given = step_data(flows=23, samples=3)
    assert torch.autograd.gradcheck(lambda *floats: MOVE(*floats, *given[4:], **options)[:2], given[:4])


def test_opcheck_of_a_step():
    outcome = torch.library.opcheck(MOVE, tuple(step_data(torch.float32)), {"projection_age": 2})
    assert set(outcome.values()) == {"SUCCESS"}, outcome


@pytest.mark.parametrize("changed", range(7), ids=NAMES)
def test_a_step_follows_every_change_in_place(changed):
    given = [tensor.detach() for tensor in step_data(torch.float32)]
    before = [result.clone() for result in MOVE(*given)]
    flip = {4: lambda t: t.add_(2), 5: lambda t: t.copy_(t.flip(0)), 6: lambda t: t.logical_not_()}
    flip.get(changed, lambda t: t.mul_(1.5))(given[changed])
    after = MOVE(*given)
    for mine, other in zip(after, flow_step(*given), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-6, atol=1e-6)
    assert not all(map(torch.equal, before, after))


@pytest.mark.parametrize("at, change, error", [
    (0, lambda t: t[0], ValueError),
    (1, lambda t: t[:, :2], ValueError),
    (2, lambda t: t.half(), TypeError),
    (4, lambda t: t.long(), TypeError),
    (5, lambda t: t + 5, ValueError),
    (5, lambda t: t - 1, ValueError),
    (6, lambda t: t.int(), TypeError),
])
def test_bad_tensors_of_a_step_are_named(at, change, error):
    given = [tensor.detach() for tensor in step_data(torch.float32, flows=57)]  # no set-up of this size is kept
    given[at] = change(given[at])
    with pytest.raises(error, match=NAMES[at]):
        MOVE(*given)


def test_a_sample_that_is_not_there_is_refused_by_every_call():
    given = [tensor.detach() for tensor in step_data(torch.float32)]
    assert MOVE(*given)[5].sum() == 131
    own = int(given[5][7])
    given[5][7] = 5_000_000
    for _ in range(2):
        with pytest.raises(ValueError, match="sample is '5000000 of flow 7'"):
            MOVE(*given)
    given[5][7] = own
    assert MOVE(*given)[5].sum() == 131


@pytest.mark.parametrize("quota, depth", [(100, 4), (35, 20), (17, 5), (1, 2)])
def test_placement_equals_indexing(quota, depth):
    torch.manual_seed(20)
    surface, key = torch.randn(3, 5, 7, requires_grad=True), torch.tensor([4, 900, 7])
    results = PLACE(surface, key, quota=quota, depth=depth), placed_flows(quota, depth, surface, key)
    for mine, other in zip(*results, strict=True):
        assert mine.dtype == other.dtype and torch.equal(mine, other)
    given = torch.randn_like(results[0][1])
    assert torch.equal(*(torch.autograd.grad(result[1], surface, given)[0] for result in results))


def test_placement_passes_opcheck_and_follows_changes_in_place():
    surface, key = torch.randn(2, 4, 3), torch.tensor([1, 2])
    torch.library.opcheck(PLACE, (surface, key), {"quota": 9, "depth": 6})
    before = PLACE(surface, key, quota=9)[1].clone()
    surface.mul_(0.5)
    key.add_(5)
    energy, uid = PLACE(surface, key, quota=9)[1], PLACE(surface, key, quota=9)[4]
    assert torch.equal(energy, 0.5 * before) and uid[0] == 6 << 32


@pytest.mark.parametrize("own, said", [({"quota": 0}, "quota"), ({"quota": 5, "depth": 1}, "depth")])
def test_a_placement_that_cannot_be_is_named(own, said):
    with pytest.raises(ValueError, match=said):
        PLACE(torch.randn(2, 4, 3), torch.tensor([1, 2]), **own)


def asking(dtype=torch.float64, samples=3, slots=40):
    torch.manual_seed(20)
    given = admission_data(samples, slots, dtype=dtype)
    given[4][0] = slots - 5  # samples differ in their room
    return [t.requires_grad_() if t.is_floating_point() else t for t in given]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_admission_equals_searching_the_sums(dtype):
    given = asking(dtype)
    ours, theirs = ADMIT(*given), admitted(*given)
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.dtype == other.dtype and torch.equal(mine, other)
    assert ours[4].max() > 0 and (ours[2] >= 0).sum() > 20  # some are born, some dropped
    weights = [torch.randn_like(result) for result in theirs[:2]]
    gradients = [torch.autograd.grad(result[:2], given[:2], weights) for result in (ours, theirs)]
    for mine, other in zip(*gradients, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-6, atol=1e-6)


def test_gradcheck_and_opcheck_of_admission():
    given = asking(samples=2, slots=9)
    assert torch.autograd.gradcheck(lambda *floats: ADMIT(*floats, *given[2:])[:2], given[:2])
    outcome = torch.library.opcheck(ADMIT, tuple(asking(torch.float32)))
    assert set(outcome.values()) == {"SUCCESS"}, outcome


@pytest.mark.parametrize("changed", range(5))
def test_admission_follows_every_change_in_place(changed):
    given = [tensor.detach() for tensor in asking(torch.float32)]
    before = [result.clone() for result in ADMIT(*given)]
    change = {2: lambda t: t.copy_(t.flip(0)), 3: lambda t: t.sub_(1).clamp_min_(0), 4: lambda t: t.add_(3)}
    change.get(changed, lambda t: t.mul_(1.5))(given[changed])
    after = ADMIT(*given)
    for mine, other in zip(after, admitted(*given), strict=True):
        assert torch.equal(mine, other)
    assert not all(map(torch.equal, before, after))


@pytest.mark.parametrize("at, change, error, said", [
    (0, lambda t: t[:, :, :2], ValueError, "position"),
    (1, lambda t: t.half(), TypeError, "child_energy"),
    (2, lambda t: t.int(), TypeError, "status"),
    (3, lambda t: t - 1, ValueError, "spawn_count"),
    (3, lambda t: t + 1025, ValueError, "spawn_count"),
    (4, lambda t: t + 40, ValueError, "created"),
])
def test_bad_tensors_of_an_admission_are_named(at, change, error, said):
    given = [tensor.detach() for tensor in asking(torch.float32, slots=43)]  # no set-up of this size is kept
    given[at] = change(given[at])
    with pytest.raises(error, match=said):
        ADMIT(*given)
