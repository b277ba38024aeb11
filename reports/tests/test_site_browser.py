"""The site in headless Chromium: every page in both themes, narrow, printed, by keyboard, and without its script."""

from __future__ import annotations

import re
import urllib.parse
from pathlib import Path

import pytest
import synthetic
from browser import PROGRAM, Browser
from synthetic_history import SLOWER

from twinbench_reports.judge.judge import judge
from twinbench_reports.render.html import html_report
from twinbench_reports.site.compare import changes
from twinbench_reports.site.gather import gather
from twinbench_reports.site.pages import change_text, count_words

CHECKS = (Path(__file__).parent / "page_checks.js").read_text(encoding="utf-8")
ROWS = ("[...document.querySelectorAll('#changes tbody tr')]"
        ".map(row => [...row.cells].map(cell => cell.innerText.trim()))")


@pytest.fixture(scope="module")
def browser():
    assert PROGRAM, "there is no Chromium: ci/setup installs what ci/packages.txt lists"
    one = Browser()
    yield one
    one.close()


def faults(browser, path, **how):
    return browser.open(path, **how) + browser.run(CHECKS)["faults"]


def test_every_page_keeps_the_rules_in_both_themes_and_at_both_widths(site, browser):
    found = {}
    for page in sorted(site.rglob("*.html")):
        for how in ({"width": 1280}, {"width": 360, "dark": True}):
            wrong = faults(browser, page, **how)
            asked = [url for url in browser.requests() if url != page.resolve().as_uri()]
            if wrong or asked:
                found[f"{page.relative_to(site)} {how}"] = wrong + asked
    assert not found


def test_the_single_file_report_keeps_them_too(load, tmp_path, browser):
    record, page = load(synthetic.failing()), tmp_path / "report.html"
    page.write_text(html_report(record, judge(record)), encoding="utf-8")
    for how in ({"width": 1280, "dark": True}, {"width": 360}):
        assert not faults(browser, page, **how)
    assert browser.run("document.scripts.length") == 0


@pytest.mark.parametrize("old, new, says", [
    ("<h2 ", "<h4 ", "a heading leaps"), ('scope="row"', "", "a head of nothing"),
    ("--muted:#59636f", "--muted:#a0a8b0", "contrast"), ('aria-label="Pages"', "", "without a name"),
    ("<caption>", "<caption hidden></caption><p>", "a table without a caption"),
    ("<main id=", '<main style="min-width:2000px" id=', "wider than the window"),
    ("</main>", '<img src="https://example.invalid/x.png"></main>', "Content Security Policy"),
    ("</main>", "<script>alert(1)</script></main>", "Content Security Policy"),
    ("</main>", '<a href="index.html"></a></main>', "without a name"),
    ('tabindex="0"', 'tabindex="3"', "a tab order of its own"),
    ('"use strict";', '"use strict"; throw Error("planted");', "Content Security Policy")])
def test_a_planted_fault_is_found(site, tmp_path, browser, old, new, says):
    text = (site / "machines.html").read_text()
    assert old in text
    page = tmp_path / "page.html"
    page.write_text(text.replace(old, new))
    found = faults(browser, page)
    assert any(says in fault for fault in found) and found, found


def test_without_a_script_nothing_is_lost(site, browser):
    for name in ("index.html", "compare.html", "machines.html", f"components/{SLOWER}.html"):
        assert not faults(browser, site / name, script=False)
        assert browser.run("document.querySelectorAll('input,select:not(#choose select),thead button').length") == 0
    browser.open(site / "compare.html", script=False)
    assert browser.run("document.getElementById('choose').checkVisibility()") is False
    assert len(browser.run(ROWS)) > 5
    assert "--compare BEFORE NOW" in browser.run("document.querySelector('noscript').innerText")


