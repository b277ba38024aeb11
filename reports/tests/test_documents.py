"""The claims ledger and the coverage: nothing documented is left out, and nothing wrong is taken."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import synthetic
from test_render import contrast

from twinbench_reports.documents.arithmetic import recompute
from twinbench_reports.documents.coverage import coverage, coverage_finding, stages_text
from twinbench_reports.documents.load import load_documents, tree
from twinbench_reports.documents.measured import ledger_finding, ledger_rows
from twinbench_reports.errors import ReportError
from twinbench_reports.judge.judge import judge
from twinbench_reports.render.figures import stages
from twinbench_reports.render.figures.theme import DARK, LIGHT
from twinbench_reports.render.html import html_report
from twinbench_reports.render.twins import Twin, gather_twins

ROOT = Path(__file__).resolve().parents[2]
CLAIM = {"row": "energy_flow 1", "component": "energy_flow.energy_carrier", "document": "D0", "place": "3", "text": "t",
         "figure": "5x", "ratio": 5, "recomputed": "5", "verdict": "wrong: by half", "instead": "i",
         "measures": ["speedup"]}


def component(name, source, **more):
    return {"source": source, "component": name, **more}


@pytest.fixture
def plant(tmp_path):
    """A tree with these claims, and components with these claims in their spec.json."""

    def write(*claims, built=None, scenarios=(), trace=()):
        data = {
            "components": [component("energy_flow.energy_carrier", "energy_flow C07"),
                           component("energy_flow.simple_neuron", "energy_flow C06"),
                           component("trainer2.part", "trainer2 C10", part_of="trainer2.attention"),
                           component("trainer2.attention", "trainer2 C11"), component("sem.cayley", "sem C06")],
            "scenarios": [{"source": "energy_flow SC21", "name": "flow_vectorisation", "proves": "it is faster"},
                          {"source": "energy_flow SC22", "name": "occupancy_sweep", "proves": "cost follows"}],
            "trace": list(trace), "claims": list(claims)}
        (tmp_path / "ci").mkdir(exist_ok=True)
        (tmp_path / "ci/documented.json").write_text(json.dumps(data))
        for name, rows in (built or {}).items():
            folder = tmp_path / "src" / name.replace(".", "/")
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "spec.json").write_text(json.dumps({"claims": rows}))
        for source in scenarios:
            folder = tmp_path / "scenarios/energy_flow"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{source.split()[1]}.yaml").write_text(f"name: x\nsource: {source}\n")
        return tmp_path

    return write


def rows_of(root, record):
    return ledger_rows(load_documents(root), record.block, gather_twins(record.block))


def covered(root, record):
    found = coverage(load_documents(root), record.block, gather_twins(record.block))
    return {item.name: item for item in (*found.components, *found.scenarios)}


def claim(**changes):
    return {key: value for key, value in (CLAIM | changes).items() if value is not None}


def test_the_tree_is_found_and_every_sum_in_it_holds():
    documents = load_documents(tree())
    assert tree() == ROOT and len(documents.claims) == 95
    sums = [measure for one in documents.claims for measure in one.measures if measure.startswith("arithmetic")]
    assert len(sums) > 50  # each was recomputed by loading


@pytest.mark.parametrize("text", ["50 / 6 = 8.333", "2 ** -23 = 1.192e-7", "3 * (63 // 8) = 21", "-2 - 3 = -5"])
def test_sums_that_hold(text):
    assert recompute(text) == pytest.approx(float(text.split("=")[1]), rel=5e-3)


@pytest.mark.parametrize("text", ["50 / 6 = 10", "1 / 0 = 1", "x = 1", "__import__('os') = 1", "1", "= 1", "1 = one",
                                  "9 ** 9 ** 9 = 1", "(1).real = 1", "True = 1", "1e999 = 1", "1 = nan"])
def test_sums_that_do_not_or_are_none(text):
    with pytest.raises(ReportError, match="does not hold|is no arithmetic"):
        recompute(text)


@pytest.mark.parametrize("changes, said", [
    ({"place": None}, "no text 'place'"), ({"recomputed": ""}, "no text 'recomputed'"), ({"row": "one"}, "is no row"),
    ({"verdict": "bad"}, "no known word"), ({"measures": []}, "nothing says what measures"),
    ({"measures": ["stopwatch"]}, "no way to measure"), ({"measures": [3]}, "no way to measure"),
    ({"measures": ["arithmetic: 1 + 1 = 3"]}, "does not hold"), ({"component": None}, "stands with no component"),
    ({"scenario": "energy_flow SC21"}, "or with both"),
    ({"component": None, "scenario": "energy_flow SC21"}, "names no component"), ])
def test_a_row_that_is_wrong_is_refused_by_name(plant, changes, said):
    with pytest.raises(ReportError, match=said):
        load_documents(plant(claim(**changes)))


def test_a_claim_stands_in_one_place(plant):
    row = claim(component=None)
    name = "energy_flow.energy_carrier"
    assert load_documents(plant(built={name: [row, {"document": "D0"}]})).claims[0].component == name
    with pytest.raises(ReportError, match="is there twice"):
        load_documents(plant(claim(), built={name: [row]}))


@pytest.mark.parametrize("text", ["{}", "[]", '{"components": []}'])
def test_another_file_is_refused(tmp_path, text):
    (tmp_path / "ci").mkdir()
    (tmp_path / "ci/documented.json").write_text(text)
    with pytest.raises(ReportError, match="has no list"):
        load_documents(tmp_path)
    with pytest.raises(ReportError, match="cannot be read"):
        load_documents(tmp_path / "nowhere")


def test_a_measured_ratio_decides_a_claim(plant, load):
    name = "energy_flow.energy_carrier"  # 41x in the synthetic record
    record = load(synthetic.full())
    for ratio, decision in ((5, "meets"), (41.01, "unproven"), (50, "misses"), (None, "")):
        row, = rows_of(plant(built={name: [claim(component=None, ratio=ratio)]}), record)
        assert (row.state, row.decision) == ("measured", decision)
        assert "41.0×" in row.values[0].text and "cpu · fp32 · train" in row.values[0].text


def test_a_time_that_is_not_believed_decides_nothing(plant, load):
    name, root = "energy_flow.energy_carrier", synthetic.full()
    scenario = next(row for row in root["twinbench"]["scenarios"] if (row["speedup"] or {}).get("ratio"))
    scenario["source"] = "energy_flow SC21"
    measures = ["speedup", "scenario of energy_flow SC21"]
    folder = plant(built={name: [claim(component=None, measures=measures)]})
    believed, = rows_of(folder, load(root))
    assert believed.decision == "meets" and "faster" in believed.values[1].text
    root["twinbench"]["session"]["null_test"]["verdict"] = "slower"
    record = load(root)
    row, = rows_of(folder, record)
    assert row.values[0].state == "not in this record" and not row.decision
    assert row.values[1].state == "measured" and "faster" not in row.values[1].text
    assert covered(folder, record)[name].stage == "checked"


def test_each_measure_says_what_it_found(plant, load):
    root = synthetic.full()
    root["twinbench"]["modelled"] = [synthetic.modelled_row("energy_flow.energy_carrier")]
    root["twinbench"]["scenarios"][0]["source"] = "energy_flow SC21"
    record = load(root)
    name = "energy_flow.energy_carrier"

    def value(measure, built=(name, )):
        files = {one: [] for one in built}
        files[name] = [claim(component=None, measures=[measure])]
        return rows_of(plant(built=files, scenarios=["energy_flow SC22"]), record)[0].values[0]

    assert value("proof dispatches").text.startswith(f"{name} dispatches 7,680 → 9")
    assert value("proof scalar_reads").state == "not in this record"
    assert value("modelled").state == "modelled" and "40.0 µs on H200" in value("modelled").text
    assert value("modelled of energy_flow.simple_neuron").state == "not built"
    assert value("speedup of trainer2.part", (name, "trainer2.attention")).text.startswith("trainer2.attention 3.40×")
    assert value("scenario of energy_flow SC21").state == "measured"
    assert value("scenario of energy_flow SC22").state == "not in this record"
    assert value("nothing: why").state == "nothing measures it"
    assert value("arithmetic: 1 + 1 = 2").state == "recomputed"


def test_what_is_not_built_is_listed(plant, load):
    root = plant(claim(), claim(row="sem 1", component="sem.cayley", measures=["nothing: no way"]),
                 claim(row="sem 2", component="sem.cayley", measures=["arithmetic: 1 + 1 = 2"]))
    rows = rows_of(root, load(synthetic.full()))
    assert [row.state for row in rows] == ["not built", "nothing measures it", "nothing measures it"]
    assert ledger_finding(rows).startswith("Of 3 claims of the documents, 1 not built, 2 nothing measures it.")
    assert "3 wrong" in ledger_finding(rows)


def test_a_component_that_is_missing_a_part_is_at_most_checked_and_says_so(plant, load):
    root, name = plant(built={"energy_flow.energy_carrier": []}), "energy_flow.energy_carrier"
    whole = covered(root, load(synthetic.full()))[name]
    file = root / "ci/documented.json"
    data = json.loads(file.read_text())
    next(row for row in data["components"] if row["component"] == name)["missing"] = "the CUDA path"
    file.write_text(json.dumps(data))
    part = covered(root, load(synthetic.full()))[name]
    assert (whole.stage, part.stage) == ("measured", "checked")
    assert "missing" not in whole.note and part.note.endswith("missing: the CUDA path") and part.twin == whole.twin


def test_stages(plant, load):
    root = synthetic.full()
    block = root["twinbench"]
    tree_ = plant(built={"energy_flow.energy_carrier": [], "energy_flow.simple_neuron": [], "trainer2.attention": []},
                  scenarios=["energy_flow SC22"], trace=[{
                      "document": "D0", "item": "i", "components": ["energy_flow C07", "sem C06"],
                      "scenarios": ["energy_flow SC22"]}])

    def now():
        return {name: item.stage for name, item in covered(tree_, load(root)).items()}

    assert now() == {
        "energy_flow.energy_carrier": "measured", "energy_flow.simple_neuron": "measured", "trainer2.part": "measured",
        "trainer2.attention": "measured", "sem.cayley": "not built", "flow_vectorisation": "not built",
        "occupancy_sweep": "built"}
    found = coverage(load_documents(tree_), block, gather_twins(block))
    assert stages_text(found.trace[0].components) == "1 measured, 1 not built"
    assert coverage_finding(found) == ("Of 5 documented components 4 measured, 1 not built. "
                                       "Of 2 documented scenarios 1 built, 1 not built.")
    assert dict(found.counted())["energy_flow components"] == {"measured": 2}

    block["speedups"] = [row for row in block["speedups"] if row["component"] != "energy_flow.energy_carrier"]
    block["parity"] = [row for row in block["parity"] if not row["cell"].startswith("trainer2.attention")]
    next(row for row in block["parity"] if row["cell"].startswith("energy_flow.simple_neuron"))["verdict"] = "fail"
    scenario = block["scenarios"][0]
    scenario["source"], scenario["part"] = "energy_flow SC22", "half of it"
    assert now() == {
        "energy_flow.energy_carrier": "checked", "energy_flow.simple_neuron": "fails", "trainer2.part": "built",
        "trainer2.attention": "built", "sem.cayley": "not built", "flow_vectorisation": "not built",
        "occupancy_sweep": "checked"}
    scenario["part"] = ""
    assert now()["occupancy_sweep"] == "measured"
    scenario["verdict"] = "fail"
    assert now()["occupancy_sweep"] == "fails"
    scenario["verdict"] = "skip"
    assert now()["occupancy_sweep"] == "built"


def twin(ratio, floor, fraction=0.5, **speedup):
    timing = {"verdict": "pass", "median_s": 10.0, "gpu_median_s": 5.0, "floor_s": floor, "roofline_fraction": fraction,
              "impossible_below_s": 1.0}
    return Twin(("a.b", "cpu", "fp32", "train"), speedup={"ratio": ratio, **speedup},
                timings={"baseline": timing, "optimized": timing})


@pytest.mark.parametrize("found, share", [
    (twin(5.0, 2.0), 1.0), (twin(2.0, 0.0), None), (twin(2.0, 2.0), 0.625), (twin(0.5, 2.0), -1.25),
    (twin(2.0, 2.0, clock="gpu_span"), 5 / 6), (twin(None, 2.0), None), (twin(2.0, 2.0, fraction=None), None),
    (twin(2.0, 11.0), None), (Twin(("a.b", "cpu", "fp32", "train")), None)])
def test_the_share_of_the_gap_that_is_closed(found, share):
    assert found.gap_closed == (share if share is None else pytest.approx(share))


@pytest.mark.drawn
def test_the_page_holds_every_claim_and_every_item(load):
    record, documents = load(synthetic.full()), load_documents(ROOT)
    page = html_report(record, judge(record), documents=documents)
    ledger = page[page.index('<section id="ledger"'):page.index('<section id="coverage"')]
    shown = page[page.index('<section id="coverage"'):page.index('<section id="environment"')]
    assert len(re.findall(r'<th scope="row">\d+</th>', ledger)) == 95
    for word in {row.state for row in rows_of(ROOT, record)}:
        assert f'</span>{word}</span>' in ledger
    for item in (*documents.components, *documents.scenarios):
        assert f">{item['source']}</th>" in shown
    assert 0 < shown.count("not built</span>") < len(documents.components) + len(documents.scenarios)
    assert len(page.encode()) < 2_000_000
    assert page == html_report(record, judge(record), documents=load_documents(ROOT))


@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_numbers_on_bars_can_be_read(palette):
    for role in set(stages._ROLES.values()) - set(stages._PALE):
        assert contrast(palette.surface, getattr(palette, role)) >= 4.5, role


@pytest.mark.drawn
def test_failures_stand_beside_their_bar(plant, load):
    root = synthetic.full()
    next(row for row in root["twinbench"]["parity"] if "energy_carrier" in row["cell"])["verdict"] = "fail"
    block = load(root).block
    found = coverage(load_documents(plant(built={"energy_flow.energy_carrier": []})), block, gather_twins(block))
    drawing, = stages.coverage_drawings(found)
    assert "1 fails" in drawing.finding and ">2, 1 fails</text>" in drawing.inline_svg()


def test_a_page_without_a_tree_says_so(load):
    record = load(synthetic.full())
    page = html_report(record, judge(record))
    assert page.count("No source tree was given") == 2


@pytest.mark.drawn
def test_text_of_a_tree_is_escaped(plant, load):
    record = load(synthetic.full())
    root = plant(claim(text="<script>x</script>", place="<b>", recomputed="<i>", instead="<u>", figure="<s>"))
    page = html_report(record, judge(record), documents=load_documents(root))
    assert "&lt;script&gt;x" in page and not re.search(r"<(script|b|i|u|s)>", page)


def test_the_command_line(plant, save, cli, capsys):
    path = save(synthetic.full())
    root = plant(claim())
    assert cli("ledger", path, "--documents", root, "--width", 160) == 0
    assert re.search(r"energy_flow 1 +energy_flow.energy_carrier +5x +wrong +not built +t", capsys.readouterr().out)
    assert cli("ledger", path, "--markdown") == 0
    text = capsys.readouterr().out
    assert len(re.findall(r"^\| (?:energy_flow|trainer2|sem) \d+ \|", text, re.M)) == 95
    assert cli("html", path, "-o", path.parent / "r.html", "--documents", path.parent / "nowhere") == 2
    assert "documented.json" in capsys.readouterr().err
