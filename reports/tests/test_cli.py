"""The command line end to end: exit codes, written files, suggestions."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree

import pytest
import synthetic

import twinbench_reports.commands
from twinbench_reports.cli import main


def test_a_wrong_date_and_a_wrong_expression_are_named(save, cli, capsys):
    record = save(synthetic.full())
    assert cli("gate", record, "--today", "tomorrow") == 2 and "'tomorrow' is no date" in capsys.readouterr().err
    assert cli("gate", record, "--filter", "(") == 2 and "'(' is not a regular expression" in capsys.readouterr().err


def test_every_exit_code(save, cli, tmp_path):
    assert cli("gate", save(synthetic.full())) == 0
    assert cli("gate", save(synthetic.failing())) == 1
    assert cli("gate", save(synthetic.empty())) == 3
    assert cli("gate", tmp_path / "none.json") == 2
    assert cli("gate") == 2
    assert cli("gate", save(synthetic.full()), "--baseline", tmp_path / "none.json") == 2
    assert cli("gate", save({"twinbench": {}})) == 2
    good = save(synthetic.full(), "before.json")
    assert cli("gate", good, "--baseline", good) == 0
    broken, shorter, silent = synthetic.full(), synthetic.full(), synthetic.full()
    broken["twinbench"]["proofs"][0]["baseline"]["measured"] -= 1
    assert cli("gate", save(broken)) == 1
    del shorter["twinbench"]["parity"][0]
    assert cli("gate", save(shorter), "--baseline", good) == 3
    silent["twinbench"]["session"]["null_test"]["verdict"] = "inconclusive"
    assert cli("gate", save(silent)) == 3


def test_a_bug_of_the_tool_is_not_a_regression(save, cli, monkeypatch, capsys):
    def broken(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr(twinbench_reports.commands, "judge", broken)
    assert cli("gate", save(synthetic.full())) == 2
    assert "nothing was judged" in capsys.readouterr().err


def test_the_verdict_file_agrees_with_the_exit_code(save, cli, tmp_path):
    for build, code in ((synthetic.full, 0), (synthetic.failing, 1), (synthetic.empty, 3)):
        assert cli("gate", save(build()), "--verdict", tmp_path / "out" / "verdict.json") == code
        verdict = json.loads((tmp_path / "out" / "verdict.json").read_text())
        assert verdict["exit_code"] == code and len(verdict["record"]["sha256"]) == 64


def test_what_is_written_takes_no_other_file_s_place(save, cli, tmp_path, capsys):
    record = save(synthetic.full())
    content, link = record.read_bytes(), tmp_path / "link.json"
    link.symlink_to(record)
    for words in (["gate", "--verdict", record], ["gate", "--junit", link], ["gate", "--summary", record],
                  ["html", "-o", record], ["markdown", "-o", link], ["merge", "-o", record],
                  ["gate", "--baseline", link, "--verdict", link]):
        assert cli(words[0], record, *words[1:]) == 2 and record.read_bytes() == content, words
        assert "it is the same file as" in capsys.readouterr().err
    assert cli("gate", record, "--verdict", tmp_path / "one", "--junit", tmp_path / "one") == 2
    assert "the same file as --verdict" in capsys.readouterr().err and not (tmp_path / "one").exists()


def test_junit_names_every_failure(save, cli, tmp_path):
    root = synthetic.failing()
    root["twinbench"]["parity"][8]["reason"] = "a < b & \x1b[31m ]]> \ud7ff"
    cli("gate", save(root), "--junit", tmp_path / "j.xml")
    suites = ElementTree.parse(tmp_path / "j.xml").getroot()
    assert int(suites.get("failures")) == 4 and int(suites.get("skipped")) >= 1
    assert {suite.get("name") for suite in suites} >= {"parity", "proofs", "timings", "selftest", "speedups"}
    cli("gate", save(synthetic.empty()), "--junit", tmp_path / "j.xml")
    assert int(ElementTree.parse(tmp_path / "j.xml").getroot().get("errors")) == 1


def test_annotations_are_few_and_escaped(save, cli, capsys):
    root = synthetic.full()
    for row in root["twinbench"]["parity"][:30]:
        row.update(verdict="fail", reason="bad\n::error::planted 100%")
    assert cli("gate", save(synthetic.balance(root)), "--annotations", "--quiet") == 1
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("::")]
    assert len(lines) == 9 and "22 more" in lines[-1] and "bad ::error::planted 100%25" in lines[0]


def test_printed_findings_cannot_start_a_workflow_command(save, cli, capsys):
    root = synthetic.full()
    root["twinbench"]["parity"][0].update(verdict="fail", reason="bad\n::error::planted\x1b[2J")
    cli("gate", save(root))
    out = capsys.readouterr().out
    assert "\n::error" not in out and "\x1b" not in out


def test_the_end_of_the_output_says_what_failed(save, cli, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    root = synthetic.full()
    for row in root["twinbench"]["speedups"]:
        row.update(verdict="inconclusive", reason="the time budget is spent")
    for row in root["twinbench"]["parity"][:5]:
        row.update(verdict="fail", reason="planted")
    pins = tmp_path / "pins.json"
    pins.write_text(json.dumps({f"no.such_{index}/optimized/cpu/fp32/train": {"dispatches": 5} for index in range(9)}))
    assert cli("gate", save(synthetic.balance(root)), "--pins", pins) == 1
    lines = capsys.readouterr().out.splitlines()
    kinds = [line.split(" ")[0] for line in lines if not line.startswith(" ")]
    assert lines[-1].startswith("fail: ") and kinds[-6:-1] == ["fail"] * 5
    assert kinds.count("missing") == 3 and "    and 6 more like it (all of them: --verdict FILE)" in lines


def test_the_summary_is_appended_to_github_s_file_only(save, cli, tmp_path, monkeypatch):
    path = tmp_path / "summary.md"
    for _ in range(2):
        cli("gate", save(synthetic.full()), "--summary", path)
    once = path.read_text()
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(path))
    cli("gate", save(synthetic.full()), "--summary", path)
    assert path.read_text() == once * 2


@pytest.mark.parametrize("arguments, hint", [(("gaet", "x"), "'gate'"),
                                             (("gate", "x", "--baselin", "y"), "'--baseline'"),
                                             (("html", "x", "--figure=d"), "'--figures'"),
                                             (("zzz", ), "there are: gate, history")])
def test_mistyped_words_get_a_suggestion(cli, capsys, arguments, hint):
    assert cli(*arguments) == 2
    assert hint in capsys.readouterr().err


@pytest.mark.parametrize("name", ["gate", "html", "markdown", "table", "ledger", "history", "merge", "validate"])
def test_every_subcommand_has_help(cli, capsys, name):
    assert cli(name, "--help") == 0
    assert "exit codes" in capsys.readouterr().out


def pinned(**counters):
    """Pins of every component, of sem.scan these."""
    names = [name for name, *_ in synthetic.COMPONENTS]
    return {synthetic.cell(name, "optimized"): counters if name == "sem.scan" else {} for name in names}


def test_pins_and_waivers_files_are_checked(save, cli, tmp_path):
    def pin(counters):
        return json.dumps(pinned(**counters))

    pins = tmp_path / "pins.json"
    for text, code in (("{}", 2), ('{"a": {"b": 1.5}}', 2), ('{"a": 1}', 2), ("[]", 2), (pin({
            "layout": {
                "veiws": 0}}), 2), (pin({
            "dispatches": 5,
            "by_name": {
                "aten::add": 5},
            "forward_calls_by_name": {
                "a": 1}}), 0), (pin({"dispatches": 4}), 1), (pin({"by_name": {
                    "aten::add": 4}}), 1), (pin({"by_name": {
                        "aten::mul": 1}}), 1)):
        pins.write_text(text)
        assert cli("gate", save(synthetic.full()), "--pins", pins) == code
    assert cli("gate", save(synthetic.full()), "--waivers", tmp_path / "none.toml") == 2


def test_only_pins_that_match_the_filter_are_missed(save, cli, tmp_path):
    pins = tmp_path / "pins.json"
    pins.write_text(
        json.dumps({**pinned(dispatches=5), "no.such/optimized/cpu/fp32/train": {"dispatches": 5}}))
    for pattern, code in ((".", 3), ("^sem[.]scan/", 0), ("^no[.]such/", 3), ("^nothing$", 2), ("(", 2)):
        assert cli("gate", save(synthetic.full()), "--pins", pins, "--filter", pattern) == code


def test_merge_validate_table_ledger_history(save, cli, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    one, two = save(synthetic.only(synthetic.full(), "parity"),
                    "one.json"), save(synthetic.only(synthetic.full(), "timings", "speedups"), "two.json")
    folder = tmp_path / "merged"
    assert cli("merge", one, two, "-o", folder / "all.json") == 0
    assert cli("validate", folder / "all.json", one) == 0
    assert cli("table", folder / "all.json", "--width", 80) == 0
    assert cli("ledger", folder / "all.json", "--markdown") == 0
    (folder / "no_record.json").write_text("{}")
    assert cli("history", folder, "--filter", "sem.scan.*optimized", "--svg", folder / "h.svg") == 0
    captured = capsys.readouterr()
    assert "18.0×" in captured.out and "left out" in captured.err and "\x1b" not in captured.out
    assert (folder / "h.svg").read_text().startswith("<svg")
    assert cli("history", folder, "--filter", "nothing.like.this") == 3
    assert cli("history", folder, "--filter", "(") == 2
    assert cli("history", tmp_path / "none") == 2
    assert cli("keep", save(synthetic.full(), "whole.json"), "--to", tmp_path / "kept", "--times-only") == 0
    capsys.readouterr()
    assert cli("history", tmp_path / "kept") == 3 and "`trends` and `site`" in capsys.readouterr().err


def test_main_reads_its_own_arguments(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["twinbench-report", "--version"])
    with pytest.raises(SystemExit):
        main()
    assert "twinbench-report" in capsys.readouterr().out
