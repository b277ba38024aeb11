"""The operator of the adaptive stop, which no floating tensor goes into: values against masks, opcheck, errors."""
import os
import sys
from pathlib import Path

import pytest
import torch

torch.ops.load_library(os.environ["TWINBENCH_OPERATORS"])
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
from adaptive_stop import stop_data, stopped  # noqa: E402

STOP = torch.ops.twinbench.energy_flow_adaptive_stop.default
OPTIONS = [{}, {"convergence": False}, {"threshold": 0.5, "min_steps": 1}, {"patience": 1}, {"min_steps": 99}]


@pytest.mark.parametrize("decisions, samples", [(51, 16), (9, 4), (1, 3), (20, 0), (33, 70)])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_it_equals_masks(decisions, samples, options):
    given = stop_data(decisions, samples)
    ours = STOP(*given, **options)
    for mine, other in zip(ours[:5], stopped(*given, **options), strict=True):
        assert mine.dtype == other.dtype and torch.equal(mine, other)
    if samples:
        assert ours[5] == ours[0].max() and ours[6] == 0  # the host knows when the last sample has finished


def test_the_data_end_samples_for_every_reason():
    assert set(STOP(*stop_data(51, 70))[1].tolist()) >= {1, 2, 3, 4}


def test_opcheck():
    outcome = torch.library.opcheck(STOP, tuple(stop_data(21, 9)), {"patience": 5})
    assert set(outcome.values()) == {"SUCCESS"}, outcome


@pytest.mark.parametrize("changed", range(3), ids=["completed", "created", "active"])
def test_it_follows_every_change_in_place(changed):
    given = stop_data(51, 16)
    before = [result.clone() for result in STOP(*given)]
    given[changed].mul_(2) if changed == 1 else given[changed].div_(2, rounding_mode="floor")
    after = STOP(*given)
    assert all(map(torch.equal, after[:5], stopped(*given))) and not all(map(torch.equal, before, after))


@pytest.mark.parametrize("own, said", [({"patience": 0}, "patience"), ({"threshold": 1.5}, "threshold"),
                                       ({"min_steps": 0}, "min_steps")])
def test_a_rule_that_cannot_be_is_named(own, said):
    with pytest.raises(ValueError, match=said):
        STOP(*stop_data(9, 4), **own)


def test_counts_below_nothing_and_of_other_shapes_are_named():
    completed, created, active = stop_data(9, 4)
    with pytest.raises(ValueError, match="active"):
        STOP(completed, created, active - 100)
    with pytest.raises(ValueError, match="created"):
        STOP(completed, created[1:], active)
    with pytest.raises(TypeError, match="completed"):
        STOP(completed.long(), created, active)
