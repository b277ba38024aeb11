"""What is rendered: escaping, budgets, themes, contrast, and the same bytes twice."""

from __future__ import annotations

import copy
import dataclasses
import html.parser
import json
import re
import statistics
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
import synthetic

from twinbench_reports.documents.load import load_documents, tree
from twinbench_reports.judge.findings import Finding
from twinbench_reports.judge.judge import judge
from twinbench_reports.load import load_record
from twinbench_reports.render import numbers
from twinbench_reports.render.columns import Style, display_width, render_columns
from twinbench_reports.render.figures.scenarios import _panels
from twinbench_reports.render.figures.theme import DARK, LIGHT, SENTINEL
from twinbench_reports.render.html import all_drawings, html_report
from twinbench_reports.render.markdown import COMMENT_BUDGET, markdown
from twinbench_reports.render.table import table_text
from twinbench_reports.render.twins import gather_parity, gather_twins

EVIL = '<script>alert("x")</script>&\'|`@all`'


def render(record, before=None, documents=None):
    return html_report(record, judge(record, before), before, documents=documents)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "record.json"
    path.write_text(json.dumps(synthetic.failing()))
    return render(load_record(path), documents=load_documents(tree()))


class Structure(html.parser.HTMLParser):
    """Collects ids and links, and checks that elements close in order."""

    VOID = {"meta", "br", "path", "circle", "use"}

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.links, self.tags = [], [], [], []
        self.feed(text)
        self.close()

    def handle_startendtag(self, tag, attributes):
        self.note(tag, attributes)

    def handle_starttag(self, tag, attributes):
        self.note(tag, attributes)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag, self.getpos()

    def note(self, tag, attributes):
        self.tags.append(tag)
        for key, value in attributes:
            if key == "id":
                self.ids.append(value)
            if key in ("href", "src", "xlink:href"):
                self.links.append(value)


def test_the_page_is_one_well_formed_file_without_script_or_network(page):
    structure = Structure(page)
    assert not structure.open and "script" not in structure.tags and "img" not in structure.tags
    assert structure.links and all(link.startswith("#") for link in structure.links)
    assert {link[1:] for link in structure.links} <= set(structure.ids)
    assert len(structure.ids) == len(set(structure.ids))
    assert not re.search(r"@import|url\((?!#)|https?://(?!www\.w3\.org/)", page)


def test_sections_come_in_reading_order(page):
    wanted = [
        "do", "speedups", "claims", "counters", "parity", "device", "modelled", "roofline", "scenarios", "selftest",
        "ledger", "coverage", "environment", "data"]
    assert re.findall(r'<section id="([a-z]+)"', page) == wanted
    assert page.index('id="verdict"') < page.index('id="do"')


def test_failures_come_first_with_their_command(page):
    first = page[page.index('class="actions"'):]
    command = "build/cpu/bin/twinbench parity --filter &#39;^energy_flow\\.simple_neuron/optimized/cpu/fp32/train$&#39;"
    assert command in first[:2000]


def page_with(load, findings):
    record = load(synthetic.full())
    return html_report(record, dataclasses.replace(judge(record), exit_code=1, findings=findings))


def actions_of(load, findings):
    text = page_with(load, findings)
    return text[text.index('class="actions"'):text.index("</ol>")]


def test_alike_remarks_fold_on_the_page_as_in_the_terminal(load):
    def many(severity, count, words):
        return [Finding(severity, "ledger", f"{severity}.{words}/{index}", f"{words} {index} of 9", f"again {index}")
                for index in range(count)]

    page = actions_of(load, many("missing", 240, "lost") + many("inconclusive", 2, "open") + many("fail", 5, "bad"))
    assert page.count("<details>") == 1 and "237 more" in page and "37 more are in verdict.json" in page
    assert page.count('<li class="fail">') == 5 and page.count('<li class="missing">') == 3
    assert page.index("bad 0") < page.index("lost 0") < page.index("open 0")
    assert page.count("again ") == 5 + 3 + 200 + 2
    page = actions_of(load, many("fail", 60, "bad") + many("missing", 4, "lost"))
    assert page.count("<li class=") == 50 and "lost" not in page


def test_what_the_list_leaves_out_is_counted(load):
    findings = [Finding("fail", "parity", f"a.b/{index}", "m") for index in range(64)]
    text = page_with(load, findings)
    assert "<p>14 more are in verdict.json.</p>" in text


def test_every_figure_has_title_finding_and_table(page):
    svgs = re.findall(r"<svg [^>]*role=\"img\"[^>]*aria-labelledby=\"(\S+) (\S+)\">", page)
    assert len(svgs) >= 10
    for title, description in svgs:
        assert re.search(rf'id="{title}">[^<]+<', page) and re.search(rf'id="{description}">[^<]+<', page)
    for section in re.split(r"(?=<section )", page)[1:]:
        assert "<figure>" not in section or "<table>" in section


