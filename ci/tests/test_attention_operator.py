"""The operator of energy_flow.fused_attention: values and gradients against torch's, gradcheck, opcheck, errors."""
import os

import pytest
import torch

torch.ops.load_library(os.environ["TWINBENCH_OPERATORS"])
OPERATOR = torch.ops.twinbench.energy_flow_fused_attention.default


def arguments(dtype, batch=2, heads=2, queries=5, keys=7, width=4):
    torch.manual_seed(21)
    shapes = [(batch, heads, rows, width) for rows in (queries, keys, keys)]
    padding = torch.zeros(batch, keys, dtype=torch.bool)
    padding[-1, keys // 2 + 1:] = True
    return [torch.randn(*shape, dtype=torch.float64).to(dtype).requires_grad_() for shape in shapes] + [padding]


def attended(query, key, value, padding):
    return torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=~padding[:, None, None, :])


@pytest.mark.parametrize("dtype, tolerance", [(torch.float64, 1e-11), (torch.float32, 2e-5)])
@pytest.mark.parametrize("sizes", [{}, {"keys": 1}, {"queries": 70, "keys": 130, "width": 33},
                                   {"batch": 1, "heads": 1}])
def test_values_and_gradients_equal_torchs(dtype, tolerance, sizes):
    given = arguments(dtype, **sizes)
    ours, theirs = OPERATOR(*given), attended(*given)
    weights = torch.randn_like(theirs)
    gradients = [torch.autograd.grad((result * weights).sum(), given[:3]) for result in (ours, theirs)]
    for mine, other in zip((ours, *gradients[0]), (theirs, *gradients[1]), strict=True):
        torch.testing.assert_close(mine, other, rtol=tolerance, atol=tolerance)


def test_gradcheck():
    *trained, padding = arguments(torch.float64, queries=3, keys=4)
    assert torch.autograd.gradcheck(lambda *given: OPERATOR(*given, padding), trained, fast_mode=True)


def test_opcheck():
    outcome = torch.library.opcheck(OPERATOR, tuple(arguments(torch.float32)), {})
    assert set(outcome.values()) == {"SUCCESS"}, outcome


def test_it_follows_every_change_in_place():
    given = [tensor.detach() for tensor in arguments(torch.float32)]
    for changed in range(3):
        before = OPERATOR(*given).clone()
        given[changed].mul_(1.5)
        assert not torch.equal(OPERATOR(*given), before), changed


def test_no_key_is_refused_by_every_call():
    query, key, value, padding = arguments(torch.float32, queries=11, keys=3)
    none = torch.ones_like(padding)
    for _ in range(2):
        with pytest.raises(ValueError, match="padding"):
            OPERATOR(query, key, value, none)
        assert OPERATOR(query, key, value, padding).isfinite().all()  # leaves a set-up that the next call finds
