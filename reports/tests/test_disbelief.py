"""Times that are not believed look so everywhere: page, table, Markdown, verdict file and exit code say the same."""

from __future__ import annotations

import html
import json
import re

import pytest
import synthetic


def planted(word):
    """The realistic record, one speedup of 39.1x, in a session whose null test said `word`."""
    root = synthetic.full()
    row = root["twinbench"]["speedups"][0]
    synthetic.measured(row, 39.1, 0.0312)
    root["twinbench"]["session"]["null_test"]["verdict"] = word
    return synthetic.balance(root)


def outputs(cli, save, capsys, tmp_path, root, *flags):
    """(exit code, word of the verdict file, page without markup, table, Markdown)."""
    path, page, verdict = save(root), tmp_path / "page.html", tmp_path / "verdict.json"
    code = cli("gate", path, "--verdict", verdict, *flags)
    gate = capsys.readouterr().out
    assert cli("html", path, "-o", page, *flags) == 0
    capsys.readouterr()
    texts = [gate]
    for command in ("table", "markdown"):
        assert cli(command, path, *flags) == 0
        texts.append(capsys.readouterr().out)
    plain = html.unescape(re.sub(r"<(style|svg)\b.*?</\1>|<[^>]+>", " ", page.read_text(), flags=re.DOTALL))
    return code, json.loads(verdict.read_text())["verdict"], plain, *texts


@pytest.mark.parametrize("word", ["inconclusive", "slower"])
@pytest.mark.parametrize("flags", [(), ("--timing", "advisory")])
def test_a_failed_null_test_is_seen_everywhere(cli, save, capsys, tmp_path, word, flags):
    code, said, page, gate, table, markdown = outputs(cli, save, capsys, tmp_path, planted(word), *flags)
    assert code == 3 and said == "inconclusive"
    assert "Inconclusive" in page and "nothing is undecided" not in page and "Nothing: no failure" not in page
    for text in (page, gate, table, markdown):
        assert "inconclusive" in text.lower() and f"a twin compared with itself: {word}" in text
    for text in (page, table, markdown):
        claimed = re.sub(r"It read [^]]*\]", "", text)
        assert "39.1" not in claimed and not re.search(r"\bmeets\b", claimed), claimed[:200]
        assert not re.search(r"\bfaster\b *\|", claimed)
    assert "It read 39.1× [38.0, 40.2]" in re.sub(r"\s+", " ", page)
    assert "geometric mean speedup" in page and "no time is believed" in page


def test_a_good_null_test_shows_them(cli, save, capsys, tmp_path):
    code, said, page, _, table, markdown = outputs(cli, save, capsys, tmp_path, planted("same"))
    assert code == 0 and said == "pass"
    assert all("39.1" in text and "meets" in text for text in (page, table, markdown))
    assert "Nothing: no failure and no gap" in page


def test_undecided_times_are_counted_under_a_pass(cli, save, capsys, tmp_path):
    root = planted("same")
    root["twinbench"]["speedups"][1].update(verdict="inconclusive", reason="20 pairs")
    code, _, page, *_ = outputs(cli, save, capsys, tmp_path, root)
    assert code == 0 and "1 time undecided (below)" in page and "nothing is undecided" not in page
