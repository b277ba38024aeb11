"""What ci/compare_revisions compares without a clock: one more of every count fails, and so do counts that move."""
import copy
import datetime
import functools
import json
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "ci"), str(ROOT / "reports")]
from comparing import exact  # noqa: E402
from comparing import main as script  # noqa: E402

from twinbench_reports.judge.findings import Finding  # noqa: E402
from twinbench_reports.judge.waivers import Waiver, apply_waivers  # noqa: E402

# Written a second time on purpose: who lets off one more count must say so here. These explain totals, or say what a
# kernel would need at least.
EXPLAINING = ("by_name", "forward_calls_by_name", "launches_by_kernel", "products_by_shape", "process_calls")
NEUTRAL = ("blocks", "threads", "ideal", "floor_share", "limiter", "warps_per_sm", "most_warps_per_sm")
CELL = "sem.scan/optimized/cpu/fp32/train"
MODES = ("fp32", "bf16", "tf32", "fp16")


@dataclass
class Counted:
    """A side whose counts are those of a file of pins, so that they are of all kinds that there are."""

    name: str
    root: Path
    told: dict = field(default_factory=dict)

    def pins(self, engine, arguments, limit_s):
        flags = dict(zip(arguments[::2], arguments[1::2]))
        cells = {cell: counts for cell, counts in self.told.items() if re.search(flags["--filter"], cell)
                 and f"/{flags.get('--device', '')}" in cell}
        return {"kernels": {"cells": cells}, "instructions": {"a machine": cells}}.get(engine, cells)


def numbers(counts, path=(), judged=True, beneath=False):
    """The places of all numbers that are judged, or of all others; some stand in quotes."""
    for key, entry in counts.items():
        if isinstance(entry, dict):
            yield from numbers(entry, (*path, key), judged, beneath or key in EXPLAINING)
        elif (beneath or key in NEUTRAL) != judged and re.fullmatch(r"[0-9.]+", str(entry)):
            yield *path, key


def one_of_each(counts):
    """A place for each name; a cell has tens of kernels, which count the same things."""
    return {place[-1:] if "::" in place[-2] else place[-2:]: place for place in numbers(counts) if place[1:]} or {
        (): place for place in numbers(counts)}


def moved(counts, paths, by=1):
    """The counts with more, or less, at these places."""
    made = copy.deepcopy(counts)
    for path in paths:
        folder = functools.reduce(dict.__getitem__, path[:-1], made)
        entry = folder[path[-1]]
        folder[path[-1]] = f"{float(entry) + by:.2f}" if isinstance(entry, str) else entry + by
    return made


def richest(stage):
    """Of each variant, device and mode the cell with most counts, in the pins of that stage; of budgets one kernel."""
    file = {"counters": "counters", "kernels": "kernel_counts"}.get(stage, stage)
    root = json.loads((ROOT / f"ci/{'kernel_budgets' if stage == 'budgets' else file}.json").read_text())
    cells = {"kernels": root.get("cells"), "budgets": root.get("kernels")}.get(stage) or (
        next(iter(root.values())) if stage == "instructions" else root)
    chosen = {}
    for name, counts in sorted(cells.items()):
        kind, many = "/".join(name.split("/")[1:4]), len(list(numbers({name: counts})))
        if many > chosen.get(kind, ("", 0))[1]:
            chosen[kind] = name, many
    return {kind: {name: cells[name]} for kind, (name, _) in chosen.items()}


def findings(folder, stage, base, head):
    sides = []
    for name, told in (("base", base), ("head", head)):
        (folder / name / "ci").mkdir(parents=True, exist_ok=True)
        (folder / name / "ci/kernel_budgets.json").write_text(json.dumps({"compiler": "1", "kernels": told}))
        sides.append(Counted(name, folder / name, told))
    found, compared = script._counted(*sides, script.parse(["base", "head", "--stages", stage]), lambda text: None)
    assert compared == len(base)
    return found


KINDS = {"counters": {f"{kind}/{mode}" for mode in MODES
                      for kind in ("optimized/cpu", "baseline/cpu", "library/cpu", "optimized/simt")},
         "kernels": {f"optimized/simt/{mode}" for mode in MODES},
         "instructions": {f"{variant}/cpu/{mode}" for mode in MODES
                          for variant in ("optimized", "baseline", "library")},
         "budgets": {""}}
LEAST = {"counters": 11, "kernels": 20, "instructions": 1, "budgets": 12}  # counts of a cell


