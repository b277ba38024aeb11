"""The share of the rules in parity's time, from a record: what it is, what a limit makes of it, what is no record."""
import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import rule_time  # noqa: E402


def record(folder, **seconds):
    rows = [{"cell": "sem.cayley/baseline/cpu/fp32/tiny", "check": check, "seconds": of}
            for check, of in seconds.items()]
    path = folder / "record.json"
    path.write_text(json.dumps({"twinbench": {"parity": rows}}))
    return str(path)


def test_the_rules_share_is_of_all_other_checks(tmp_path, capsys):
    path = record(tmp_path, oracle=6, gradient=4, threads=2, late=0.5, left_out=99)
    assert rule_time.main([path]) == 0
    assert capsys.readouterr().out.startswith("rules 2.5 s, all else 10.0 s: the rules add 25.0 %")


@pytest.mark.parametrize("most, code", [("0.3", 0), ("0.25", 0), ("0.2", 1)])
def test_a_limit_is_kept_or_not(tmp_path, most, code):
    assert rule_time.main([record(tmp_path, oracle=10, threads=2.5), "--most", most]) == code


def test_every_rule_is_a_check_of_parity():
    names = (Path(__file__).resolve().parents[2] / "ci/coverage.txt").read_text().split("\n")
    assert {f"parity check {rule}" for rule in rule_time.RULES} <= set(names)


def test_what_holds_no_check_is_no_record(tmp_path):
    (tmp_path / "other.json").write_text("{}")
    for path in (record(tmp_path), str(tmp_path / "other.json"), str(tmp_path / "none.json")):
        with pytest.raises(SystemExit) as end:
            rule_time.main([path])
        assert end.value.code not in (0, None)
