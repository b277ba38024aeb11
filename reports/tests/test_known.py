"""Forged records: rows of components, variants, modes, cases, devices and engines that there are not."""

from __future__ import annotations

import json
import re

import pytest
import synthetic

from twinbench_reports.cli import main
from twinbench_reports.judge.judge import judge
from twinbench_reports.judge.known import judge_known

KNOWN = {name for name, *_ in synthetic.COMPONENTS}


def rename(section, part, to):
    """A plant: one part of the section's first cell is called otherwise."""
    def plant(block):
        row = block[section][0]
        if "cell" in row:
            parts = row["cell"].split("/")
            parts[("component", "variant", "device", "dtype", "case").index(part)] = to
            row["cell"] = "/".join(parts)
        else:
            row[part] = to
    return plant


FORGED = {
    "a component": (rename("parity", "component", "sem.invented"), "no such component"),
    "a counted one": (rename("counters", "component", "sem.invented"), "no such component"),
    "a speedup's": (rename("speedups", "component", "sem.invented"), "no such component"),
    "a proof's": (rename("proofs", "component", "sem.invented"), "no such component"),
    "a modelled one's": (rename("modelled", "component", "sem.invented"), "no such component"),
    "a variant": (rename("timings", "variant", "library"), "has no variant library"),
    "a speedup's side": (rename("speedups", "from", "library"), "has no variant library"),
    "a speedup's other side": (rename("speedups", "to", "library"), "has no variant library"),
    "a mode": (rename("timings", "dtype", "tf32"), "has no mode tf32"),
    "a case": (rename("parity", "case", "easy"), "has no case easy"),
    "a card": (rename("timings", "device", "cuda"), "by a machine without one"),
    "an engine": (lambda block: block["engines"].append("oracle"), "no such engine"),
    "no engine for a section": (lambda block: block["engines"].remove("bench"), "which is none of the record's"),
    "a pipeline": (lambda block: block["scenarios"][0].update(pipeline="trainer3"), "no component belongs to"),
    "a described component": (
        lambda block: block["components"].append({**block["components"][0], "id": "sem.invented"}),
        "of which no cell is pinned"),
    "one without a source": (
        lambda block: block["provenance"]["source_hashes"].pop(block["components"][0]["id"]), "without a source"),
}


@pytest.mark.parametrize("name", FORGED)
def test_what_nobody_knows_fails_by_name(load, name):
    plant, message = FORGED[name]
    root = synthetic.full()
    plant(root["twinbench"])
    verdict = judge(load(synthetic.balance(root)), components=KNOWN)
    assert verdict.exit_code == 1
    assert any(message in finding.message for finding in verdict.of("fail")), verdict.findings


@pytest.mark.parametrize("cell, engines, says", [
    (synthetic.cell("sem.scan", "optimized"), ["instructions"], ""),
    (synthetic.cell("sem.scan", "optimized"), [], "which is none of the record's"),
    (synthetic.cell("sem.invented", "optimized"), ["instructions"], "no such component"),
    (synthetic.cell("sem.scan", "library"), ["instructions"], "has no variant library"),
    (synthetic.cell("sem.scan", "optimized", case="easy"), ["instructions"], "has no case easy")])
def test_instructions_of_what_nobody_knows_fail(cell, engines, says):
    block = synthetic.full()["twinbench"]
    block["engines"] += engines
    block["instructions"] = [{"cell": cell, "verdict": "pass"}]
    assert [(one.severity, says in one.message) for one in judge_known(block, KNOWN)] == [("fail", True)] * bool(says)


def test_a_held_out_case_and_an_honest_card_are_known(load):
    root = synthetic.full()
    cell = root["twinbench"]["parity"][0]["cell"]
    root["twinbench"]["parity"] += [{**row, "cell": cell.replace("/train", "/held_out")}
                                    for row in root["twinbench"]["parity"] if row["cell"] == cell]
    assert judge(load(synthetic.balance(root)), components=KNOWN).exit_code == 0
    assert judge(load(synthetic.on_a_card()), components=KNOWN).exit_code == 0


def test_the_gate_holds_records_against_the_pins(tmp_path, capsys):
    """A whole forged component: described, with a source, and measured. The pins alone tell."""
    root = json.loads(re.sub(r"\bsem\.cayley\b", "sem.invented", json.dumps(synthetic.full())))
    record, pins = tmp_path / "record.json", tmp_path / "pins.json"
    record.write_text(json.dumps(root))
    pins.write_text(json.dumps({synthetic.cell(name, "baseline"): {} for name in KNOWN}))
    command = ["gate", str(record), "--pins", str(pins)]
    assert main([*command, "--filter", "sem.scan"]) == 1
    said = capsys.readouterr().out
    assert "sem.invented" in said and "no cell is pinned" in said
    assert main(["gate", str(record)]) == 0
