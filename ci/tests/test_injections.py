"""The campaign of injected faults: it sees what is no named status, and its interposer makes the system refuse."""
import json
import os
import resource
import signal
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "ci"))
import injections  # noqa: E402
from injection_outcome import Result, judged  # noqa: E402

ROWS = ("parity", "counters", "proofs", "selftest", "ceilings", "scenarios", "modelled", "timelines")


def record(code=0, planned=2, passed=2, errors=0, **rows):
    ledger = {"exit_code": code, "planned": planned, "passed": passed, "failed": 0, "errors": errors, "skipped": 0,
              "inconclusive": 0}
    block = {name: [] for name in ROWS} | {"ledger": ledger, "provenance": {"gpu_reason": "no_driver: x"}} | rows
    return json.dumps({"twinbench": block}).encode()


WHOLE = Result(0, "done", "", [], record())


@pytest.mark.parametrize("result, broken", [
    (WHOLE, ""), (Result(2, "", "input_output: x"), ""), (Result(4, "timeout", "", [], record(4, 2, 1, 1)), ""),
    (Result(-11, "", "input_output: x"), "signal 11"), (Result(None, "", ""), "hung"),
    (Result(0, "done", ""), "without its"), (Result(0, "done", "", [], WHOLE.file[:-3]), "half a record"),
    (Result(0, "done", "", [], record(3)), "another code"),
    (Result(2, "", ""), "no word"), (Result(2, "something", "else"), "no word"),
    (Result(2, "", "input_output: x", ["record.json.partial-x"]), "left"),
    (Result(127, "", "x: error while loading shared libraries: libc10.so: failed to map segment"), ""),
    (Result(127, "", "x: error while loading shared libraries: libc10.so: no such file"), "code 127"),
    (Result(134, "", "aborted"), "code 134"),
    (Result(1, "", "input_output: x"), "1, which is"),
    (Result(2, "", "out_of_memory: x", [], record(4, 2, 1, 0)), "1 of 2"),
    (Result(4, "", "timeout", [], record(4, 1, 0, 1)), "1 of 2"),
    (Result(0, "done", "", [], record(parity=[{"cell": "a", "check": "b", "verdict": "pass"}])), "silent")])
def test_what_is_no_named_status_is_seen(result, broken):
    what, wrong = judged("parity", result, WHOLE)
    assert bool(wrong) == bool(broken) and broken in wrong, (what, wrong)


def test_the_rules_of_some_faults():
    assert judged("parity", Result(1, "", "crashed", [], record(1, 2, 1, 1)), WHOLE, of_work=True)[1] == ""
    assert judged("parity", Result(-15, "", ""), WHOLE, may_die_of=(15,))[1] == ""
    assert judged("parity", Result(3, "", "interrupted", [], record(3, 2, 1)), WHOLE, ended=True)[1] == ""
    less = [{"cell": "a", "verdict": "pass", "device_activity": None, "device_activity_reason": ""}]
    more = [less[0] | {"device_activity": {"kernels": 6}}]
    seen = Result(0, "done", "", [], record(counters=more))
    assert "silent" in judged("traced", Result(0, "done", "", [], record(counters=less)), seen, of_driver=True)[1]
    named = [less[0] | {"device_activity_reason": "cupti_failed: x"}]
    assert judged("traced", Result(0, "done", "", [], record(counters=named)), seen, of_driver=True) == (
        "reported without what was refused, named", "")


@pytest.fixture(scope="module")
def campaign():
    made = injections.Campaign(os.environ["TWINBENCH_PROGRAM"], 1)
    made.begin(["dump"])
    return made


def test_the_interposer_lets_one_call_fail(campaign):
    counts = campaign.calls("dump")
    assert counts["rename"] == 1 and counts["write"] > 2 and counts["open"] > 0 and counts["alloc"] > 10_000
    result = campaign.run("dump", "rename:1:5")
    assert (result.code, result.left, result.file) == (2, [], None) and "Input/output error" in result.complained
    assert campaign.run("dump", "rename:2:5").code == 0
    # A few places: one whose memory is asked for without throwing (a sort's buffer) is done without, and all is well.
    results = [campaign.run("dump", f"alloc:{counts['alloc'] // 2 + place}:12") for place in range(5)]
    refused = [result for result in results if result.code != 0]
    assert len(refused) >= 3
    for result in refused:
        assert result.code == 2 and "out_of_memory" in result.complained and result.file is None
    assert all(result.file == campaign.undisturbed["dump"].file for result in results if result not in refused)


