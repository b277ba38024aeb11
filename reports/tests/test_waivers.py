"""Waivers: they excuse up to their limit and until their expiry, and no more."""

from __future__ import annotations

import datetime

import pytest
import synthetic

from twinbench_reports.errors import ReportError
from twinbench_reports.judge.judge import judge
from twinbench_reports.judge.waivers import load_waivers

TODAY = datetime.date(2026, 11, 21)
WAIVER = '''
[[waiver]]
match = "energy_flow.simple_neuron/*[oracle]"
kind = "parity"
limit = 3.0
reason = "rounding of the old kernel"
owner = "ada"
expiry = 2026-12-24
'''


def judged(load, tmp_path, text):
    root = synthetic.full()
    root["twinbench"]["parity"][8].update(verdict="fail", reason="too far off")
    root["twinbench"]["parity"][8]["outputs"][0]["worst_ratio"] = 2.4
    assert root["twinbench"]["parity"][8]["cell"].startswith("energy_flow.simple_neuron/")
    path = tmp_path / "waivers.toml"
    path.write_text(text)
    return judge(load(synthetic.balance(root)), waivers=load_waivers(path), today=TODAY)


def test_a_waiver_excuses_and_stays_visible(load, tmp_path):
    verdict = judged(load, tmp_path, WAIVER)
    assert verdict.exit_code == 0 and len(verdict.waived) == 1 and "ada" in verdict.waived[0].waiver
    assert "1 waived" in verdict.headline


@pytest.mark.parametrize("old, new, word", [("2026-12-24", "2026-11-20", "expired"),
                                            ("2026-12-24", "2027-06-01", "more than 90 days"),
                                            ("limit = 3.0", "limit = 2.0", "excuses nothing"),
                                            ('kind = "parity"', 'kind = "speedups"', "excuses nothing"),
                                            ("simple_neuron", "no_such", "excuses nothing")])
def test_a_waiver_that_does_not_cover_is_reported(load, tmp_path, old, new, word):
    verdict = judged(load, tmp_path, WAIVER.replace(old, new))
    assert verdict.exit_code == 1 and not verdict.waived
    assert any(finding.kind == "waiver" and word in finding.message for finding in verdict.findings)


@pytest.mark.parametrize("old, new", [('owner = "ada"', ""), ("limit = 3.0", 'limit = "3"'),
                                      ("limit = 3.0", "limit = true"), ("expiry = 2026-12-24", 'expiry = "soon"'),
                                      ('reason = "rounding of the old kernel"', 'reason = ""'),
                                      ("[[waiver]]", "[[waiver"), ("limit", "color = 1\nlimit")])
def test_a_waiver_without_limit_reason_owner_or_expiry_is_refused(tmp_path, old, new):
    path = tmp_path / "waivers.toml"
    path.write_text(WAIVER.replace(old, new))
    with pytest.raises(ReportError):
        load_waivers(path)


def test_a_crash_has_no_size_and_cannot_be_waived(load, tmp_path):
    root = synthetic.full()
    root["twinbench"]["parity"][8].update(verdict="error", reason="signal 11")
    path = tmp_path / "waivers.toml"
    path.write_text(WAIVER.replace("limit = 3.0", "limit = 1e30"))
    assert judge(load(root), waivers=load_waivers(path), today=TODAY).exit_code == 1
