"""The campaign of injected faults: it sees what is no named status, and its interposer makes the system refuse."""
import json
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "ci"))
import injections  # noqa: E402

WHOLE = json.dumps({"twinbench": {"ledger": {"exit_code": 0}}}).encode()


@pytest.fixture(scope="module")
def campaign():
    return injections.Campaign(os.environ["TWINBENCH_PROGRAM"], 1)


@pytest.mark.parametrize("result, broken", [
    ((0, "", [], WHOLE), ""), ((2, "input_output: x", [], None), ""), ((4, "timeout", [], WHOLE), ""),
    ((-11, "", [], None), "signal 11"), ((None, "", [], None), "hung"), ((0, "", [], None), "without a record"),
    ((0, "", [], WHOLE[:-3]), "half a record"), ((0, "", [], WHOLE.replace(b"0", b"3")), "another code"),
    ((2, "", [], None), "silent"), ((1, "x", ["record.json.partial-x"], None), "left"),
    ((134, "x", [], None), "code 134")])
def test_what_is_no_named_status_is_seen(campaign, result, broken):
    campaign.broken.clear()
    campaign.judge("parity", "fault", "1", result)
    assert bool(campaign.broken) == bool(broken) and broken in "".join(campaign.broken)


def test_the_interposer_lets_one_call_fail(campaign):
    counts = campaign.calls("dump")
    assert counts["rename"] == 1 and counts["write"] > 5 and counts["open"] > 0
    code, said, left, record = campaign.run("dump", "rename:1:5")
    assert (code, left, record) == (2, [], None) and "Input/output error" in said
    assert campaign.run("dump", "rename:2:5")[0] == 0


def test_the_first_places_and_some_of_the_rest_are_taken(campaign):
    assert campaign.places(3, 10) == [1, 2, 3] and campaign.places(0, 10) == []
    places = campaign.places(1000, 10)
    assert len(places) == 10 and places[:5] == [1, 2, 3, 4, 5] and places[-1] > 10
