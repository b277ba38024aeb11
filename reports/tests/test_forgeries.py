"""Records that were cut or changed after the run: each forgery is told by name, beside the honest record it is made of.
The forgers keep ledgers in order where they can."""

from __future__ import annotations

import json
import re
import statistics
from pathlib import Path

import pytest
import synthetic

from twinbench_reports.cells import Cell, JUDGED_SECTIONS
from twinbench_reports.judge.judge import judge
from twinbench_reports.judge.measured import (OF_CANDIDATES, OF_EVERY, ORACLE_SKIPS, SKIPS, demanded,
                                               judge_measured)
from twinbench_reports.judge.units import BUDGET, NO_CHECK, Units
from twinbench_reports.merge import load_merged

CELL = synthetic.cell("energy_flow.movement", "optimized")
PARITY = Path(__file__).parents[2] / "harness/parity"


def gut(block):
    """All but one check of every cell is gone."""
    block["parity"] = [row for row in block["parity"] if row["check"] == "late"]


def lose_oracles(block): block["parity"] = [row for row in block["parity"] if row["check"] != "oracle"]


def of_cell(block, *checks): return [row for row in block["parity"] if row["cell"] == CELL and row["check"] in checks]


def excuse(block, *checks, reason="the runner was busy"):
    for row in of_cell(block, *checks):
        row.update(verdict="skip", reason=reason, outputs=[])


NOT_MEASURED = {
    "all other checks are gone": (gut, "passed without oracle, determinism"),
    "the oracle's rows are gone": (lose_oracles, "passed without oracle:"),
    "the oracle is excused": (lambda block: excuse(block, "oracle"), "a reason that no check gives: the runner was"),
    "the oracle is excused as others are": (lambda block: excuse(block, "oracle", reason=SKIPS[0]), "no check gives"),
    "threads are excused": (lambda block: excuse(block, "threads", "stale"), "no check gives: the runner was busy"),
}


@pytest.mark.parametrize("name", NOT_MEASURED)
def test_a_pass_without_what_every_cell_shows_is_inconclusive(save, cli, capsys, name):
    forge, says = NOT_MEASURED[name]
    root = synthetic.full()
    forge(root["twinbench"])
    assert cli("gate", save(synthetic.balance(root))) == 3
    out = re.sub(r"\s+", " ", capsys.readouterr().out)
    assert says in out and (f"{CELL}" in out or "more like it" in out)


@pytest.mark.parametrize("check, reason", [
    ("threads", "not this case's turn: one in 3, by --sample"), ("stale", "large case: the smaller ones show this"),
    ("oracle", "close decisions move sums over items far: of 40 elements 30")])
def test_a_skip_that_a_check_gives_passes(save, cli, check, reason):
    root = synthetic.full()
    excuse(root["twinbench"], check, reason=reason)
    assert cli("gate", save(synthetic.balance(root))) == 0


def test_other_cells_have_other_checks(load):
    """Baselines are the oracle's; a mistake that a document makes is only shown; a case without contents has no
    vacuity; backward baselines have gradients."""
    root = synthetic.full()
    block = root["twinbench"]
    case = block["components"][0]["cases"][0]
    rows = block["parity"]
    base = synthetic.cell(synthetic.COMPONENTS[0][0], "baseline")
    rows.append({**synthetic.parity_row("", "", "", "specimen", 0.0), "cell": base.replace("train", "held_out"),
                 "outputs": []})
    limited = base.replace("baseline/cpu", "library/cuda").replace("train", "held_out")
    rows.append({**synthetic.parity_row("", "", "", "held_out", 0.0), "cell": limited, "outputs": []})
    rows.append({**synthetic.parity_row("", "", "", "oracle", 0.0, "skip", f"{ORACLE_SKIPS[0]}it pads"),
                 "cell": limited})
    assert not list(judge_measured(block))
    rows[-1]["cell"] = rows[-2]["cell"] = limited.replace("library/cuda", "optimized/cpu")
    assert [found.severity for found in judge_measured(block)] == ["inconclusive", "missing"]
    del rows[-2:]
    for check, verdict in (("memcheck", "pass"), ("left_out", "skip")):  # a tool's word on a cell that was left out
        rows.append({**synthetic.parity_row("", "", "", check, 0.0, verdict, "not sampled"), "cell": CELL + "2",
                     "outputs": []})
        assert len(list(judge_measured(block))) == (check == "memcheck")
    del rows[-2:]
    assert judge(load(synthetic.balance(root))).exit_code == 0
    case["pass"] = "backward"
    assert [found.message.split(":")[0] for found in judge(load(root)).of("missing")] == 2 * ["passed without gradient"]
    case.update({"pass": "forward", "degenerate": True})
    block["parity"] = [row for row in rows if not (row["cell"].startswith(synthetic.COMPONENTS[0][0])
                                                   and row["check"] in ("vacuity", "stale", "sensitivity"))]
    assert judge(load(root)).exit_code == 0


