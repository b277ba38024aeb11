"""The operator of trainer2.fused_retrieval, which has no gradient: values, set-ups that follow changes, errors."""
import os
import sys
from pathlib import Path

import pytest
import torch

torch.ops.load_library(os.environ["TWINBENCH_OPERATORS"])
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
from operator_modules import retrieval_pairs  # noqa: E402

SIZES = dict(batch=5, tokens=7, capacity=9, width=12, axes=6, planes=4)
NAMES = ("query", "curvature", "token_coordinates", "token_states", "mask", "bank_coordinates", "bank_states", "filled",
         "metric", "theta")


def pair():
    torch.manual_seed(20)
    return next(iter(retrieval_pairs(SIZES, {}, "cpu")))


def assert_same(one):
    for ours, theirs in zip(one.operator(*one.data), one.module(*one.data), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("changed", range(len(NAMES)), ids=NAMES)
def test_it_follows_every_change_in_place(changed):
    one = pair()
    assert_same(one)
    before = one.operator(*one.data)[0].clone()
    tensor = one.data[changed]
    if NAMES[changed] == "mask":
        tensor[:, 0] = 0
    elif NAMES[changed] == "filled":
        tensor.fill_(3)
    else:
        tensor.mul_(1.5)
    assert_same(one)
    assert not torch.equal(before, one.operator(*one.data)[0])


@pytest.mark.parametrize("at, value, said", [(10, 99, "plane_axes"), (7, 10, "filled"), (8, -1.0, "metric")])
def test_bad_input_is_named(at, value, said):
    one = pair()
    one.data[at].fill_(value)
    with pytest.raises(ValueError, match=said):
        one.operator(*one.data)