@pytest.mark.parametrize("stage", KINDS)
def test_one_more_of_any_count_fails_in_every_mode_and_on_every_device(tmp_path, stage):
    """Of the baseline and the library, which are not ours to speed up, it is a notice."""
    chosen = richest(stage)
    assert chosen.keys() >= KINDS[stage]
    for kind, base in chosen.items():
        places = one_of_each(base).values()
        assert len(places) >= LEAST[stage], kind
        ours = not kind or kind.startswith("optimized/")
        assert not findings(tmp_path, stage, base, base)
        for place in places:
            found = findings(tmp_path, stage, base, moved(base, [place]))
            assert [one.severity for one in found] == ["fail" if ours else "notice"], (place, found)
            assert found[0].subject == place[0] and ".".join(place[1:]) in found[0].message, (place, found)


@pytest.mark.parametrize("stage", ("counters", "kernels", "budgets"))
def test_what_explains_a_total_or_says_what_a_kernel_could_do_is_no_count(tmp_path, stage):
    """A kernel that comes nearer to its floor would else fail."""
    seen = set()
    for base in richest(stage).values():
        places = list(numbers(base, judged=False))
        assert not findings(tmp_path, stage, base, moved(base, places))
        seen |= {part for place in places for part in place}
    assert seen & {*EXPLAINING, *NEUTRAL}


@pytest.mark.parametrize("stage", ("counters", "kernels", "budgets"))
def test_one_more_is_not_made_up_for_by_fewer_of_all_others(tmp_path, stage):
    for kind, base in richest(stage).items():
        if kind and not kind.startswith("optimized/"):
            continue
        base = moved(base, numbers(base), 10)  # so that each can be fewer
        more, *others = numbers(base)
        found = findings(tmp_path, stage, base, moved(moved(base, others, -9), [more]))
        assert [one.severity for one in found] == ["fail"] and "; " in found[0].message, kind
        found = findings(tmp_path, stage, base, moved(base, [more, *others], -9))
        assert [one.severity for one in found] == ["notice"] and found[0].message.startswith("fewer: "), kind


def test_a_count_that_base_has_not_is_more_and_has_no_share():
    base, head = {CELL: {"dispatches": 4.0}}, {CELL: {"dispatches": 6.0, "launches": 1.0}}
    found = list(exact.compare("counters", base, head, str))
    assert [(one.severity, one.magnitude) for one in found] == [("fail", 0.5)]
    assert "dispatches 4 -> 6 (+50.0%); launches 0 -> 1" in found[0].message
    new = list(exact.compare("counters", {CELL: {}}, {CELL: {"launches": 1.0}}, str))
    assert [(one.severity, one.magnitude) for one in new] == [("fail", None)]  # no waiver excuses it


@pytest.mark.parametrize("other, counts, expected", [
    (CELL.replace("train", "longer"), 4.0, ["notice"]), (CELL.replace("scan", "search"), 4.0, ["notice"]),
    (CELL.replace("train", "longer"), 3.0, ["missing", "notice"]),
    (CELL.replace("train", "longer"), 5.0, ["missing", "notice"]),
    (CELL.replace("train", "longer").replace("scan", "search"), 4.0, ["missing", "notice"]),
    (CELL.replace("fp32", "bf16").replace("cpu", "simt"), 4.0, ["missing", "notice"]),
    (CELL.replace("/optimized/", "/baseline/"), 4.0, ["missing", "notice"]),
    (f"{CELL}/more", 4.0, ["missing", "notice"]), ("sem.scan", 4.0, ["missing", "notice"])])
def test_a_cell_is_renamed_where_one_part_of_its_name_differs_and_no_count(other, counts, expected):
    """Else it has vanished, and what is new is another."""
    base, head = {CELL: {"dispatches": 4.0}}, {other: {"dispatches": counts}}
    found = list(exact.compare("counters", base, head, str))
    assert [one.severity for one in found] == expected, found
    assert found[0].subject == (CELL if "missing" in expected else other)
    both = list(exact.compare("counters", base, head | base, str))  # where it is still there, nothing has its name
    assert [(one.severity, one.subject, one.message[:3]) for one in both] == [("notice", other, "new")]
    twice = list(exact.compare("counters", base | {CELL.replace("train", "odd"): {"dispatches": 4.0}}, head, str))
    assert len([one for one in twice if one.severity == "missing"]) == (2 if "missing" in expected else 1), twice


