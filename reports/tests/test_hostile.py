"""Hostile and broken files end with exit code 2 and a named error: never a pass, and never script in a page."""

from __future__ import annotations

import gzip

import pytest
import synthetic

from twinbench_reports import load


@pytest.mark.parametrize("text, says", [
    ("{\"twinbench\": 1e999}", "beyond every number"), ("{\"twinbench\": NaN}", "not JSON"),
    ("{\"twinbench\": -Infinity}", "not JSON"), ("{\"twinbench\": " + "9" * 5000 + "}", "5000 digits"),
    ("[" * 200_000, "not JSON"), ("{\"a\":" * 100_000, "not JSON"), ("", "not JSON"), ("\x00" * 100, "not JSON"),
    ("{\"twinbench\": {}", "not JSON"), ("{\"a\": 1, \"a\": 2}", "twice"),
    ("[]", ""), ("null", ""), ("\ud800", "")])
def test_what_is_no_record_ends_with_2(tmp_path, cli, capsys, text, says):
    path = tmp_path / "record.json"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    assert cli("gate", path) == 2
    error = capsys.readouterr().err
    assert says in error and "record.json" in error and "a bug in the report tool" not in error


def test_a_file_too_large_to_be_a_record_is_not_read(tmp_path, cli, capsys):
    path = tmp_path / "record.json"
    with path.open("wb") as file:
        file.truncate(load.MOST_BYTES + 1)  # a hole: takes no space
    assert cli("gate", path) == 2 and "bytes" in capsys.readouterr().err


def test_a_packed_record_is_read_and_a_bomb_or_half_of_one_is_not(tmp_path, cli, capsys, monkeypatch, save):
    plain = save(synthetic.full())
    packed = tmp_path / "record.json.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert cli("validate", packed) == cli("validate", plain) == 0
    packed.write_bytes(packed.read_bytes()[:-20])
    assert cli("validate", packed) == 2 and "cut off" in capsys.readouterr().err
    packed.write_bytes(b"\x1f\x8b" + b"\xff" * 100)
    assert cli("validate", packed) == 2 and "not what gzip packs" in capsys.readouterr().err
    monkeypatch.setattr(load, "MOST_BYTES", 100_000)
    packed.write_bytes(gzip.compress(b" " * 1_000_000))
    assert cli("validate", packed) == 2 and "unpacked it has more" in capsys.readouterr().err


def test_a_newer_schema_and_missing_or_extra_fields_are_refused(save, cli, capsys):
    for change in (lambda block: block.update(schema_version="2.0"), lambda block: block.pop("ledger"),
                   lambda block: block["parity"][0].update(surprise=1),
                   lambda block: block["parity"][0].pop("verdict")):
        root = synthetic.full()
        change(root["twinbench"])
        assert cli("gate", save(root)) == 2 and "remedy" in capsys.readouterr().err


@pytest.mark.drawn
def test_markup_in_names_and_reasons_stays_text(save, cli, tmp_path, capsys):
    evil = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>\x1b[31m"
    root = synthetic.full()
    root["twinbench"]["parity"][0].update(verdict="fail", reason=evil)
    root["twinbench"]["scenarios"][0]["summary"] = evil
    path, page = save(synthetic.balance(root)), tmp_path / "page.html"
    assert cli("html", path, "-o", page) == 0
    text = page.read_text()
    assert "<script>alert" not in text and "<img src=x" not in text and "&lt;script&gt;alert(1)" in text
    capsys.readouterr()
    assert cli("gate", path) == 1 and "\x1b[31m" not in capsys.readouterr().out
    assert cli("markdown", path) == 0 and "<script>" not in capsys.readouterr().out


def test_a_run_by_a_clock_that_jumped_is_refused_by_name(save, cli, capsys):
    for utc in ("1970-01-01T00:00:00Z", "2999-12-31T23:59:59Z"):
        root = synthetic.full()
        root["twinbench"]["provenance"]["utc"] = utc
        assert cli("gate", save(root)) == 2
        assert f"provenance.utc: '{utc}' is no time at which" in capsys.readouterr().err
