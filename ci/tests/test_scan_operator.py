"""The operator of sem.selective_scan: values and gradients against a plain loop, gradcheck, opcheck, errors."""
import os
import sys
from pathlib import Path

import pytest
import torch

torch.ops.load_library(os.environ["TWINBENCH_OPERATORS"])
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
from operator_modules import scanned  # noqa: E402

OPERATOR = torch.ops.twinbench.sem_selective_scan.default
NAMES = ("input", "a_raw", "a_phase", "input_projection", "output_projection", "dt_weight", "dt_bias")


def arguments(dtype, batch=2, steps=19, groups=2, width=3, states=5):
    torch.manual_seed(20)
    shapes = ((2, batch, steps, groups, width), (groups, states), (groups, states), (2, states, width),
              (2, width, states), (2, 2 * width), (2,))
    return [(0.5 * torch.randn(*shape, dtype=torch.float64)).to(dtype).requires_grad_() for shape in shapes]


@pytest.mark.parametrize("dtype, tolerance", [(torch.float64, 1e-11), (torch.float32, 2e-5)])
@pytest.mark.parametrize("sizes", [{}, {"steps": 1}, {"groups": 1, "width": 19, "states": 33}])
def test_values_and_gradients_equal_a_plain_loop(dtype, tolerance, sizes):
    given = arguments(dtype, **sizes)
    ours, theirs = OPERATOR(*given)[0], scanned(*given)
    weights = torch.randn_like(theirs)
    gradients = [torch.autograd.grad((result * weights).sum(), given) for result in (ours, theirs)]
    for mine, other in zip((ours, *gradients[0]), (theirs, *gradients[1]), strict=True):
        torch.testing.assert_close(mine, other, rtol=tolerance, atol=tolerance)


def test_gradcheck():
    assert torch.autograd.gradcheck(lambda *given: OPERATOR(*given)[0], arguments(torch.float64, steps=5),
                                    fast_mode=True)


def test_opcheck():
    outcome = torch.library.opcheck(OPERATOR, tuple(arguments(torch.float32, steps=4)), {"chunk": 2})
    assert set(outcome.values()) == {"SUCCESS"}, outcome


@pytest.mark.parametrize("changed", range(len(NAMES)), ids=NAMES)
def test_it_follows_every_change_in_place(changed):
    given = [tensor.detach() for tensor in arguments(torch.float32)]
    before = OPERATOR(*given)[0]
    given[changed].mul_(1.5)
    after = OPERATOR(*given)[0]
    torch.testing.assert_close(after, scanned(*given), rtol=2e-5, atol=2e-5)
    assert not torch.equal(before, after)


@pytest.mark.parametrize("at, change, error", [
    (0, lambda t: t[0], ValueError),
    (6, lambda t: torch.cat([t, t]), ValueError),
    (2, lambda t: 5000 + t, ValueError),
    (3, lambda t: t.half(), TypeError),
    (5, lambda t: t[:, 1:], ValueError),
])
def test_bad_tensors_are_named(at, change, error):
    given = [tensor.detach() for tensor in arguments(torch.float32)]
    given[at] = change(given[at])
    with pytest.raises(error, match=NAMES[at]):
        OPERATOR(*given)