def test_documented_mistakes_show_what_was_measured_of_them(load):
    root = synthetic.full()
    assert "Documented mistakes" not in render(load(root))
    reason = "rejected as it must be: output 'x'; solved: the worst relative residual is 4.219"
    row = synthetic.parity_row("sem.scan", "baseline", "fp32", "specimen", 1, "pass", reason)
    root["twinbench"]["parity"].append(row)
    page = render(load(root))
    assert "Documented mistakes" in page and "the worst relative residual is 4.219" in page


def test_extrapolated_numbers_are_marked(page):
    assert page.count('class="mark-x">extrapolated') == 2


def test_light_and_dark(page):
    assert "prefers-color-scheme: dark" in page
    for palette in (LIGHT, DARK):
        for role, colour in asdict(palette).items():
            assert f"--{role}:{colour}" in page


def test_figures_use_variables_only(page):
    for svg in re.findall(r"<svg xmlns.*?</svg>", page, flags=re.S):
        assert not set(re.findall(r"#[0-9a-f]{6}\b", svg)), "a colour that no theme can change"
        for style in re.findall(r'<text style="([^"]*)"', svg):
            assert "fill: var(--" in style, "text in Matplotlib's black"
        assert "DejaVu Sans', sans-serif" in svg
    assert not any(colour in page for colour in asdict(SENTINEL).values())


def luminance(colour):
    channels = [int(colour[index:index + 2], 16) / 255 for index in (1, 3, 5)]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    bright, dim = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_contrast(palette):
    for ground in (palette.surface, palette.stripe):
        assert min(contrast(text, ground) for text in (palette.ink, palette.muted)) >= 4.5
        assert min(
            contrast(mark, ground) for mark in (palette.blue, palette.vermillion, palette.green, palette.purple)) >= 3


@pytest.mark.drawn
def test_names_are_escaped_everywhere(load):
    root = synthetic.failing()
    evil = EVIL.replace("/", "").replace(" ", "")
    text = json.dumps(root).replace("sem.scan", json.dumps(evil)[1:-1])
    root = json.loads(text)
    root["twinbench"]["parity"][8]["reason"] = EVIL
    root["twinbench"]["scenarios"][0]["name"] = EVIL
    record = load(root)
    page = render(record)
    assert "<script" not in page and "&lt;script&gt;" in page
    Structure(page)
    assert "<script" not in markdown(record, judge(record)) and "@all" not in markdown(record, judge(record))


def test_the_same_input_gives_the_same_bytes_in_another_process(save, page):
    path = save(synthetic.failing())
    code = "import sys; from twinbench_reports.cli import main; sys.exit(main(sys.argv[1:]))"
    for seed, out in (("1", "one.html"), ("2", "two.html")):
        subprocess.run(
            [sys.executable, "-c", code, "html",
             str(path), "-o", str(path.parent / out)], check=True, capture_output=True, env={
                 "PYTHONHASHSEED": seed,
                 "PYTHONPATH": str(Path(__file__).parents[1]),
                 "PATH": "",
                 "TZ": f"UTC{seed}",
                 "HOME": str(path.parent)})
    one, two = ((path.parent / out).read_bytes() for out in ("one.html", "two.html"))
    assert one == two == page.encode()


def test_an_empty_record_renders(load):
    record = load(synthetic.empty())
    page = render(record)
    Structure(page)
    assert "nothing was measured" in page and "<figure>" not in page and page.count('class="absent"') >= 5


@pytest.mark.drawn
@pytest.mark.parametrize("section", ["parity", "counters", "proofs", "timings", "speedups", "scenarios", "selftest"])
def test_one_section_alone_renders(load, section):
    record = load(synthetic.only(synthetic.full(), section))
    Structure(render(record))
    assert markdown(record, judge(record)) and table_text(record, judge(record), Style())


@pytest.mark.drawn
def test_rows_without_numbers_render(load):
    root = synthetic.full()
    block = root["twinbench"]
    for row in block["speedups"]:
        row.update(ratio=None, lower=None, upper=None, verdict="inconclusive", reason="throttled", log_ratios=[])
    for row in block["timings"]:
        row.update(median_s=None, q1_s=None, q3_s=None, minimum_s=None, floor_s=None, impossible_below_s=None,
                   roofline_fraction=None, bound=None, n=0, verdict="error", reason="crash")
    for row in block["proofs"]:
        row["baseline"]["measured"] = row["optimized"]["measured"] = None
    for row in block["parity"]:
        for output in row["outputs"]:
            output.update(worst_ratio=None, max_absolute_error=None, max_relative_error=None)
    block["scenarios"][0].update(speedup=None)
    block["scenarios"][0]["variants"][0].update(seconds_per_step=None, samples_s=[None, None], measured_flows=None)
    record = load(root)
    Structure(render(record))
    assert markdown(record, judge(record)) and table_text(record, judge(record), Style())


