"""The operators of the flow's step: values and gradients against masks in PyTorch, gradcheck, opcheck, errors."""
import os
import sys
from pathlib import Path

import pytest
import torch

torch.ops.load_library(os.environ["TWINBENCH_OPERATORS"])
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
from operator_modules import flow_step, flow_step_data  # noqa: E402

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


def test_a_sample_that_is_not_there_touches_nothing():
    """A set-up that is kept gets new samples: flows of none move and are counted nowhere."""
    given = [tensor.detach() for tensor in step_data(torch.float32)]
    assert MOVE(*given)[5].sum() == 131
    given[5][7] = 5_000_000
    assert MOVE(*given)[5].sum() == 130