def test_the_keyboard_opens_a_line_and_follows_its_link(site, browser):
    browser.open(site / "index.html", script=False)
    for _ in range(60):
        browser.press("Tab", 9)
        if browser.run("document.activeElement.matches('details.line > summary')"):
            break
    assert browser.run("document.activeElement.parentElement.dataset.name") == SLOWER
    outline = browser.run("getComputedStyle(document.activeElement).outlineWidth")
    assert outline == "2px"
    browser.press("Enter", 13)
    assert browser.run("document.querySelector('details.line').open")
    browser.press("Tab", 9)
    assert browser.run("document.activeElement.getAttribute('href')") == f"components/{SLOWER}.html"
    browser.events.clear()
    browser.press("Enter", 13)
    browser.loaded()
    assert urllib.parse.urlparse(browser.run("location.href")).path.endswith(f"components/{SLOWER}.html")


def test_the_filter_and_the_order_of_the_components(site, browser):
    browser.open(site / "index.html")
    names = "[...document.querySelectorAll('details.line')].filter(line => !line.hidden).map(line => line.dataset.name)"
    worst_first = browser.run(names)
    assert worst_first[0] == SLOWER and len(worst_first) == 3

    def set_value(selector, value, event):
        browser.run(f"(() => {{ const element = document.querySelector({selector!r}); element.value = {value!r}; "
                    f"element.dispatchEvent(new Event({event!r})); }})()")

    set_value("input[type=search]", "SINK host", "input")
    assert browser.run(names) == ["sem.sinkhorn"] and browser.run(
        "document.querySelector('[role=status]').textContent") == "1 of 3"
    set_value("input[type=search]", "", "input")
    for order, wanted in (("name", sorted(worst_first)), ("worst first", worst_first),
                          ("speedup", ["energy_flow.energy_carrier", SLOWER, "sem.sinkhorn"])):
        set_value(".tools select", order, "change")
        assert browser.run(names) == wanted


def test_tables_sort_by_number_and_by_text(site, browser):
    browser.open(site / "compare.html")
    click = "document.querySelectorAll('#changes thead button')[{}].click()"
    browser.run(click.format(3))
    values = [row[3] for row in browser.run(ROWS)]
    sizes = [float(re.match(r"[\d.]+", value.replace(",", ""))[0]) * {"ms": 1e-3, "µs": 1e-6}.get(value.split()[-1], 1)
             for value in values]
    assert sizes == sorted(sizes) and browser.run(
        "document.querySelectorAll('#changes th')[3].getAttribute('aria-sort')") == "ascending"
    browser.run(click.format(1))
    browser.run(click.format(1))
    names = [row[1] for row in browser.run(ROWS)]
    assert names == sorted(names, reverse=True) and len(set(names)) > 5


def test_any_two_runs_are_compared_as_python_compares_them(site, history, browser):
    machine = gather(history).machines[0]
    browser.open(site / "compare.html")
    for before, after in ((13, 14), (0, 14), (14, 0), (3, 3)):
        browser.run("(() => { const [one, other] = document.querySelectorAll('#choose select'); "
                    f"one.value = {before}; other.value = {after}; other.dispatchEvent(new Event('change')); }})()")
        wanted = changes(machine.runs[before], machine.runs[after])
        shown = browser.run(ROWS)
        assert sorted(row[:6] for row in shown) == sorted(
            [row.kind, row.name, row.before, row.after, change_text(row.change), row.interval] for row in wanted)
        assert [row[6].split("\n")[-1].strip("▼◆●□ ") for row in shown] == [row.word for row in wanted]
        assert browser.run("document.getElementById('compared').innerText") == count_words(wanted)
    assert "worse" in count_words(wanted) and any(row.word == "worse" for row in changes(machine.runs[0],
                                                                                         machine.runs[14]))


def test_printed_pages_have_no_controls(site, browser):
    for name in ("index.html", "compare.html"):
        assert not browser.open(site / name, printed=True, width=794)
        assert browser.run("[...document.querySelectorAll('nav, .tools, #choose, .jump')].filter("
                           "element => element.checkVisibility()).length") == 0
        assert browser.run("document.querySelector('h1').checkVisibility()")