def test_the_worst_ratio_is_that_of_all_rows_that_were_judged():
    """The failing one's above all; those that were not judged have none."""
    block = synthetic.full()["twinbench"]
    rows = [row for row in block["parity"] if row["verdict"] == "pass"][:1]
    worse, unjudged = copy.deepcopy(rows[0]), copy.deepcopy(rows[0])
    worse["verdict"], unjudged["verdict"] = "fail", "error"
    for row, ratio in ((rows[0], 0.5), (worse, 7.5), (unjudged, 99.0)):
        row["outputs"] = [{**row["outputs"][0], "name": "y", "worst_ratio": ratio, "max_absolute_error": ratio}]
    for order in ([rows[0], worse, unjudged], [unjudged, worse, rows[0]]):
        view, = gather_parity({**block, "parity": order})
        assert (view.worst_ratio, view.worst_output, view.max_absolute) == (7.5, "y", 7.5)
        assert view.verdicts == {"pass": 1, "fail": 1, "error": 1, "skip": 0} and view.verdict == "error"


@pytest.mark.parametrize("value, said", [
    (1023, "1,023 B"), (1024, "1.00 KiB"), (1536, "1.50 KiB"), (2**20, "1.00 MiB"), (5 * 2**19, "2.50 MiB"),
    (2**30 - 2**20, "1,020 MiB"), (2**30, "1.00 GiB"), (-(2**20), "-1.00 MiB"), (None, numbers.DASH)])
def test_sizes_are_those_of_powers_of_two(value, said):
    assert numbers.binary_size(value) == said


@pytest.mark.drawn
def test_zero_counters_and_ratios_draw(load):
    root = synthetic.full()
    for row in root["twinbench"]["proofs"]:
        for side in ("baseline", "optimized"):
            row[side] = {"expected": 0, "measured": 0}
    Structure(render(load(root)))


def test_markdown_keeps_its_budget_and_says_so(load):
    root = synthetic.full()
    for index in range(1200):
        row = synthetic.parity_row(f"pipeline.component_{index}", "optimized", "fp32", "oracle", 2.0, "fail", "é" * 50)
        root["twinbench"]["parity"].append(row)
    record = load(synthetic.balance(root))
    verdict = judge(record)
    for budget in (2_000, COMMENT_BUDGET, 100_000):
        text = markdown(record, verdict, budget)
        assert len(text.encode()) <= budget and re.search(r"[\d,]+ more lines are left out", text)
        assert text.index("**fail**") < 600
    short = load(synthetic.full())
    assert "left out" not in markdown(short, judge(short))


def test_markdown_tables_are_whole(load):
    root = synthetic.full()
    root["twinbench"]["components"][0]["claims"][0]["text"] = "a | b\nc"
    root["twinbench"]["speedups"][0]["reason"] = "x | y"
    record = load(root)
    for line in markdown(record, judge(record)).splitlines():
        if line.startswith("| ") and "worst ratio" not in line:
            assert line.endswith(" |")


def test_the_table_fits_its_width(load):
    record = load(synthetic.failing())
    for width in (60, 80, 120, 200):
        lines = table_text(record, judge(record), Style(width)).splitlines()
        rows = [line for line in lines if "/cpu/" in line or "─" in line or "…" in line]
        assert rows and all(display_width(line) <= width for line in rows if not line.startswith(("fail", " ", "AMD")))
    assert "\x1b[" in table_text(record, judge(record), Style(120, colour=True))


def test_columns_cut_in_the_middle_and_keep_control_characters_out():
    text = render_columns(("name", "value"), [("a" * 80 + "/end", "\x1b[2J")], Style(60))
    assert "…" in text and "/end" in text and "\x1b" not in text


@pytest.mark.drawn
def test_figures_as_files(load, tmp_path):
    drawing = all_drawings(load(synthetic.full()))["claims"][0]
    svg, png = drawing.write(tmp_path)
    assert "prefers-color-scheme:dark" in svg.read_text() and png.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("value, text", [(None, "–"), (0, "0"), (14.23, "14.2"), (0.93, "0.930"), (1234.5, "1,230"),
                                         (99.96, "100"), (1e-7, "1.00e-7"), (float("nan"), "–"), (-3, "-3.00")])