def test_the_words_are_those_of_the_program():
    """Every reason of a skip in the sources is known here, and every check that each cell has is added to each."""
    texts = {path.name: path.read_text() for path in PARITY.glob("*.cpp") if not path.name.endswith("_test.cpp")}
    given = [text for source in texts.values()
             for text in re.findall(r'skip\(\s*(?:std::string\(|c10::str\()?"([^"]+)"', source)]
    given += re.findall(r'not_its_turn = "([^"]+)"', texts["parity.cpp"])
    assert len(given) > 15
    assert not [text for text in given if not text.startswith(SKIPS + ORACLE_SKIPS)]
    everything = "".join(texts.values()) + (PARITY / "card_exceptions.h").read_text()
    assert not [text for text in (*SKIPS, *ORACLE_SKIPS) if f'"{text}' not in everything]
    added = re.findall(r'(?:add|thorough|in_turn)\("(\w+)", true,', texts["parity.cpp"])
    added += re.findall(r'of_life\("(\w+)",', texts["parity.cpp"])
    added = set(added) - {"specimen"}  # which ends there
    assert set(OF_CANDIDATES) == added | {"oracle"}
    kept = re.search(r"options\.checks = \{([^}]*)\}", texts["tier.cpp"]).group(1)
    assert set(OF_EVERY) == added & set(re.findall(r'"(\w+)"', kept))


def recount(block, key, by):
    block["ledger"][key] += by
    block["ledger"]["planned"] += by


CONTRADICTIONS = {
    "a cell is gone": (
        lambda block: block.update(parity=[row for row in block["parity"] if row["cell"] != CELL]),
        "ledger.passed: the ledger counts"),
    "a counted cell is gone": (lambda block: block["counters"].pop(), "ledger.passed: the ledger counts"),
    "more passed": (lambda block: recount(block, "passed", 1), "ledger.passed: the ledger counts"),
    "fewer passed": (lambda block: recount(block, "passed", -2), "ledger.passed: the ledger counts"),
    "more were skipped": (lambda block: recount(block, "skipped", 1), "ledger.skipped: the ledger counts"),
    "fewer were skipped": (lambda block: recount(block, "skipped", -1), "ledger.skipped: the ledger counts"),
    "a null test that is counted as passed": (
        lambda block: block["session"]["null_test"].update(verdict="slower"), "ledger.passed: the ledger counts"),
    "fewer were planned": (lambda block: block["ledger"].update(planned=3), "and only 3 were planned"),
    "a timing is gone, and counted as never run": (
        lambda block: block["timings"].pop(1), "has pairs, and no timing of"),
    "slower samples than ratios": (
        lambda block: slow(block["timings"][1]), "samples_s of its timings give"),
    "fewer samples than pairs": (
        lambda block: shorten(block["timings"][1]), "20 pairs, and its timings have 20 and 18"),
    "fewer samples than pairs on both sides": (
        lambda block: [resample(row, row["samples_s"][:18]) for row in block["timings"][:2]], "have 18 and 18"),
    "more samples than pairs on one side": (
        lambda block: resample(block["timings"][1], block["timings"][1]["samples_s"] + [1.0]), "have 20 and 21"),
    "a quartile of other samples": (
        lambda block: block["timings"][0].update(q1_s=block["timings"][0]["q1_s"] * 0.9), "q1_s of"),
    "a null test of wide intervals": (
        lambda block: block["session"]["null_test"]["cells"][0].update(upper=1.12), "'same', and the interval of"),
    "a null test without an interval": (
        lambda block: block["session"]["null_test"]["cells"][0].update(lower=None), "'same', and the interval of"),
    "a null test of less noise": (
        lambda block: block["session"]["null_test"].update(noise_floor=0.001), "the ratios of its cells give 0.006"),
    "a null test of more pairs": (
        lambda block: block["session"]["null_test"].update(pairs=600), "600 pairs, and the intervals of its"),
    "a seed that is not the run's": (
        lambda block: [row.update(seed=7) for row in block["parity"] if row["cell"] == CELL], "it is 7, and the run's"),
    "a row of another seed": (lambda block: first_row(block).update(seed=7), "rows are of the seeds 7, 20261121"),
    "a later seed that no row explains": (
        lambda block: [row.update(seed=synthetic.SEED + 1_000_003) for row in block["parity"] if row["cell"] == CELL],
        "and the run's --seed 20261121"),
    "a day that there is not": (lambda block: block["provenance"].update(utc="9999-99-99T00:00:00Z"), "is no time at"),
    "a day to come": (lambda block: block["provenance"].update(utc="9999-12-31T00:00:00Z"), "provenance.utc: '9999-12"),
    "a day before the first": (lambda block: block["provenance"].update(utc="2020-01-01T00:00:00Z"), "is no time at"),
    "a time without its hour": (lambda block: block["provenance"].update(utc="2026-11-22"), "is no time at which"),
    "a minimum of other samples": (lambda block: block["timings"][0].update(minimum_s=1e-9), "minimum_s of"),
}


