"""The operator of sem.cayley: values and gradients beside torch's, set-ups that follow parameters, errors."""
import os
import sys
from pathlib import Path

import pytest
import torch

torch.ops.load_library(os.environ["TWINBENCH_OPERATORS"])
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
from operator_modules import cayley_pairs, ring_graph  # noqa: E402

SIZES = dict(rows=9, dim=16, edges=112, scales=3)
OPERATOR = torch.ops.twinbench.sem_cayley.default


def pair():
    torch.manual_seed(21)
    return next(iter(cayley_pairs(SIZES, {}, "cpu")))


def arguments(dtype):
    nodes, starts = ring_graph(6, 33, 3)
    torch.manual_seed(22)
    trained = [torch.randn(*shape, dtype=dtype, requires_grad=True) for shape in ((2, 4, 6), (6,), (33,), (3,))]
    return [*trained, nodes, starts]


def assert_same(one):
    (ours,), (theirs,) = one.operator(*one.data), one.module(*one.data)
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
    upstream = torch.randn_like(theirs)
    for mine, other in zip(torch.autograd.grad(ours, one.parameters, upstream),
                           torch.autograd.grad(theirs, one.parameters, upstream), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-4)


def test_it_follows_every_parameter_that_is_trained():
    one = pair()
    assert_same(one)
    before = one.operator(*one.data)[0].detach().clone()
    for parameter in one.parameters:  # the unitary matrix is built anew: one that is stale would be seen
        with torch.no_grad():
            parameter.add_(0.3 * torch.randn_like(parameter))
        assert_same(one)
        after = one.operator(*one.data)[0].detach().clone()
        assert not torch.equal(before, after)
        before = after


def test_gradients_are_those_of_differences():
    """gradcheck writes past the version counter, by which set-ups know a parameter: each call gets copies."""

    def x(*given):
        return OPERATOR(*(tensor.clone() for tensor in given), dt=0.4)[0]

    assert torch.autograd.gradcheck(x, arguments(torch.float64))


def test_it_is_a_proper_operator():
    torch.library.opcheck(OPERATOR, arguments(torch.float32))


def test_rows_that_are_not_finite_are_counted():
    given = arguments(torch.float32)
    with torch.no_grad():
        given[0][0, 2, 1] = torch.nan
    x, nonfinite, _ = OPERATOR(*given)
    assert nonfinite.item() == 1 and torch.isfinite(x).all(2).all(0).tolist() == [True, True, False, True]
    with torch.no_grad():
        given[2][5] = torch.inf
    x, nonfinite, _ = OPERATOR(*given)
    assert nonfinite.item() == 4 and x.isnan().all()


@pytest.mark.parametrize("change, said", [
    (lambda given: given[4].fill_(6), "nodes"),
    (lambda given: given[5].fill_(1), "starts"),
    (lambda given: given.__setitem__(3, torch.zeros(2)), "starts"),
])
def test_bad_input_is_named(change, said):
    given = arguments(torch.float32)
    change(given)
    with pytest.raises(ValueError, match=said):
        OPERATOR(*given)


def test_a_step_that_is_too_large_is_refused():
    with pytest.raises(ValueError, match="dt"):
        OPERATOR(*arguments(torch.float32), dt=2000.0)