def test_three_significant_digits(value, text):
    assert numbers.significant(value) == text


@pytest.mark.parametrize("value, text", [(None, "–"), (0, "0 s"), (1.5, "1.50 s"), (2e-3, "2.00 ms"),
                                         (3.3e-6, "3.30 µs"), (5e-9, "5.00 ns")])
def test_durations(value, text):
    assert numbers.seconds(value) == text


def test_the_library_variant_is_shown_as_the_program_records_it(load):
    """The program pairs library with optimized; a report that looked for another pair showed none at all."""
    root = synthetic.full()
    row = next(row for row in root["twinbench"]["speedups"] if row["from"] == "library")
    synthetic.measured(row, 1.13, 0.03)
    record = load(root)
    twin = next(twin for twin in gather_twins(record.block) if twin.library == row)
    assert twin.library_speedup == pytest.approx(twin.ratio / 1.13)
    text = table_text(record, judge(record), Style(width=400, colour=False))
    assert "1.13× faster" in text
    assert f"[{row['lower']:.2f}, {row['upper']:.2f}]" in html_report(record, judge(record), None)


def test_a_share_of_a_roof_that_does_not_bind_is_not_shown(load):
    root = synthetic.full()
    name = root["twinbench"]["timings"][1]["cell"]
    root["twinbench"]["timings"][1].update(roofline_fraction=3.8, impossible_below_s=None)
    twin = next(twin for twin in gather_twins(load(root).block)
                if twin.timings.get("optimized", {}).get("cell") == name)
    assert twin.roofline("optimized") is None and twin.roofline("baseline") is not None


def test_a_scenario_says_what_it_is_of_and_an_older_record_does_not_have_to(load):
    record = load(synthetic.full())
    page = html_report(record, judge(record), None)
    assert "energy_flow SC05 · growth · cpu" in page and "every step takes longer than the one before" in page
    older = synthetic.full()
    for key in ("experiment", "source", "part", "tier", "shows"):
        del older["twinbench"]["scenarios"][0][key]
    record = load(older)
    page = html_report(record, judge(record), None)
    assert "energy_flow · cpu" in page and "Run again" not in page


def test_a_scenario_that_ran_again_says_by_what_it_had_failed(load):
    root = synthetic.full()
    root["twinbench"]["scenarios"][0]["failed_before"] = ["speedup.lower >= 1: 0.7", "speedup.lower >= 1: 0.8"]
    record = load(root)
    page = html_report(record, judge(record), None)
    assert "times alone had failed: speedup.lower &gt;= 1: 0.7; then speedup.lower &gt;= 1: 0.8." in page


def test_steps_of_fewer_flows_are_drawn_as_whole_steps():
    """Drawn as measured, an extrapolated baseline looks faster than the optimized variant that took all flows."""
    row = synthetic.scenario()
    (_, _, series), *_ = _panels(row)
    baseline, optimized = (line for _, line in series)
    assert min(baseline) > max(optimized)
    assert statistics.median(baseline) == pytest.approx(row["variants"][0]["seconds_per_step"])


def test_a_device_shows_where_its_speedup_comes_from(load):
    record = load(synthetic.on_device())
    page = html_report(record, judge(record), None)
    parts = page[page.index("Where the speedups come from"):page.index("id=\"claims\"")]
    for shown in ("12.0×", "1.50×", "4.00×", "2.00×", "25.0 %", "7.00 µs", "1,234 MHz", "the busy time is unknown",
                  "256 scalar reads", "baseline: a run waits for the device: no graph"):
        assert shown in parts, shown
    assert "gpu_span" in page and "host_wall" in page
    assert "an empty pair of marks 1.50 µs" in page and "a read after the flush is not slower" in page
    assert "gemm_bf16: made up" in page
    table = table_text(record, judge(record), Style(width=400, colour=False))
    assert "host × gaps × kernels" in table and "1.50 × 4.00 × 2.00" in table and "1.50 × – × –" in table


def test_ceilings_stand_beside_the_data_sheet(load):
    record = load(synthetic.on_device())
    page = html_report(record, judge(record), None)
    rows = page[page.index("Ceilings measured on this machine"):]
    for shown in ("2.00 TB/s", "4.00 TB/s", "50.0 %", "made-up data sheet",
                  "is not in harness/device/data_sheets.json", "2.50 µs"):
        assert shown in rows, shown


def test_a_record_without_a_device_has_no_such_columns(load):
    record = load(synthetic.full())
    assert "Where the speedups come from" not in html_report(record, judge(record), None)
    assert "host × gaps × kernels" not in table_text(record, judge(record), Style(width=400, colour=False))