def test_inputs_drawn_again_or_held_out_have_seeds_of_their_own(save, cli):
    root = synthetic.full()
    block = root["twinbench"]
    rows = [row for row in block["parity"] if row["cell"] == CELL]
    for row in rows:
        row["seed"] += 2 * 1_000_003
    block["parity"].append({**rows[0], "check": "drawn_again", "outputs": [], "vacuity": None, "reason": "close"})
    held_out = [{**row, "cell": CELL.replace("train", "held_out"), "seed": 99} for row in rows]
    held_out.append({**held_out[0], "check": "held_out", "outputs": [], "reason": "from train: flows 9, seed 99"})
    block["parity"] += held_out
    assert cli("gate", save(synthetic.balance(root))) == 0
    held_out[-1]["reason"] = "from train: flows 9, seed 98"
    assert cli("gate", save(root)) == 2


def test_pairs_that_lean_on_each_other_are_more_than_their_medians(save, cli):
    root = synthetic.full()
    root["twinbench"]["session"]["null_test"]["cells"][0]["n"] = 30
    assert cli("gate", save(root)) == 0
    root["twinbench"]["session"]["null_test"]["cells"][0]["n"] = 61
    assert cli("gate", save(root)) == 2


def slow(row, factor=1.5):
    row["samples_s"] = [sample * factor for sample in row["samples_s"]]
    for key in ("median_s", "q1_s", "q3_s", "minimum_s"):
        row[key] *= factor


def resample(row, samples):
    low, middle, high = statistics.quantiles(samples, n=4, method="inclusive")
    row.update(samples_s=samples, n=len(samples), q1_s=low, median_s=middle, q3_s=high, minimum_s=min(samples))


def shorten(row): row.update(samples_s=row["samples_s"][:18], n=18)


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_a_record_that_contradicts_itself_is_refused(save, cli, capsys, name):
    root = synthetic.only(synthetic.full(), *(set(JUDGED_SECTIONS) | {"speedups"}) - {"modelled"})
    root["twinbench"]["engines"].remove("kernels")  # which counts more than it writes
    assert cli("gate", save(root)) == 0
    forge, says = CONTRADICTIONS[name]
    forge(root["twinbench"])
    assert cli("gate", save(root)) == 2
    error = capsys.readouterr().err
    assert says in error and "remedy: run the engine again" in error


def test_crashed_cut_and_set_aside_work_may_be_without_a_row(save, cli):
    for key, more, code in (("skipped", {"missing_device: no CUDA device is visible to LibTorch": 2}, 0),
                            ("inconclusive", {}, 0), ("errors", {}, 1)):
        root = synthetic.full()
        ledger = root["twinbench"]["ledger"]
        recount(root["twinbench"], key, 2)
        ledger["skip_reasons"].update(more)
        ledger["exit_code"] = {"skipped": 0, "inconclusive": 3, "errors": 4}[key]
        assert cli("gate", save(root)) == code


