"""Reading a record: what is refused, and that the message names file, place and remedy."""

from __future__ import annotations

import json

import pytest
import synthetic

from twinbench_reports.errors import ReportError
from twinbench_reports.load import load_record, schema_text


def test_the_schema_is_draft_07_and_refers_to_nothing_remote():
    schema = json.loads(schema_text())
    assert schema["$schema"] == "http://json-schema.org/draft-07/schema#"

    def references(node):
        if isinstance(node, dict):
            yield from ([node["$ref"]] if "$ref" in node else [])
            assert not {"$defs", "dependentRequired", "unevaluatedProperties", "prefixItems", "$anchor"} & node.keys()
            node = list(node.values())
        if isinstance(node, list):
            for child in node:
                yield from references(child)

    assert all(reference.startswith("#/definitions/") for reference in references(schema))


@pytest.mark.parametrize("build", [synthetic.empty, synthetic.full, synthetic.failing])
def test_synthetic_records_are_records(load, build):
    assert load(build()).block["schema_version"] == "1.4"


def break_at(root, path, value):
    node = root
    for key in path[:-1]:
        node = node[key]
    if value is KeyError:
        del node[path[-1]]
    else:
        node[path[-1]] = value


@pytest.mark.parametrize("path, value, place", [
    (("twinbench", "ledger"), KeyError, "$.twinbench"),
    (("twinbench", "surprise"), 1, "$.twinbench"),
    (("twinbench", "parity", 3, "verdict"), "passed", "$.twinbench.parity[3]"),
    (("twinbench", "parity", 0, "extra"), 1, "$.twinbench.parity[0]"),
    (("twinbench", "counters", 0, "values", "dispatches"), 1.5, "$.twinbench.counters[0].values.dispatches"),
    (("twinbench", "counters", 0, "layout"), {"views": -1}, "$.twinbench.counters[0].layout.views"),
    (("twinbench", "counters", 0, "layout"), {"veiws": 1}, "$.twinbench.counters[0].layout"),
    (("twinbench", "parity", 0, "cell"), "no cell", "$.twinbench.parity[0].cell"),
    (("twinbench", "scenarios", 0, "criteria", 0, "limit"), [1], "$.twinbench.scenarios[0].criteria[0].limit"),
    (("twinbench", "schema_version"), "2.0", "$.twinbench.schema_version"),
    (("twinbench", "schema_version"), "new", "$.twinbench.schema_version"),
    (("twinbench", "schema_version"), None, "$.twinbench.schema_version"),
    (("twinbench",), KeyError, "$"),
    (("context",), KeyError, "$"),
])
def test_a_broken_record_is_refused_with_its_place(save, path, value, place):
    root = synthetic.full()
    break_at(root, path, value)
    with pytest.raises(ReportError) as caught:
        load_record(save(root))
    assert caught.value.path.startswith(place)
    assert caught.value.file.endswith("record.json") and caught.value.remedy


def test_a_newer_major_is_refused_by_its_number(save):
    root = synthetic.empty()
    root["twinbench"]["schema_version"] = "2.3"
    with pytest.raises(ReportError, match=r"2\.3; this package reads 1\.x"):
        load_record(save(root))


def test_a_newer_minor_is_read_when_its_shape_is_known(load):
    root = synthetic.full()
    root["twinbench"]["schema_version"] = "1.7"
    assert load(root)


@pytest.mark.parametrize("token", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_are_not_json_are_refused(tmp_path, token):
    root = synthetic.full()
    root["twinbench"]["speedups"][0]["ratio"] = "PLANTED"
    path = tmp_path / "nan.json"
    path.write_text(json.dumps(root).replace('"PLANTED"', token))
    with pytest.raises(ReportError, match=f"{token} is not JSON"):
        load_record(path)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "3", '{"twinbench": 3}', '{"a": 1, "a": 2}', "\x00\xff"])
def test_what_is_no_record_is_refused(tmp_path, text):
    path = tmp_path / "bad.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(ReportError):
        load_record(path)


def test_extras_are_allowed_where_google_benchmark_has_them(load):
    root = synthetic.full()
    root["context"]["my_extra"] = {"a": 1}
    root["benchmarks"] = [{"name": "a/baseline/cpu/fp32/train", "real_time": 1.0, "dispatches": 3}]
    assert load(root)
