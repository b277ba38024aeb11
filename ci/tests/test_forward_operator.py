"""The operator of the whole forward pass: values against masks in torch, samples alone and in a batch, opcheck."""
import os
import sys
from pathlib import Path

import pytest
import torch

torch.ops.load_library(os.environ["TWINBENCH_OPERATORS"])
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
from operator_modules import flowed, forward_data  # noqa: E402

OPERATOR = torch.ops.twinbench.energy_flow_flow_forward.default
SIZES = dict(samples=5, embedding=6, height=4, width=5, hidden=12, layers=2, features=7, neuron_width=8, energy_width=6,
             head_width=12)
SETTINGS = [dict(quota=40, max_steps=8, scale=3.0), dict(quota=9, max_steps=6, scale=2.0),
            dict(quota=20, max_steps=9, scale=4.0, projection_age=0, convergence_threshold=0.6, spawn="off",
                 convergence_min_steps=3, convergence_patience=2),
            dict(quota=60, max_steps=7, scale=3.0, most_spawned=3, movement_threshold=0.1, depth=5),
            dict(quota=20, max_steps=0)]


def made(**sizes):
    torch.manual_seed(31)
    return forward_data({**SIZES, **sizes})


@pytest.mark.parametrize("given", SETTINGS, ids=str)
def test_it_equals_masks(given):
    a = made()
    ours, theirs = OPERATOR(**a, **given), flowed(a, **given)
    certain = ours[3] > 1e-4  # no decision that rounding takes
    assert certain.sum() >= 3
    for mine, other in zip(ours, theirs):
        assert mine.dtype == other.dtype
        torch.testing.assert_close(mine[certain], other[certain], rtol=1e-3, atol=1e-4)
    assert (ours[1][:, 0] > 0).all()


def test_a_sample_alone_is_the_sample_in_its_batch():
    a = made()
    together = OPERATOR(**a, quota=40, max_steps=8, scale=3.0, noise=0.05)
    for row in range(5):
        own = a | {name: a[name][row:row + 1] for name in ("embedding", "sample_key")}
        alone = OPERATOR(**own, quota=40, max_steps=8, scale=3.0, noise=0.05)
        assert all(torch.equal(one[0], all_of[row]) for one, all_of in zip(alone, together, strict=True))


def test_noise_is_of_the_sample_key():
    a = made()
    results = [OPERATOR(**(a | dict(sample_key=a["sample_key"] + more)), quota=40, max_steps=8, noise=0.05)[0]
               for more in (0, 0, 1)]
    assert torch.equal(results[0], results[1]) and not torch.equal(results[0], results[2])


def test_opcheck():
    a = made(samples=2)
    outcome = torch.library.opcheck(OPERATOR, (), a | dict(quota=20, max_steps=4))
    assert set(outcome.values()) == {"SUCCESS"}, outcome


def test_it_follows_every_change_in_place():
    a = made()
    given = dict(quota=40, max_steps=6, scale=3.0, spawn="gate", gate_threshold=0.3, noise=0.05)
    before = [result.clone() for result in OPERATOR(**a, **given)]
    for value in a.values():
        for tensor in value if isinstance(value, list) else [value]:
            kept = tensor.clone()
            tensor.mul_(3).add_(1)
            changed = [result.clone() for result in OPERATOR(**a, **given)]
            tensor.copy_(kept)
            assert not all(map(torch.equal, changed, before))
    assert all(map(torch.equal, OPERATOR(**a, **given), before))