def test_the_ledger_counts_cells_twins_and_criteria():
    rows = [synthetic.parity_row("a.b", "optimized", dtype, check, 0, verdict, reason)
            for dtype, check, verdict, reason in (
                ("fp32", "oracle", "pass", ""), ("fp32", "late", "fail", "x"), ("bf16", "oracle", "pass", ""),
                ("bf16", "late", "skip", "x"), ("fp64", "oracle", "error", "x"), ("tf32", "golden", "skip", "x"),
                ("fp16", "left_out", "skip", "not sampled (sample 5)"))]
    rows.append({**rows[-1], "cell": "a.b/library/cpu/fp32/train", "reason": f"{BUDGET} spent"})
    block = synthetic.full()["twinbench"]
    twins, entries = len(block["timings"]), sum(1 + len(row["criteria"]) for row in block["scenarios"])
    units = Units(synthetic.empty()["twinbench"] | {"parity": rows})
    assert units.outcomes == {"passed": 1, "failed": 1, "errors": 1, "skipped": 2, "inconclusive": 1}
    assert units.reasons == {NO_CHECK: 1, "not sampled": 1}
    bench = Units(synthetic.empty()["twinbench"] | {key: block[key] for key in ("timings", "speedups")})
    libraries = sum("/library/" in row["cell"] for row in block["timings"])
    assert bench.outcomes == {"passed": (twins - libraries) // 2}
    scenario = Units(synthetic.empty()["twinbench"] | {"scenarios": block["scenarios"]})
    assert sum(scenario.outcomes.values()) == entries == 4 and scenario.outcomes["skipped"] == 1


def test_a_merged_record_keeps_its_ledger_in_order(save, load, cli, tmp_path):
    parts = []
    for index, keep in enumerate((("parity",), ("timings", "speedups"), ("parity",))):
        root = synthetic.only(synthetic.full(), *keep)
        root["twinbench"]["engines"] = ["bench"] if "timings" in keep else ["parity"]
        root["twinbench"]["provenance"]["utc"] = f"2026-11-21T09:4{index}:00Z"
        parts.append(save(root, f"{index}.json"))
    assert cli("merge", *parts[:2], "-o", tmp_path / "both.json") == 0 == cli("gate", tmp_path / "both.json")
    assert cli("merge", *parts, "--latest", "-o", tmp_path / "three.json") == 0 == cli("gate", tmp_path / "three.json")
    both, three = (json.loads((tmp_path / name).read_text())["twinbench"] for name in ("both.json", "three.json"))
    assert both["ledger"] == three["ledger"]
    assert load_merged([load(both_root(tmp_path))]).block["ledger"] == both["ledger"]
    both["parity"] = [row for row in both["parity"] if row["cell"] != CELL]
    root = both_root(tmp_path) | {"twinbench": both}
    assert cli("gate", save(root, "forged.json")) == 2


def both_root(folder): return json.loads((folder / "both.json").read_text())


def first_row(block): return of_cell(block, "oracle")[0]


def first(block): return first_row(block)["outputs"][0]


def of_every_row(block, change):
    """The output of one component's case, in all of its rows."""
    for row in block["parity"]:
        if row["cell"].startswith("energy_flow.movement/"):
            row["outputs"] = change(row["outputs"])


def unlisted(block):
    """As records before 1.4 were."""
    for component in block["components"]:
        component.pop("checks")
        for case in component["cases"]:
            del case["outputs"], case["items"]


COMPARED = {
    "an output is gone from one row": (lambda block: first_row(block).update(outputs=[]), "did not compare output"),
    "an output is gone from a strided run": (
        lambda block: of_cell(block, "non_contiguous")[0].update(outputs=[]), "did not compare output: its case"),
    "an output is gone from all rows": (
        lambda block: of_every_row(block, lambda outputs: []), "did not compare output: its case lists it"),
    "an output is gone from one row of an old record": (
        lambda block: (unlisted(block), first_row(block).update(outputs=[])), "output: other rows of the case have it"),
    "another output": (
        lambda block: first(block).update(name="length"), "tolerance_class of length is 'op', and its case lists 'no"),
    "a class that judges nothing": (
        lambda block: of_every_row(block, lambda outputs: [{**one, "tolerance_class": "measured"} for one in outputs]),
        "the tolerance_class of output is 'measured', and its case lists 'op'"),
    "a class of its own in an old record": (
        lambda block: (unlisted(block), of_cell(block, "stale")[0]["outputs"][0].update(tolerance_class="chain")),
        "the tolerance_class of output is 'chain', and other rows of the case have 'op'"),
}


@pytest.mark.parametrize("name", COMPARED)
def test_a_row_that_compared_other_outputs_than_its_case_has_fails(load, name):
    root = synthetic.full()
    COMPARED[name][0](root["twinbench"])
    verdict = judge(load(root))
    assert verdict.exit_code == 1
    assert any(COMPARED[name][1] in found.message for found in verdict.of("fail"))
    honest = synthetic.full()
    unlisted(honest["twinbench"])
    assert judge(load(honest)).exit_code == 0


@pytest.mark.parametrize("check, cells", [
    ("golden", 6), ("refusal", 3), ("invariant", 6), ("relation", 6), ("carried", 4), ("batch_invariance", 4),
    ("poisoned_neighbour", 4), ("cost", 2)])
def test_a_check_that_the_record_says_a_component_has_is_missed(load, check, cells):
    """By the specification of the component, by the items of the case, by the variant: in the first case, in every
    dtype, of every variant, as the program has it."""
    root = synthetic.full()
    block = root["twinbench"]
    if check in ("golden", "refusal", "invariant", "relation", "carried"):
        next(row for row in block["components"] if row["id"] == "energy_flow.movement")["checks"] = [check]
    block["parity"] = [row for row in block["parity"] if row["check"] != check
                       or not row["cell"].startswith("energy_flow.movement/")]
    found = judge(load(root)).of("missing")
    assert {one.message.split(":")[0] for one in found} == {f"passed without {check}"} and len(found) == cells
    for one in found:
        block["parity"].append({**synthetic.parity_row("", "", "", check, 0.0), "cell": one.subject, "outputs": []})
    assert judge(load(synthetic.balance(root))).exit_code == 0


def test_every_check_of_the_program_is_demanded_somewhere(load):
    names = re.search(r"names = \{([^}]*)\}", (PARITY / "parity.cpp").read_text()).group(1)
    component = synthetic.full()["twinbench"]["components"][4]
    component["checks"] = ["golden", "refusal", "invariant", "relation", "carried"]
    component["cases"].append({**component["cases"][0], "name": "backward", "pass": "backward"})
    asked = {check for variant in ("baseline", "optimized") for case in ("train", "backward")
             for check in demanded(Cell(component["id"], variant, "cpu", "fp32", case), component)}
    # What a documented mistake has alone; what only a variant that chooses between ways has.
    assert asked | {"specimen", "ways"} == set(re.findall(r'"(\w+)"', names))


OUTPUTS = {
    "another class": ({"tolerance_class": "chain"}, "the tolerance_class of output is 'chain', and 'op'"),
    "an impossible error": ({"max_absolute_error": 1e6}, "cannot both be of 65,536 elements of output"),
    "one element": ({"elements": 1}, "elements of output"),
    "fewer elements": ({"elements": 60000}, "60,000 elements of output were compared, and 65,536 in the baseline"),
    "more elements": ({"elements": 70000}, "70,000 elements of output were compared, and 65,536 in the baseline"),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_an_output_that_was_judged_otherwise_fails_by_name(load, name):
    before, root = load(synthetic.full(), "before.json"), synthetic.full()
    change, says = OUTPUTS[name]
    first(root["twinbench"]).update(change)
    verdict = judge(load(root), before)
    assert verdict.exit_code == 1
    others = CELL.replace("optimized", "library")  # which compared as before, and so another number than this one
    assert {found.subject for found in verdict.of("fail")} <= {f"{CELL} [oracle]", f"{others} [oracle]"}
    assert any(says in found.message for found in verdict.of("fail"))


def test_a_case_of_other_sizes_or_inputs_has_other_elements(load):
    before = load(synthetic.full(), "before.json")
    root = synthetic.full()
    for row in root["twinbench"]["parity"]:
        row["seed"] = 8
        for output in row["outputs"]:
            output["elements"] = 60000
    assert judge(load(root), before).exit_code == 0
    for row in root["twinbench"]["parity"]:
        row["seed"] = synthetic.SEED
    assert judge(load(root), before).exit_code == 1
    for component in root["twinbench"]["components"]:
        component["cases"][0]["sizes"] = {"flows": 200}
    assert judge(load(root), before).exit_code == 0


def test_variants_of_a_case_compare_as_many_elements(load):
    root = synthetic.full()
    name = synthetic.COMPONENTS[1][0]  # it has a library variant
    rows = [row for row in root["twinbench"]["parity"] if row["cell"] == synthetic.cell(name, "optimized")]
    assert {row["outputs"][0]["elements"] for row in rows if row["outputs"]} == {65536}
    copies = [row for row in root["twinbench"]["parity"] if row["cell"] == synthetic.cell(name, "library")]
    copies[0]["outputs"][0]["elements"] = 65535
    found = judge(load(root)).of("fail")
    assert [one.subject for one in found] == [f"{synthetic.cell(name, 'library')} [oracle]"]
    assert "65,535 elements of output were compared, and 65,536 in" in found[0].message


def test_what_slows_both_sides_is_noted_and_decides_nothing(load):
    before = load(synthetic.full(), "before.json")
    said = "its own time is 1.50 times"
    for factors, cpu, noted in (((1.5, 1.5), "", 1), ((2, 1.5), "", 1), ((1, 1), "", 0), ((0.5, 0.6), "", 0),
                                ((1.5, 1.5), "another", 0)):
        root = synthetic.full()
        block = root["twinbench"]
        for row, factor in zip(block["timings"], factors):
            slow(row, factor)
        synthetic.measured(block["speedups"][0], block["speedups"][0]["ratio"] * factors[0] / factors[1], 0.02)
        block["provenance"]["cpu_model"] += cpu
        verdict = judge(load(synthetic.balance(root)), before)
        found = [one for one in verdict.of("notice") if said in one.message]
        assert verdict.exit_code == (3 if cpu else 0) and len(found) == noted
        assert not noted or found[0].subject == block["timings"][1]["cell"]


def test_a_cell_that_the_filter_matches_and_nothing_mentions_is_missing(load):
    """Also where the ledger was put in order, for there are other cases of the same kind. A shard draws its own, and a
    documented mistake has only a baseline."""
    root = synthetic.full()
    block = root["twinbench"]
    name = synthetic.COMPONENTS[4][0]  # it has a library variant
    component = next(row for row in block["components"] if row["id"] == name)
    component["cases"].append({**component["cases"][0], "name": "odd"})
    own = [row for row in block["parity"] if row["cell"].startswith(name)]
    other = json.loads(json.dumps(own).replace("/train", "/odd"))
    block["parity"] += other
    counted = [row for row in block["counters"] if row["cell"].startswith(name)]
    block["counters"] += json.loads(json.dumps(counted).replace("/train", "/odd"))
    assert judge(load(synthetic.balance(root))).exit_code == 0
    block["counters"].pop(-3)
    block["parity"] = [row for row in block["parity"] if row["cell"] != CELL.replace("train", "odd")]
    found = judge(load(synthetic.balance(root)))
    assert [one.subject for one in found.of("missing")] == [
        f"{name}/baseline/cpu/fp32/odd", f"{name}/optimized/cpu/fp32/odd"]
    for line, missing in (("parity --filter movement/.*/train --out r", 0), ("parity --shard 1/2", 0),
                          ("parity --filter=movement/.*/odd", 2), ("parity --filter (", 0)):
        block["provenance"]["command_line"] = line
        assert len(judge(load(root)).of("missing")) == missing
    block["provenance"]["command_line"] = "parity"
    judged = block["parity"]
    block["parity"] = [row for row in judged if f"{name}/optimized" not in row["cell"]]  # of no case, and in no mode
    found = judge(load(synthetic.balance(root))).of("missing")
    assert f"{name}/optimized/cpu/fp32/train" in [one.subject for one in found]
    block["parity"] = judged
    for section in ("parity", "counters"):  # a documented mistake
        block[section] = [row for row in block[section] if not row["cell"].endswith("/odd")]
    block["counters"].append({**block["counters"][8], "cell": f"{name}/baseline/cpu/fp32/odd"})
    for dtype in synthetic.DTYPES:
        block["parity"].append({**synthetic.parity_row(name, "baseline", dtype, "specimen", 0.0), "outputs": [],
                                "cell": f"{name}/baseline/cpu/{dtype}/odd"})
    assert judge(load(synthetic.balance(root))).exit_code == 0
