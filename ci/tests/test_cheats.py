"""Every cheat that was asked for names what catches it, which is there; the page shows all that is planted."""
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "ci"))
import cheats  # noqa: E402

ASKED = json.loads((ROOT / "ci/cheats.json").read_text())
FAULTS = json.loads((ROOT / "ci/mutations.json").read_text())
FACTS = (ROOT / "ci/coverage.txt").read_text().splitlines()
TWINS = {words[1]: words[2] == "caught" for words in map(str.split, FACTS) if words[0] == "selftest"}


def there() -> set[str]:
    return {f"mutation {fault['name']}" for fault in FAULTS} | {f"selftest {name}" for name in TWINS} | {
        fact for fact in FACTS if fact.startswith(("gtest ", "pytest "))}


def test_each_that_was_asked_for_is_caught_by_something_that_is_there():
    assert {one["point"] for one in ASKED} == set(range(1, 9)) and len(ASKED) >= 58
    assert all(one["by"] for one in ASKED)
    assert not {by for one in ASKED for by in one["by"]} - there()
    assert len({one["asked"] for one in ASKED}) == len(ASKED)
    assert sum(one.get("before") == "accepted" and bool(cheats.twins_of(one)) for one in ASKED) == 11


def test_there_are_enough_of_both_kinds():
    assert sum(TWINS.values()) >= 45 and len(TWINS) - sum(TWINS.values()) >= 25


def test_the_page_shows_every_twin_and_every_fault():
    text = (ROOT / "reports/cheats.md").read_text()
    words = {*"12345678", "point", "twin", "control", "fault", "cheat"}
    shown = set(re.findall(r"^\| (\w+) \|", text, re.MULTILINE)) - words
    wanted = set(TWINS) | {fault["name"] for fault in FAULTS}
    assert shown == wanted, "write it anew: twinbench selftest --out R; ci/cheats.py R --write reports/cheats.md"
    assert f"{len(FAULTS)} faults are planted" in " ".join(text.split())


def test_the_page_says_what_fired():
    rows = [{"name": "lazy", "what": "does | nothing", "kind": "wrong_twin", "expected": "oracle", "got": "late,oracle",
             "verdict": "pass"},
            {"name": "sly", "what": "is late", "kind": "wrong_twin", "expected": "late", "got": "accepted",
             "verdict": "fail"},
            {"name": "plain", "what": "right", "kind": "correct_control", "expected": "accepted", "got": "accepted",
             "verdict": "pass"}]
    text = cheats.page(rows, ASKED, FAULTS, "abc")
    assert "| lazy | does \\| nothing | oracle | late,oracle |" in text
    assert "Of 2 wrong twins 1 were caught" in text and "of 1 correct\ncontrols 1 were accepted" in text
    came = [(0, "caught", "aa1"), (0, "caught", "bb2"), (1, "SURVIVED", "bb2")]
    outcomes = "\n".join(json.dumps({"name": FAULTS[i]["name"], "outcome": outcome, "revision": revision})
                         for i, outcome, revision in came)
    text = cheats.page(rows, ASKED, FAULTS, "abc", outcomes)
    assert f"1 of {len(FAULTS)} with the revision" in text and text.count("| bb2 |") == 1
    known = [{**one, "before": "accepted", "by": ["selftest sly", "mutation other"]} for one in ASKED[:1]]
    assert f"| {ASKED[0]['asked']} | accepted | sly: accepted |" in cheats.page(rows, known, FAULTS, "abc")
