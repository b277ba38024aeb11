"""Merging: rows of one revision and machine come together; everything else is refused."""

from __future__ import annotations

import pytest
import synthetic

from twinbench_reports.errors import ReportError
from twinbench_reports.judge.judge import judge
from twinbench_reports.merge import load_merged, merge_records


@pytest.fixture
def parts(load):
    parity = synthetic.only(synthetic.full(), "parity", "selftest", "modelled")
    bench = synthetic.only(synthetic.full(), "timings", "speedups", "counters", "proofs", "scenarios")
    parity["twinbench"]["engines"] = ["parity", "selftest", "kernels"]
    bench["twinbench"]["engines"] = ["bench", "counters", "scenario"]
    parity["twinbench"]["session"] = None
    return load(synthetic.balance(parity), "a.json"), load(synthetic.balance(bench), "b.json")


def test_parts_make_the_whole(parts, load):
    whole = synthetic.full()["twinbench"]
    merged = load_merged(parts).block
    for section in ("parity", "counters", "speedups", "components", "scenarios", "modelled", "ledger"):
        assert merged[section] == whole[section] or section == "ledger"
    assert merged["ledger"]["planned"] == whole["ledger"]["planned"]
    assert [source["sha256"] for source in merged["merged_from"]] == sorted(record.sha256 for record in parts)
    assert judge(load_merged(parts)).exit_code == 0


def test_the_order_of_the_files_does_not_matter(parts):
    assert load_merged(parts).sha256 == load_merged(parts[::-1]).sha256
    assert merge_records(parts) == merge_records(parts[::-1])


def test_the_same_row_twice_is_refused_unless_the_latest_is_asked_for(load):
    early, late = synthetic.full(), synthetic.failing()
    early["twinbench"]["provenance"]["utc"] = "2026-11-20T00:00:00Z"
    records = [load(late, "late.json"), load(early, "early.json")]
    with pytest.raises(ReportError, match="already, from .*early.json"):
        merge_records(records)
    merged = merge_records(records, latest=True)["twinbench"]
    assert merged["parity"] == late["twinbench"]["parity"]
    assert merged["ledger"]["failed"] == late["twinbench"]["ledger"]["failed"]
    assert merged["ledger"]["planned"] == late["twinbench"]["ledger"]["planned"] + 1  # a session of each run
    assert merged["ledger"]["exit_code"] == 1


@pytest.mark.parametrize("change", [{
    "revision": "other"}, {
        "cpu_model": "other"}, {
            "libtorch": "2.10"}, {
                "gpu": {
                    "name": "H100"}}])
def test_another_revision_machine_or_build_is_refused(load, change):
    other = synthetic.only(synthetic.full(), "parity")
    other["twinbench"]["provenance"].update(change)
    with pytest.raises(ReportError, match="remedy"):
        merge_records([load(synthetic.only(synthetic.full(), "selftest"), "a.json"), load(other, "b.json")])


def test_other_sources_under_one_revision_are_refused(load):
    other = synthetic.only(synthetic.full(), "parity")
    other["twinbench"]["provenance"]["source_hashes"]["sem.scan"] = {"baseline": "x", "optimized": "y", "kernel": None}
    with pytest.raises(ReportError, match="sources of sem.scan differ"):
        merge_records([load(synthetic.only(synthetic.full(), "selftest"), "a.json"), load(other, "b.json")])


def test_boards_of_one_model_merge_on_request(load):
    roots = [synthetic.only(synthetic.full(), section) for section in ("parity", "selftest")]
    for index, root in enumerate(roots):
        root["twinbench"]["provenance"]["gpu"] = {"name": "RTX 5090", "uuid_hash": str(index)}
    records = [load(root, f"{index}.json") for index, root in enumerate(roots)]
    with pytest.raises(ReportError, match="uuid_hash"):
        merge_records(records)
    assert merge_records(records, other_boards=True)


def test_one_bad_null_test_spoils_the_merged_session(load):
    roots = [synthetic.only(synthetic.full(), "parity"), synthetic.only(synthetic.full(), "speedups")]
    roots[0]["twinbench"]["session"]["null_test"].update(verdict="slower", noise_floor=0.05)
    merged = merge_records([load(root, f"{index}.json") for index, root in enumerate(roots)])
    test = merged["twinbench"]["session"]["null_test"]
    assert (test["verdict"], test["noise_floor"], test["pairs"]) == ("slower", 0.05, 120)


def test_a_failed_self_test_of_the_device_timer_survives_the_merge(load):
    spoilt, sound = synthetic.only(synthetic.on_device(), "timings"), synthetic.only(synthetic.on_device(), "speedups")
    sound["twinbench"]["session"]["device"]["flush"].update(verdict="pass", reason="")
    for order in ([spoilt, sound], [sound, spoilt]):
        merged = load_merged([load(root, f"{index}.json") for index, root in enumerate(order)]).block["session"]
        assert merged["device"]["flush"]["verdict"] == "fail"


def test_qualifications_add_up_and_what_they_support_is_computed_anew(load):
    from test_judge import QUALIFIED
    roots = [synthetic.only(synthetic.full(), "parity"), synthetic.only(synthetic.full(), "speedups")]
    for root in roots:
        root["twinbench"]["session"]["qualification"] = dict(QUALIFIED)
    merged = merge_records([load(root, f"{index}.json") for index, root in enumerate(roots)])
    joined = merged["twinbench"]["session"]["qualification"]
    assert (joined["comparisons"], joined["planted"], joined["misses"]) == (1200, 600, 0)
    assert joined["false_rate_at_most"] == pytest.approx(1 - 0.05**(1 / 1200))
    assert joined["power_at_least"] == pytest.approx(0.05**(1 / 600))


def test_parts_of_a_null_run_add_up_to_a_qualified_gate(load):
    """Neither part is enough; together they are, in the record and in the report."""
    from test_judge import QUALIFIED
    from twinbench_reports.judge.timing import qualification_text
    roots = [synthetic.only(synthetic.full(), section) for section in ("parity", "speedups")]
    for root, share in zip(roots, (200, 400)):
        root["twinbench"]["session"]["qualification"] = dict(QUALIFIED, comparisons=share, planted=share // 2)
    texts = [qualification_text(root["twinbench"]) for root in roots]
    assert "lacks 400 of 600 comparisons with itself and 200 of 300 planted ones" in texts[0]
    merged = load_merged([load(root, f"{index}.json") for index, root in enumerate(roots)]).block
    text = qualification_text(merged)
    assert "600 comparisons of a cell with itself, 0 false verdicts (at most 0.50 % at 95 % confidence" in text
    assert "300 with 5 % more work" in text and "finds at least 99.0 %" in text and "lacks" not in text


def test_one_run_counts_once(load):
    from test_judge import QUALIFIED
    roots = [synthetic.only(synthetic.full(), section) for section in ("parity", "speedups")]
    for root in roots:
        root["twinbench"]["session"]["qualification"] = dict(QUALIFIED)
    records = [load(root, f"{index}.json") for index, root in enumerate(roots)]
    with pytest.raises(ReportError, match="is in .*0.json already"):
        merge_records([records[0], load(roots[0], "copy.json")], latest=True)
    merged = load(merge_records(records), "merged.json")
    with pytest.raises(ReportError, match="name each record once"):
        merge_records([merged, records[1]], latest=True)
