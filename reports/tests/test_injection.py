"""Nothing that a stranger's file says is obeyed by a terminal, a log or a page; and files are written whole."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time

import pytest
import synthetic

from twinbench_reports import filters
from twinbench_reports.errors import ReportError
from twinbench_reports.files import write_file
from twinbench_reports.judge.waivers import load_waivers
from twinbench_reports.text import plain

EVIL = "\x1b[31mred\x1b]0;title\x07\n::error file=a::planted\r##[error]planted\u202ereversed\x9b31m"
COMMANDS = ("gate", "table", "markdown", "ledger", "merge", "history", "validate", "html")


def poisoned():
    """A record that says EVIL in every text that the schema leaves free."""
    root = synthetic.full()
    block = root["twinbench"]
    provenance = block["provenance"]
    for key, value in provenance.items():
        if isinstance(value, str) and key not in ("utc", "revision"):
            provenance[key] = EVIL
    for section in ("parity", "counters", "proofs", "timings", "scenarios", "selftest"):
        block[section][0].update(verdict="fail", reason=EVIL)
    for row in block["components"]:
        for claim in row.get("claims", []):
            claim.update(text=EVIL, figure=EVIL, document=EVIL)
    block["scenarios"][0]["summary"] = EVIL
    synthetic.balance(root)["twinbench"]["ledger"]["skip_reasons"] = {EVIL: 3}
    return root


def harmless(text):
    lines = text.splitlines()
    return (all(char.isprintable() or char == "\n" for char in text) and "##[" not in text
            and not any(line.lstrip().startswith("::") for line in lines))


@pytest.mark.parametrize("command", COMMANDS)
def test_no_text_of_a_record_is_obeyed(command, save, cli, tmp_path, capsys):
    path = save(poisoned())
    more = {"merge": ("-o", tmp_path / "merged.json"), "html": ("-o", tmp_path / "page.html")}.get(command, ())
    cli(command, path.parent if command == "history" else path, *more)
    out, err = capsys.readouterr()
    assert harmless(out) and harmless(err)
    assert "a bug in the report tool" not in err
    if command == "ledger":
        assert cli(command, path, "--markdown") == 0 and harmless(capsys.readouterr().out)
    if command == "html":
        assert harmless((tmp_path / "page.html").read_text())


def test_no_text_of_a_kept_record_is_obeyed(save, cli, tmp_path, capsys):
    kept, site = tmp_path / "kept", tmp_path / "site"
    assert cli("keep", save(poisoned()), "--to", kept, "--revision", EVIL, "--machine", EVIL) == 0
    assert cli("trends", kept) == 0 and cli("site", kept, "-o", site) == 0
    for command in (("trends", kept), ("history", tmp_path), ("gate", tmp_path / "record.json"),
                    ("table", tmp_path / "record.json")):
        cli(*command, "--filter", EVIL)
        cli(*command, "--" + EVIL)
    out, err = capsys.readouterr()
    assert harmless(out) and harmless(err) and "a bug in the report tool" not in err
    pages = [path.read_text() for path in site.rglob("*") if path.suffix in (".html", ".js", ".json")]
    assert len(pages) > 3 and all(map(harmless, pages))


@pytest.mark.parametrize("command", COMMANDS)
def test_a_name_of_a_file_that_is_no_text_is_shown(command, save, cli, tmp_path, capsys):
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "r\udcff.json"
    save(synthetic.full()).rename(path)
    more = {"merge": ("-o", tmp_path / "merged.json"), "html": ("-o", tmp_path / "page.html"),
            "gate": ("--verdict", tmp_path / "v.json", "--junit", tmp_path / "j.xml", "--summary", tmp_path / "s.md")}
    assert cli(command, folder if command == "history" else path, *more.get(command, ())) in (0, 3)
    assert "a bug in the report tool" not in capsys.readouterr().err


@pytest.mark.parametrize("words, named", [
    (["keep", "RECORD", "--to", "KEPT", "--machine", "a\udcff"], "--machine"),
    (["trends", "KEPT", "--filter", "\udcff"], "--filter"),
    (["site", "KEPT", "-o", "SITE", "--compare", "\udcff", "b"], "--compare"),
    (["table", "RECORD", "--width", "9" * 10_000], "--width"),
    (["site", "KEPT", "-o", "SITE", "--jobs", "-1"], "--jobs")])
def test_arguments_that_are_no_text_or_too_long_are_named(words, named, save, cli, tmp_path, capsys):
    places = {"RECORD": save(synthetic.full()), "KEPT": tmp_path / "kept", "SITE": tmp_path / "site"}
    assert cli(*(places.get(word, word) for word in words)) == 2
    error = capsys.readouterr().err
    assert named in error and len(error) < 3000 and "a bug in the report tool" not in error, error[-300:]


def test_names_of_files_and_errors_are_not_obeyed(tmp_path, cli, capsys):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "\x1b[31m\n::error::planted.json").write_text("{}")
    assert cli("history", folder) == 3
    assert harmless(capsys.readouterr().err)
    (folder / "a.json").write_text(json.dumps({EVIL: 1}) + "}")
    assert cli("gate", folder / "a.json") == 2 and harmless(capsys.readouterr().err)


def test_plain_text_stays_as_it_is_and_commands_do_not():
    for text in ("a [b] c: d", "at::add", "aten::mm x 3", "1 %", "ü → ×"):
        assert plain(text) == text
    assert plain("a\tb\nc") == "a b c" and plain("\x1b[0m") == "\ufffd[0m" and plain("\ud800") == "\ufffd"
    assert not plain("  ::error::x").lstrip().startswith("::") and "##[" not in plain("x ##[error]y")


@pytest.mark.parametrize("text, says", [
    (json.dumps({"twinbench": "\ud800"}), "surrogate"), (json.dumps({"\udfff": 1}), "surrogate"),
    ("[" * 100 + "]" * 100, "deep"), ("{\"twinbench\": " + "7" * 10_000 + "}", "10000 digits")])
@pytest.mark.parametrize("command", ["gate", "table", "ledger", "merge", "validate", "keep", "markdown", "html"])
def test_numbers_and_texts_beyond_reason_are_named_in_every_command(command, text, says, tmp_path, cli, capsys):
    path = tmp_path / "record.json"
    path.write_text(text)
    more = {"merge": ("-o", tmp_path / "m"), "html": ("-o", tmp_path / "h"), "keep": ("--to", tmp_path / "k")}
    assert cli(command, path, *more.get(command, ())) == 2
    error = capsys.readouterr().err
    assert says in error and "record.json" in error and "bug in the report tool" not in error


GOOD = 'match = "*"\nkind = "parity"\nlimit = 2\nreason = "r"\nowner = "o"\nexpiry = 2030-01-01\n'


@pytest.mark.parametrize("text, says", [
    ("a = " + "[" * 5000 + "]" * 5000, "not TOML"), ("a = " + "1" * 10_000, "not TOML"),
    ("[[waivers]]\n" + GOOD, "unknown table 'waivers'"), ("[waiver]\n" + GOOD, "list of tables"),
    ("waiver = 3", "list of tables"), ("waiver = [3]", "list of tables"),
    ("x = 1\n[[waiver]]\n" + GOOD, "unknown table"),
    ("[[waiver]]\n" + GOOD.replace("= 2\n", "= inf\n"), "limit"),
    ("[[waiver]]\n" + GOOD.replace("= 2\n", "= nan\n"), "limit"),
    ("[[waiver]]\n" + GOOD.replace("= 2\n", "= -1\n"), "limit"),
    ("[[waiver]]\n" + GOOD.replace("= 2\n", "= 1" + "0" * 4000 + "\n"), "limit"),
    ("[[waiver]]\n" + GOOD.replace("2030-01-01", "2030-01-01T00:00:00"), "expiry")])
def test_wrong_waivers_are_named(tmp_path, text, says):
    path = tmp_path / "waivers.toml"
    path.write_text(text)
    with pytest.raises(ReportError, match=says):
        load_waivers(path)
    path.write_text("[[waiver]]\n" + GOOD)
    assert load_waivers(path)[0].limit == 2


def test_a_row_given_twice_and_a_wrong_exit_code_are_refused(save, cli, capsys):
    root = synthetic.full()
    root["twinbench"]["counters"].append(dict(root["twinbench"]["counters"][1]))
    assert cli("gate", save(root)) == 2 and "2 times" in capsys.readouterr().err
    for code in (1, 2, 3):
        root = synthetic.full()
        root["twinbench"]["ledger"]["exit_code"] = code
        assert cli("gate", save(root)) == 2 and f"exit code is {code}" in capsys.readouterr().err
    root = synthetic.full()
    root["twinbench"]["ledger"].update(failed=1, exit_code=0)
    assert cli("gate", save(root)) == 2


def test_a_fifo_is_no_record(tmp_path, cli, capsys):
    os.mkfifo(tmp_path / "fifo")
    for command in (("gate", tmp_path / "fifo"), ("gate", "/dev/zero")):
        assert cli(*command) == 2 and "no regular file" in capsys.readouterr().err


@pytest.mark.parametrize("pattern", ["(" * 60_000 + ")" * 60_000, "a" * 120_000, "(" * 4000, "a{99999999999}"])
def test_patterns_that_are_no_expressions_are_refused(pattern, save, cli, tmp_path, capsys):
    save(synthetic.full())
    assert cli("history", tmp_path, "--filter", pattern) == 2
    error = capsys.readouterr().err
    assert "--filter" in error and len(error) < 2000


def test_a_pattern_that_tries_for_ever_is_ended(monkeypatch):
    monkeypatch.setattr(filters, "MOST_SECONDS", 0.3)
    began = time.monotonic()
    with pytest.raises(ReportError, match="repetitions"):
        filters.chosen("(a+)+$", ["a" * 64 + "!"])
    assert time.monotonic() - began < 5
    assert filters.chosen("a/b", ["x", "a/b/c"]) == ["a/b/c"]


def test_files_appear_whole_or_not_at_all(tmp_path, monkeypatch):
    path, link = tmp_path / "report.html", tmp_path / "link"
    write_file(path, "first")
    path.chmod(0o640)
    link.symlink_to(path)
    write_file(link, "second")
    assert link.is_symlink() and path.read_text() == "second" and stat.S_IMODE(path.stat().st_mode) == 0o640
    os.mkfifo(tmp_path / "fifo")
    for refused in (tmp_path, tmp_path / "fifo", "/dev/null"):
        with pytest.raises(ReportError, match="no regular file"):
            write_file(tmp_path / refused, "third")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ReportError, match="No space left"):
        write_file(path, "third")
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        write_file(path, "fourth")
    monkeypatch.undo()
    made = os.open
    monkeypatch.setattr(os, "open", lambda *how: (made(*how), (_ for _ in ()).throw(KeyboardInterrupt)))
    with pytest.raises(KeyboardInterrupt):
        write_file(path, "fifth")
    monkeypatch.undo()
    assert path.read_text() == "second" and {entry.name for entry in tmp_path.iterdir()} == {"report.html", "link",
                                                                                             "fifo"}


def test_a_report_that_cannot_be_made_leaves_the_old_one(save, cli, tmp_path, capsys, monkeypatch):
    page = tmp_path / "page.html"
    page.write_text("the old one")
    from twinbench_reports.render import html
    monkeypatch.setattr(html, "html_report", lambda *_: (_ for _ in ()).throw(ValueError("planted")))
    assert cli("html", save(synthetic.full()), "-o", page) == 2 and page.read_text() == "the old one"
    capsys.readouterr()


TOOL = [sys.executable, "-m", "twinbench_reports"]


def test_output_that_nobody_gets_is_an_error(save):
    path = save(synthetic.full())
    with open("/dev/full", "w") as out:
        result = subprocess.run([*TOOL, "table", path], stdout=out, stderr=subprocess.PIPE, text=True)
    assert result.returncode == 2 and "No space left" in result.stderr and "Traceback" not in result.stderr
    result = subprocess.run(["bash", "-c", '"$@" >&-', "bash", *TOOL, "table", path], stderr=subprocess.PIPE, text=True)
    assert result.returncode == 2 and "standard output" in result.stderr and "Traceback" not in result.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interruption_is_said_and_leaves_nothing(number, tmp_path):
    waiting = ("import os, sys, time\nfrom twinbench_reports import cli, commands, files\n"
               "os.fsync = lambda _: (print('writing', flush=True), time.sleep(60))\n"
               "commands.validate = lambda _: files.write_file(files.Path(sys.argv[2]), 'x')\n"
               "sys.exit(cli.main(sys.argv[1:]))")
    out = tmp_path / "out"
    process = subprocess.Popen([sys.executable, "-c", waiting, "validate", out], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "writing\n"
    process.send_signal(number)
    _, error = process.communicate(timeout=20)
    assert process.returncode == 2 and "interrupted" in error and not list(tmp_path.iterdir())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_the_callers_handlers_of_signals_are_left_as_they_were(number, save, cli):
    assert signal.getsignal(number) is signal.SIG_DFL
    cli("table", save(synthetic.full()))
    assert signal.getsignal(number) is signal.SIG_DFL


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["gate", "--help"]])
def test_help_that_does_not_arrive_is_no_success(words):
    with open("/dev/full", "w") as full:
        result = subprocess.run([sys.executable, "-m", "twinbench_reports", *words], stdout=full, text=True,
                                stderr=subprocess.PIPE)
    assert result.returncode == 2 and "No space left" in result.stderr and "Traceback" not in result.stderr
