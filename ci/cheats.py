#!/usr/bin/env python3
"""The page of planted cheats, reports/cheats.md: what was asked to be caught and what catches it (ci/cheats.json),
every twin of a self-test's record with the rule that fired, every fault of ci/mutations.json with its check.

usage: ci/cheats.py RECORD [--write FILE]       RECORD: of `twinbench selftest --out RECORD`; without a file: printed"""
import argparse
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "ci"))

from pages import give, table  # noqa: E402


def twins_of(one: dict) -> list[str]:
    return [by.removeprefix("selftest ") for by in one["by"] if by.startswith("selftest ")]


def seen_at(outcomes: str) -> dict[str, str]:
    """By fault: the revision at which it was last planted and caught, of the lines that ci/mutations.py keeps."""
    rows = map(json.loads, outcomes.splitlines())
    return {row["name"]: row["revision"] for row in rows if row["outcome"] == "caught"}


def page(rows: list[dict], asked: list[dict], faults: list[dict], revision: str, outcomes: str = "") -> str:
    wrong = sorted((row for row in rows if row["kind"] == "wrong_twin"), key=lambda row: row["name"])
    correct = sorted((row for row in rows if row["kind"] == "correct_control"), key=lambda row: row["name"])
    caught = sum(row["verdict"] == "pass" for row in wrong)
    accepted = sum(row["verdict"] == "pass" for row in correct)
    lines = [
        "# Planted cheats, and what catches them", "",
        f"`ci/cheats.py` writes this page from the record of a self-test (revision {revision}), `ci/cheats.json` and",
        f"`ci/mutations.json`. Of {len(wrong)} wrong twins {caught} were caught by the rule that is there for them, of "
        f"{len(correct)} correct",
        f"controls {accepted} were accepted; {len(faults)} faults are planted in the tree itself by "
        "`ci/mutations.py`.", "",
        "## What was asked for", ""]
    lines += table(["point", "cheat", "caught by"],
                   [[str(one["point"]), one["asked"], ", ".join(f"`{by}`" for by in one["by"])] for one in asked])
    fired = {row["name"]: row["got"] for row in wrong}
    lines += ["## The eleven that were accepted", "",
              "What the checks took before there were rules for it, and what each comes to now.", ""]
    lines += table(["cheat", "before", "now"],
                   [[one["asked"], one["before"],
                     ", ".join(f"{name}: {fired.get(name, 'not run')}" for name in twins_of(one))]
                    for one in asked if "before" in one])
    lines += ["## Wrong twins", ""]
    lines += table(["twin", "what is wrong", "rule", "fired"],
                   [[row["name"], row["what"], row["expected"], row["got"]] for row in wrong])
    lines += ["## Correct controls", ""]
    lines += table(["control", "what looks wrong", "came to"],
                   [[row["name"], row["what"], row["got"]] for row in correct])
    seen = seen_at(outcomes)
    lines += ["## Faults planted in the tree", "",
              f"{sum(one['name'] in seen for one in faults)} of {len(faults)} with the revision at which they were "
              "last planted and caught.", ""]
    lines += table(["fault", "what", "check", "caught at"],
                   [[one["name"], one["what"], f"`{one['caught_by']}`", seen.get(one["name"], "-")] for one in faults])
    return "\n".join(lines).rstrip() + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("record", type=Path)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    block = json.loads(options.record.read_text())["twinbench"]
    text = page(block["selftest"], json.loads((ROOT / "ci/cheats.json").read_text()),
                json.loads((ROOT / "ci/mutations.json").read_text()), block["provenance"]["revision"][:12],
                (ROOT / "reports/records/mutations.jsonl").read_text())
    give(text, options.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