@pytest.mark.parametrize("engine, call", [("dump", "mkostemp"), ("dump", "rename"), ("parity", "mkostemp")])
def test_a_signal_between_making_a_file_and_noting_it_leaves_nothing(campaign, engine, call):
    if engine not in campaign.undisturbed:
        campaign.begin([engine])
    result = campaign.run(engine, f"{call}:1:{-signal.SIGTERM}")
    assert result.left == [], result.complained
    if engine == "dump":
        assert (result.code, result.file) == (-signal.SIGTERM, None), result.complained
    else:  # what measures is not ended by the signal: it says so and keeps what it has, a record that names the rest
        assert result.code == 3 and result.complained.startswith("interrupted: "), result.complained
        assert judged(engine, result, campaign.undisturbed[engine], ended=True)[1] == "", result.complained


def test_memory_refused_inside_a_destructor_is_named(campaign):
    """nlohmann's destructor takes memory: some of these places are its own, where nothing can be caught."""
    campaign.begin(["list"])
    count = campaign.calls("list")["alloc"]
    for place in range(count * 9 // 10, count, count // 80):
        result = campaign.run("list", f"alloc:{place}:12")
        assert judged("list", result, campaign.undisturbed["list"])[1] == "", (place, result.complained)


def test_memory_refused_before_main_is_named(campaign):
    """LibTorch's constructors take 60 MiB: refused, they throw where nothing can be caught, and one crashes."""
    if "list" not in campaign.undisturbed:
        campaign.begin(["list"])
    came_to = set()
    for mebibytes in (8, *range(13, 29), 40, 56, 60, 64):
        result = campaign.run("list", memory=(resource.RLIMIT_DATA, (mebibytes << 20, mebibytes << 20)))
        what, wrong = judged("list", result, campaign.undisturbed["list"])
        assert not wrong, (mebibytes, wrong, result.complained)
        came_to.add(what)
    assert "refused, named" in came_to, came_to


def test_sources_that_find_no_room_in_memory_are_no_other_count(campaign):
    """std::getline ends quietly where memory is refused: kernels then had another modelled time, and failed for it."""
    campaign.begin(["kernels"])
    for mebibytes in range(96, 136, 8):
        result = campaign.run("kernels", memory=(resource.RLIMIT_DATA, (mebibytes << 20, mebibytes << 20)))
        what, wrong = judged("kernels", result, campaign.undisturbed["kernels"])
        assert not wrong, (mebibytes, what, wrong, result.complained)


def test_a_thread_that_is_refused_is_named(campaign):
    """LibTorch would wait for it until the time limit."""
    campaign.begin(["parity"])
    for place in (1, 2):
        result = campaign.run("parity", f"pthread_create:{place}:11", more=("--threads", "2"))
        assert result.code == 2 and "ulimit -u" in result.said, (result.said, result.complained)
        assert judged("parity", result, campaign.undisturbed["parity"])[1] == ""


def test_every_call_of_every_fake_driver_is_there(campaign):
    plan = list(campaign.of_drivers())
    functions = {detail for _, _, detail, _, _ in plan}
    assert {"cuInit", "cuCtxSynchronize", "cuptiSubscribe", "cuptiGetTimestamp", "nvmlInit_v2",
            "nvmlDeviceGetPowerUsage"} <= functions and len(functions) > 40
    assert {fault.split(" ")[-1] for _, fault, _, _, _ in plan} == {"refused", "crashes", "hangs"}


def test_the_first_places_and_some_of_the_rest_are_taken(campaign):
    assert campaign.places(3, 10) == [1, 2, 3] and campaign.places(0, 10) == []
    places = campaign.places(1000, 10)
    assert len(places) == 10 and places[:5] == [1, 2, 3, 4, 5] and places[-1] > 10
