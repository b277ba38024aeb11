"""The operator of energy_flow.flow_compaction: values against torch.nonzero and a stable sort, list and moved rows bit
for bit, changes of every tensor, errors."""
import os
import sys
from pathlib import Path

import pytest
import torch

torch.ops.load_library(os.environ["TWINBENCH_OPERATORS"])
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
from operator_modules import compacted, compaction_data  # noqa: E402

OPERATOR = torch.ops.twinbench.energy_flow_flow_compaction.default
SIZES = dict(samples=7, slots=300, flows=180, children=20, layers=2, hidden=12)
NAMES = ("list", "extent", "status", "stopped", "sample", "local_id", "age", "position", "energy", "hidden", "parent",
         "child_local_id", "child_position", "child_energy", "gate", "candidate")


def made(**sizes):
    torch.manual_seed(22)
    return compaction_data({**SIZES, **sizes})


def assert_same(ours, theirs):
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.dtype == other.dtype
        torch.testing.assert_close(mine, other, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("flows", [0, 3, 90, 400])
def test_it_equals_nonzero_and_a_stable_sort(flows):
    given = made(flows=flows)
    for access in ("automatic", "index_list", "moved", "dense"):
        ours = OPERATOR(*given, row_access=access)
        assert_same(ours, compacted(*given))
    assert ours[7][0] > 20 or flows == 0


@pytest.mark.parametrize("access", ["automatic", "moved", "dense"])
def test_neither_way_to_the_rows_changes_a_bit(access):
    given = made(flows=90)
    for one, other in zip(OPERATOR(*given, row_access="index_list"), OPERATOR(*given, row_access=access), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("changed", range(16), ids=NAMES)
def test_it_follows_every_change_in_place(changed):
    given = made()
    before = [result.clone() for result in OPERATOR(*given)]
    listed = int(given[1][0])
    old = given[0][:listed].long()
    keys = [(key, key[old].clone()) for key in (given[NAMES.index("sample")], given[NAMES.index("local_id")])]
    change = {0: lambda t: t[:listed].copy_(t[:listed].roll(1)), 1: lambda t: t[:1].sub_(3), 2: lambda t: t.mul_(2),
              3: lambda t: t.logical_not_(), 4: lambda t: t.fill_(0), 10: lambda t: t[5:].fill_(-1)}
    change.get(changed, lambda t: t.mul_(3))(given[changed])
    if changed == 0:  # by sample and local id, as before
        for key, in_order in keys:
            key[given[0][:listed].long()] = in_order
    if NAMES[changed] == "local_id":  # children's stay above
        given[NAMES.index("child_local_id")].mul_(3)
    after = OPERATOR(*given)
    assert_same(after, compacted(*given))
    assert not all(map(torch.equal, before, after))


def test_opcheck():
    outcome = torch.library.opcheck(OPERATOR, tuple(made()), {"step": 3})
    assert set(outcome.values()) == {"SUCCESS"}, outcome


@pytest.mark.parametrize("at, change, error", [
    (0, lambda t: t + 1000, ValueError),
    (0, lambda t: t.long(), TypeError),
    (1, lambda t: t * 0 - 1, ValueError),
    (2, lambda t: t.int(), TypeError),
    (4, lambda t: t + 7, ValueError),
    (9, lambda t: t[0], ValueError),
    (10, lambda t: t.flip(0), ValueError),
    (10, lambda t: t.index_fill(0, torch.tensor([0]), -1), ValueError),
    (10, lambda t: t.index_fill(0, torch.tensor([5]), -1), ValueError),
    (11, lambda t: t * 0, ValueError),
    (11, lambda t: t.flip(0), ValueError),
    (14, lambda t: t.double(), TypeError),
])
def test_bad_tensors_are_named(at, change, error):
    given = made()
    for _ in range(2):  # where no set-up is kept, and where one of the same shapes is
        wrong = list(given)
        wrong[at] = change(given[at])
        with pytest.raises(error, match=NAMES[at]):
            OPERATOR(*wrong)
        OPERATOR(*given)