@pytest.mark.parametrize("kind", ("budgets", "counters cpu", "counters simt", "kernels", "instructions"))
@pytest.mark.parametrize("case", ("train", "forward", "backward", "backward_large", "held_out", "empty"))
@pytest.mark.parametrize("mode", MODES)
def test_a_cell_that_is_gone_is_missing_whatever_its_name_is(kind, mode, case):
    for variant in ("optimized", "baseline", "library"):
        for device in ("cpu", "simt", "cuda"):
            cell = f"sem.scan/{variant}/{device}/{mode}/{case}"
            assert list(exact.compare(kind, {cell: {"dispatches": 4.0}}, {}, str)) == [
                Finding("missing", kind, cell, "vanished: base counts it, head does not", cell)]


def test_a_line_of_coverage_that_is_gone_fails_and_no_waiver_with_a_limit_below_one_excuses_it(tmp_path):
    sides = [Counted(name, tmp_path / name) for name in ("base", "head")]
    for side in sides:
        (side.root / "ci").mkdir(parents=True)
    lines = ["cell a", "gtest B.C", "pytest d e", "selftest f"]
    files = [side.root / "ci/coverage.txt" for side in sides]
    files[0].write_text("\n".join(lines) + "\n")
    files[1].write_text("\n".join(["new", *lines[1:3]]) + "\n")
    found = list(exact.coverage(*sides))
    assert [(one.severity, one.kind, one.subject, one.magnitude) for one in found] == [
        ("fail", "coverage", line, 1.0) for line in (lines[0], lines[3])]
    today = datetime.date(2026, 11, 21)
    for limit, standing in ((0.0, 2), (0.99, 2), (1.0, 0)):
        waivers = [Waiver(line, "coverage", limit, "replaced", "ada", today) for line in lines]
        assert len([one for one in apply_waivers(found, waivers, today)[0] if one.severity == "fail"]) == standing
    files[1].unlink()
    assert [one.subject for one in exact.coverage(*sides)] == lines
    assert not list(exact.coverage(*sides[::-1])) and not list(exact.coverage(sides[0], sides[0]))


def counted_twice(base, head):
    """The severities of one cell whose instructions are these, then those; None: it is not counted."""
    def side(name, counts):
        counts = ({CELL: count} if count is not None else {} for count in counts)
        return SimpleNamespace(name=name, pins=lambda *_: {"a machine": next(counts)})
    sides = side("base", base), side("head", head)
    before, now, notes = exact.count_twice(*sides, ".", str)
    return [one.severity for one in (*notes, *exact.compare("instructions", before, now, str))]


NAMED, JUDGED, UNREPEATED, LOST = ["notice"], ["notice", "fail"], ["fail"], ["missing"]


@pytest.mark.parametrize("base, head, expected", [
    # The least difference of both sides is judged where it is over 10 times what either moves by.
    ((100_000, 100_000), (100_411, 100_401), JUDGED), ((100_000, 100_000), (100_101, 100_111), JUDGED),
    ((100_000, 100_010), (100_111, 100_111), JUDGED), ((100_010, 100_000), (100_121, 100_111), JUDGED),
    ((100_000, 100_000), (100_100, 100_110), NAMED), ((100_000, 100_010), (100_110, 100_110), NAMED),
    ((100_000, 100_000), (100_001, 100_000), NAMED),
    # Head moves by over 10 times as much as base, and by over a thousandth of base's.
    ((100_000, 100_000), (100_101, 100_000), UNREPEATED), ((100_000, 100_000), (100_100, 100_000), NAMED),
    ((100_000, 100_100), (101_101, 100_100), UNREPEATED), ((100_000, 100_100), (101_100, 100_100), NAMED),
    ((100_100, 100_000), (100_101, 101_102), UNREPEATED), ((1_000, 1_000), (1_002, 1_000), UNREPEATED),
    # What went up and is gone when it is counted again was not judged.
    ((100, 100), (200, None), LOST), ((100, None), (200, 200), LOST), ((100, None), (101, None), LOST),
    # What repeats is judged to the last instruction, and what went down is not counted again.
    ((100_000, 100_000), (100_001, 100_001), ["fail"]), ((100_000,), (99_999,), ["notice"]), ((7,), (7,), [])])
def test_a_count_that_moves_is_judged_by_how_much_it_moves(base, head, expected):
    assert counted_twice(base, head) == expected
