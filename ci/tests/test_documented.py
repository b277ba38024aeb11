"""ci/documented.json, what the specifications document, against itself and against what the program has."""
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from twinbench_reports.documents.load import MEASURE, load_documents

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTED = json.loads((ROOT / "ci/documented.json").read_text())
# How many rows the claims ledger of each specification has.
LEDGERS = {"energy_flow": 41, "sem": 26, "trainer2": 28}
SOURCE = re.compile(r"(energy_flow|trainer2|sem) (C|SC|S)\d\d?")


def listed() -> dict[str, dict]:
    program = os.environ["TWINBENCH_PROGRAM"]
    rows = json.loads(subprocess.run([program, "list", "--json"], capture_output=True, text=True, check=True).stdout)
    rows = rows if isinstance(rows, list) else rows["components"]
    return {row["id"]: row for row in rows}


def test_every_component_and_scenario_is_there_once():
    for kind, count in (("components", 88), ("scenarios", 84)):
        sources = [row["source"] for row in DOCUMENTED[kind]]
        assert len(sources) == len(set(sources)) == count
        assert all(SOURCE.fullmatch(source) for source in sources)
    names = [row["component"] for row in DOCUMENTED["components"]]
    assert (len(names) == len(set(names))
            and all(re.fullmatch(r"(energy_flow|trainer2|sem)\.[a-z0-9_]+", name) for name in names))


def test_parts_belong_to_a_component_that_stands_alone():
    """Two sections that are one function, its composed and its fused form, are one component: one row is part of the
    other's."""
    rows = {row["component"]: row for row in DOCUMENTED["components"]}
    for row in rows.values():
        if "part_of" in row:
            whole = rows[row["part_of"]]
            assert "part_of" not in whole and whole["kind"] == row["kind"], row["source"]
            assert set(row["dtypes"]) <= set(whole["dtypes"]), row["source"]


def test_features_and_experiments_are_from_the_closed_lists():
    for row in DOCUMENTED["components"]:
        assert set(row["features"]) <= set(DOCUMENTED["features"]), row["source"]
        assert row["kind"] in ("kernel", "host") and set(row["dtypes"]) <= {"fp64", "fp32", "bf16", "tf32", "fp16"}
    for row in DOCUMENTED["scenarios"]:
        assert row["experiment"] in DOCUMENTED["experiments"], row["source"]
        assert row["tier"] in ("smoke", "std", "full")


def test_the_contract_has_a_place_for_every_feature():
    """Each feature names what carries it, and every C++ name of those stands in src/."""
    headers = "\n".join(path.read_text() for path in (ROOT / "src").glob("*.h"))
    for tag, feature in DOCUMENTED["features"].items():
        assert feature["meaning"] and feature["contract"], tag
        for name in re.findall(r"\b(?:k[A-Z]\w+|\w+::(\w+)|(\w+)\(\w*\)|(\w+_option|exact_output|finish_inputs))",
                               feature["contract"]):
            for part in filter(None, name):
                assert re.search(rf"\b{part}\b", headers), f"{tag}: src/ has no {part}"


def test_what_is_built_is_as_documented():
    rows = {row["component"]: row for row in DOCUMENTED["components"]}
    kinds = dict(re.findall(r"^TWINBENCH_COMPONENT\((\w+, \w+), (kernel|composite|host)",
                            (ROOT / "src/components.def").read_text(), re.M))
    for component, row in listed().items():
        assert component in rows, f"{component} is in no specification: ci/documented.json does not know it"
        assert "part_of" not in rows[component], f"{component} is part of {rows[component].get('part_of')}"
        for part in rows.values():
            if component in (part["component"], part.get("part_of")):
                assert part["source"] in row["source"], f"{component} does not name {part['source']}"
        # A kernel component may stand with its host half alone where it says what it is missing, and only then.
        built = kinds[component.replace(".", ", ")].replace("composite", "kernel")
        assert built == rows[component]["kind"] or (built == "host" and "missing" in rows[component]), component
        assert set(row["dtypes"]) <= set(rows[component]["dtypes"]), component
        assert any(case["pass"] == "backward" for case in row["cases"]) <= rows[component]["backward"], component
        assert ("library" in row["variants"]) <= rows[component]["library"], component
        if rows[component]["library"]:
            assert "library" in row["variants"] or row.get("no_library"), component


def test_every_row_of_the_claims_ledgers_is_there_once():
    wanted = [f"{pipeline} {number + 1}" for pipeline, count in LEDGERS.items() for number in range(count)]
    assert [claim.row for claim in load_documents(ROOT).claims] == wanted and len(wanted) == 95


def test_every_claim_stands_with_something_documented_and_is_measured_by_something_documented():
    documents = load_documents(ROOT)
    components = {row["component"] for row in DOCUMENTED["components"]}
    scenarios = {row["source"] for row in DOCUMENTED["scenarios"]}
    assert documents.built <= components and documents.built_scenarios <= scenarios
    for claim in documents.claims:
        assert claim.component in components or claim.scenario in scenarios, claim.row
        for measure in claim.measures:
            found = MEASURE.fullmatch(measure)
            assert not found["scenario"] or found["scenario"] in scenarios, f"{claim.row}: {measure}"
            assert not found["component"] or found["component"] in components, f"{claim.row}: {measure}"
            whole = documents.whole(found["component"] or claim.component)
            if found["counter"] and whole in documents.built:
                spec = json.loads((ROOT / "src" / whole.replace(".", "/") / "spec.json").read_text())
                assert found["counter"] in spec["proof"], f"{claim.row}: {whole} proves no {found['counter']}"


def test_the_trace_names_documented_things_and_all_of_its_specification():
    for key, rows in (("components", DOCUMENTED["components"]), ("scenarios", DOCUMENTED["scenarios"])):
        named = {source for row in DOCUMENTED["trace"] for source in row[key]}
        assert named == {row["source"] for row in rows if row["source"].startswith("energy_flow ")}


@pytest.mark.parametrize("lost", ["energy_flow 7", "sem 26", "trainer2 7"])
def test_a_claim_without_a_row_is_found(tmp_path, lost):
    """In a copy of the tree one claim has lost its row; the first test above is what finds it."""
    (tmp_path / "ci").mkdir()
    for file in (ROOT / "ci/documented.json", *ROOT.glob("src/*/*/spec.json")):
        copy = tmp_path / file.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)
        data = json.loads(copy.read_text())
        data["claims"] = [row for row in data["claims"] if row.get("row") != lost]
        copy.write_text(json.dumps(data))
    assert lost not in [claim.row for claim in load_documents(tmp_path).claims]
