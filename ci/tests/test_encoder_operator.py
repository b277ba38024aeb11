"""The operator of energy_flow.text_encoder: values and gradients against torch's layers, gradcheck, opcheck, errors."""
import os

import pytest
import torch

torch.ops.load_library(os.environ["TWINBENCH_OPERATORS"])
OPERATOR = torch.ops.twinbench.energy_flow_text_encoder.default
LENGTHS = (7, 3, 5)


def arguments(dtype, lengths=LENGTHS, layers=2, heads=2, head_width=4, ff=12, cells=9, vocabulary=17):
    """Named tensors, in the operator's order; None of data is trained."""
    torch.manual_seed(21)
    model, longest = heads * head_width, max(lengths)

    def drawn(*shape):
        return (0.5 * torch.randn(*shape, dtype=torch.float64)).to(dtype).requires_grad_()

    def each(*shape):
        return [drawn(*shape) for _ in range(layers)]

    token = torch.zeros(len(lengths), longest, dtype=torch.int32)
    for row, length in zip(token, lengths, strict=True):
        row[:length] = torch.randint(1, vocabulary, (length,))
    return {
        "embedding": drawn(vocabulary, model), "position": drawn(4 * longest, model),
        "token": token, "length": torch.tensor(lengths, dtype=torch.int32), "sample_key": torch.arange(len(lengths)),
        "qkv_weight": each(3 * model, model), "qkv_bias": each(3 * model),
        "out_weight": each(model, model), "out_bias": each(model), "gain_1": each(model), "shift_1": each(model),
        "ff_in_weight": each(ff, model), "ff_in_bias": each(ff), "ff_out_weight": each(model, ff),
        "ff_out_bias": each(model), "gain_2": each(model), "shift_2": each(model),
        "projection_weight": drawn(model, model), "projection_bias": drawn(model), "gain_last": drawn(model),
        "shift_last": drawn(model), "surface_weight": drawn(cells, model), "surface_bias": drawn(cells),
    }


def trained(given):
    tensors = []
    for value in given.values():
        tensors += [one for one in (value if isinstance(value, list) else [value]) if one.requires_grad]
    return tensors


def ours(given, heads=2, **options):
    return OPERATOR(*given.values(), heads=heads, head_width=given["embedding"].size(1) // heads, **options)


def theirs(given, heads=2):
    """torch's own layers, their parameters bound to the given ones."""
    model, longest = given["embedding"].size(1), given["token"].size(1)
    padding = torch.arange(longest)[None] >= given["length"][:, None]
    x = given["embedding"][given["token"].long()] + given["position"][:longest]
    norm = torch.nn.functional.layer_norm
    for i in range(len(given["qkv_weight"])):
        of = {name: value[i] for name, value in given.items() if isinstance(value, list)}
        mixed, _ = torch.nn.functional.multi_head_attention_forward(
            *[x.transpose(0, 1)] * 3, model, heads, of["qkv_weight"], of["qkv_bias"], None, None, False, 0,
            of["out_weight"], of["out_bias"], key_padding_mask=padding, need_weights=False)
        x = norm(x + mixed.transpose(0, 1), (model,), of["gain_1"], of["shift_1"])
        hidden = torch.nn.functional.gelu(x @ of["ff_in_weight"].T + of["ff_in_bias"])
        x = norm(x + hidden @ of["ff_out_weight"].T + of["ff_out_bias"], (model,), of["gain_2"], of["shift_2"])
    mean = x.masked_fill(padding[..., None], 0).sum(1) / given["length"][:, None]
    projected = torch.nn.functional.gelu(mean @ given["projection_weight"].T + given["projection_bias"])
    normal = norm(projected, (model,), given["gain_last"], given["shift_last"])
    return torch.tanh(normal @ given["surface_weight"].T + given["surface_bias"])


@pytest.mark.parametrize("dtype, tolerance", [(torch.float64, 1e-10), (torch.float32, 5e-5)])
@pytest.mark.parametrize("sizes", [{}, {"lengths": (3,)}, {"layers": 1, "cells": 1}, {"lengths": (70, 3), "ff": 33}])
def test_values_and_gradients_equal_torchs(dtype, tolerance, sizes):
    given = arguments(dtype, **sizes)
    results = ours(given), theirs(given)
    weights = torch.randn_like(results[1])
    gradients = [torch.autograd.grad((result * weights).sum(), trained(given)) for result in results]
    for mine, other in zip((results[0], *gradients[0]), (results[1], *gradients[1]), strict=True):
        torch.testing.assert_close(mine, other, rtol=tolerance, atol=tolerance)


def test_gradcheck():
    given = arguments(torch.float64, lengths=(3, 4), layers=1, ff=3, cells=2, vocabulary=7)

    def called(*changed):
        rest = iter(changed)
        taken = {name: [next(rest) for _ in value] if isinstance(value, list) else next(rest)
                 if value.requires_grad else value for name, value in given.items()}
        return ours(taken, dropout=0.3, seed=5, attempt=2)

    assert torch.autograd.gradcheck(called, trained(given), fast_mode=True)


def test_opcheck():
    given = arguments(torch.float32)
    outcome = torch.library.opcheck(OPERATOR, tuple(given.values()), {"heads": 2, "head_width": 4})
    assert set(outcome.values()) == {"SUCCESS"}, outcome


def test_dropout_drops_its_share_by_sample_and_attempt():
    given = arguments(torch.float32)
    with torch.no_grad():
        plain, dropped = ours(given), ours(given, dropout=0.1, attempt=1)
        assert torch.equal(dropped, ours(given, dropout=0.1, attempt=1))
        assert not torch.equal(dropped, plain) and not torch.equal(dropped, ours(given, dropout=0.1, attempt=2))
        given["sample_key"][1] = 9
        changed = (ours(given, dropout=0.1, attempt=1) != dropped).any(1)
    assert changed.tolist() == [False, True, False]


def test_it_follows_every_change_in_place():
    given = {name: [one.detach() for one in value] if isinstance(value, list) else value.detach()
             for name, value in arguments(torch.float32).items()}
    for name in ("embedding", "surface_bias", "gain_last"):
        before = ours(given).clone()
        given[name].mul_(1.5)
        assert not torch.equal(ours(given), before), name


@pytest.mark.parametrize("name, value", [("length", 8), ("token", 17)])
def test_what_is_no_text_is_refused(name, value):
    given = arguments(torch.float32)
    ours(given)  # what is kept of a call does not hide it
    given[name][0] = value
    with pytest.raises((RuntimeError, ValueError, IndexError), match=name):
        ours(given)
