"""The page of what cards measured is what their records give; a figure that no record has is seen."""
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "ci"))

import measured_page  # noqa: E402


@pytest.fixture
def page(tmp_path, monkeypatch):
    copy = tmp_path / "measured.md"
    copy.write_text(measured_page.PAGE.read_text())
    monkeypatch.setattr(measured_page, "PAGE", copy)
    return copy


def check(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["measured_page.py", *arguments])
    return measured_page.main()


def test_it_says_what_the_records_say(page, monkeypatch):
    assert check(monkeypatch, "--check") == 0


def test_a_figure_that_no_card_gave_is_seen_and_written_over(page, monkeypatch):
    true = page.read_text()
    row = next(line for line in true.splitlines() if line.startswith("| sem.selective_scan fp32 layer |"))
    page.write_text(true.replace(row, row.replace("368", "398")))
    assert check(monkeypatch, "--check") == 1 and check(monkeypatch) == 0
    assert page.read_text() == true


def test_a_place_that_is_gone_is_named(page, monkeypatch, capsys):
    page.write_text(page.read_text().replace("<!-- model -->", ""))
    assert check(monkeypatch, "--check") == 2 and "has places for" in capsys.readouterr().err
