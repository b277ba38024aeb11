"""The judge's error rates keep their bounds: quick sizes here; TWINBENCH_FULL_SIMULATIONS=1 runs those of the docs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from simulations import __main__ as simulations  # noqa: E402
from simulations import gate  # noqa: E402
from twinbench_reports.statistics import looks  # noqa: E402

FULL = bool(os.environ.get("TWINBENCH_FULL_SIMULATIONS"))


def test_every_rate_is_within_its_bound(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["simulations"] + ["--full"] * FULL)
    code = simulations.main()
    shown = capsys.readouterr()
    assert code == 0, shown.out
    assert shown.out.count("| gaussian |") == 8 and "every rate within its bound" in shown.err


def test_a_rule_without_the_fresh_run_and_with_a_loose_budget_is_caught(monkeypatch, capsys):
    """The bounds can fail: one look at p <= 0.05 and no effect floor is what many gates do."""
    loose = looks.Rule(limit=0.001, looks=(10,), alpha=0.05, confirm_alpha=0.5)
    rates = gate.run("gaussian", 0.02, 0.0, 2000, loose)
    assert rates.failed > simulations.MOST_FALSE_FAILS * rates.trials * 10
    table = simulations.Table()
    monkeypatch.setattr(simulations, "run", lambda *arguments: rates)
    simulations.gate_tables(table, 2000, 2000)
    assert not table.good and "beyond its bound" in capsys.readouterr().out


def test_an_order_without_balance_is_biased():
    bias, _ = gate.order_bias(0.05, 0.01, 1000, "sequential")
    assert bias > 0.02
