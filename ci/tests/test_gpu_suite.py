"""The GPU suite over a scripted program: budget, order, resume, hangs, whole records, sanitizers, exit codes."""
import json
import os
import re
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from threading import Event

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "ci"), str(ROOT / "reports/tests")]

from fake_suite import Suite  # noqa: E402
from suite import host_counts, results, sanitizer, second_timer  # noqa: E402
from suite import main as script  # noqa: E402
from suite.engines import Bench  # noqa: E402
from suite.errors import SuiteError  # noqa: E402
from suite.files import write_whole  # noqa: E402
from suite.plan import GROUPS, Step  # noqa: E402
from suite.process import run_limited  # noqa: E402
from suite.state import State, StepResult  # noqa: E402
from twinbench_reports.load import load_record  # noqa: E402

@pytest.fixture
def suite(tmp_path):
    return Suite(tmp_path)


def test_everything_passes_in_the_order_of_value_and_what_returns_is_small_and_whole(suite):
    run = suite("--work", str(suite.folder / "work"), as_user=True)
    listed = suite("--list", out=suite.folder / "elsewhere").stdout.split()
    groups = list(dict.fromkeys(name.split(".")[0] for name in listed[listed.index("ceilings"):]))
    assert groups == list(GROUPS[1:-1]), "the most valuable first; unit tests only where a manifest names some"
    verdicts = suite.verdicts()
    assert {name for name, verdict in verdicts.items() if verdict == "fail" or verdict == "error"} == set(), run.stdout
    assert verdicts["sanitizer.memcheck.probe"] == verdicts[
        "sanitizer.synccheck.energy_flow.second"] == "pass", run.stdout
    # Never pinned on this device: counted, candidates kept, and no pass.
    assert verdicts["counters.energy_flow.first"] == "inconclusive" and run.returncode == 3
    returned = [path for path in suite.out.rglob("*") if path.is_file()]
    assert len(returned) <= 8 and all(path.parent == suite.out and path.stat().st_size < 16 << 20 for path in returned)
    merged = load_record(suite.out / "record.json").block
    assert {row["check"] for row in merged["parity"]} >= {"oracle", "memcheck", "racecheck", "initcheck", "synccheck"}
    assert "<html" in (suite.out / "report.html").read_text()[:300].lower()
    assert "# GPU suite" in (suite.out / "summary.md").read_text()
    with tarfile.open(suite.out / "results.tar.gz") as archive:
        assert {"state.json", "steps/parity.energy_flow.first.json",
                "steps/parity.energy_flow.first.log"} <= set(archive.getnames())
    calls = (suite.folder / "calls").read_text()
    assert "--null-cells 10 --null-blocks 40" in calls and calls.count(
        "--session-from") >= 3, "roofs and null test are measured once"


def test_exit_code_0_only_where_everything_passed(suite):
    only = "^(ceilings|parity)"
    assert suite("--only", only, as_user=True).returncode == 0
    assert suite("--only", only).returncode == 2, "it must not write over the earlier run"
    assert suite("--only", only, "--resume").returncode == 0


def test_a_failure_outranks_an_error_and_an_open_end(suite):
    run = suite("--only", "^parity", behaviour={
        "parity.energy_flow.first": "fail",
        "parity.energy_flow.second": "crash"})
    assert run.returncode == 1 and suite.verdicts()["parity.energy_flow.first"] == "fail"
    assert suite.verdicts()["parity.energy_flow.second"] == "error"
    assert "SIGSEGV" in suite.reason("parity.energy_flow.second")
    assert results.exit_code_of([StepResult("a", "done", "error"), StepResult("b", "done", "inconclusive")], []) == 2
    assert results.exit_code_of([StepResult("a", "done", "pass", record="a.json")],
                                ["b"]) == 3, "something planned did not run"
    assert results.exit_code_of([StepResult("a", "skipped", "skip", "why")], []) == 3, "nothing measured is never 0"


def test_a_hung_step_is_killed_with_all_it_started_and_the_rest_runs(suite):
    start = time.monotonic()
    run = suite("--only", "^parity", "--step-limit", "1.5", behaviour={"parity.energy_flow.first": "hang"})
    assert time.monotonic() - start < 20 and run.returncode == 2
    assert "no end within its limit" in suite.reason("parity.energy_flow.first")
    assert suite.verdicts()["parity.energy_flow.second"] == "pass"
    child = int((suite.folder / "calls.child").read_text())
    status = Path(f"/proc/{child}/status")
    assert not status.exists() or "State:\tZ" in status.read_text(), "the program's own child survived"
    assert not suite("--only", "^parity",
                     "--resume").stdout.count("parity.energy_flow.first ..."), "a step that hung is not tried again"


def test_half_a_record_is_no_record(suite):
    run = suite("--only", "^parity.*(first|second)$", behaviour={
        "parity.energy_flow.first": "half",
        "parity.energy_flow.second": "killed_while_writing"})
    assert run.returncode == 2 and suite.verdicts()["merge"] == "inconclusive"
    assert "bad_record" in suite.reason("parity.energy_flow.first")
    assert "SIGKILL" in suite.reason("parity.energy_flow.second")
    steps = suite.out / "work/steps"
    assert (steps / "parity.energy_flow.first.json.rejected").is_file()
    assert not list(steps.glob("*.json")) and not list(steps.glob("*.partial.*")), "everything called a record is one"


def test_the_budget_cuts_resume_goes_on_and_no_result_is_lost(suite):
    start = time.monotonic()
    only = "^(ceilings|parity.*(first|second)$|selftest)"
    run = suite("--only", only, behaviour={"parity.energy_flow.second": "slow"}, minutes=0.08)
    assert time.monotonic() - start < 20 and run.returncode == 3
    summary = suite.summary()
    assert summary["not_run"] == ["selftest"]
    assert suite.reason("parity.energy_flow.second") == "the time budget ended first"
    assert len(load_record(suite.out
                           / "record.json").block["parity"]) > 0, "what was measured before the cut is in the record"
    (suite.folder / "calls").unlink()
    run = suite("--only", only, "--resume")
    calls = (suite.folder / "calls").read_text()
    assert run.returncode == 0 and suite.summary()["not_run"] == [], run.stdout
    assert "ceilings" not in calls and "first" not in calls and "second" in calls and "selftest" in calls
    assert next(step["attempts"] for step in suite.summary()["steps"]
                if step["name"] == "parity.energy_flow.second") == 2


def test_steps_without_times_run_side_by_side_and_their_tools_probes_before_them(suite):
    start = time.monotonic()
    behaviour = {"parity.energy_flow.first": "brief", "parity.energy_flow.second": "brief"}
    run = suite("--only", "^(ceilings|parity|sanitizer[.]memcheck|bench)", "--jobs", "4", behaviour=behaviour)
    assert run.returncode == 0, run.stdout
    lines = [line.split(" s  ", 1)[1] for line in run.stdout.splitlines() if " s  " in line]
    first, second = (lines.index(f"parity.energy_flow.{name} ...") for name in ("first", "second"))
    ended = [number for number, line in enumerate(lines) if line.startswith("parity.") and ": pass" in line]
    assert max(first, second) < min(ended), "both began before one of them ended"
    probe = next(number for number, line in enumerate(lines) if line.startswith("sanitizer.memcheck.probe: pass"))
    assert probe < lines.index("sanitizer.memcheck.energy_flow.first ..."), lines
    timed = [number for number, line in enumerate(lines) if line.startswith("bench.")]
    assert max(ended) < min(timed) and "..." in lines[timed[0]] and lines[timed[1]].startswith(
        lines[timed[0]].removesuffix(" ...")), "what takes times runs alone"
    assert time.monotonic() - start < 60


def test_a_call_that_is_killed_has_left_what_it_had(suite, monkeypatch):
    class Killed(BaseException):
        pass

    def killed(*_):
        raise Killed

    monkeypatch.setattr(script, "PACK_EVERY_S", 0.0)
    monkeypatch.setattr(script, "make_report", killed)
    with pytest.raises(Killed):
        suite("--only", "^parity")
    with tarfile.open(suite.out / "results.tar.gz") as archive:
        assert {"state.json", "steps/parity.energy_flow.first.json"} <= set(archive.getnames())


def test_without_a_device_it_says_so_and_stops(suite):
    run = suite(behaviour={"energy_flow.first/optimized/cuda/fp32/tiny": "missing_device"})
    assert run.returncode == 2 and "missing_device" in suite.reason("bits.energy_flow.first")
    assert len(suite.summary()["not_run"]) > 10


def test_a_planted_bug_that_is_not_reported_makes_clean_results_inconclusive(suite):
    only = "^sanitizer[.](memcheck|racecheck|initcheck)"
    run = suite("--only", only, sanitizer={
        "memcheck": "silent",
        "racecheck": "accuses_all",
        "found": "energy_flow.second"})
    verdicts = suite.verdicts()
    assert verdicts["sanitizer.memcheck.probe"] == verdicts["sanitizer.racecheck.probe"] == "inconclusive"
    assert verdicts["sanitizer.initcheck.probe"] == "pass"
    assert verdicts["sanitizer.memcheck.energy_flow.first"] == "inconclusive"
    assert "planted" in suite.reason("sanitizer.memcheck.energy_flow.first")
    assert verdicts["sanitizer.initcheck.energy_flow.first"] == "pass"
    assert verdicts["sanitizer.initcheck.energy_flow.second"] == "fail" and run.returncode == 1
    rows = {
        (row["cell"].split("/")[0], row["check"]): row
        for row in load_record(suite.out / "record.json").block["parity"]}
    assert rows["energy_flow.first", "memcheck"]["verdict"] == "skip"
    assert rows["energy_flow.second", "initcheck"]["verdict"] == "fail"


def test_a_refused_device_skips_every_tool_with_the_reason(suite):
    run = suite("--only", "^sanitizer", sanitizer={"refuse": True})
    assert set(verdict for name, verdict in suite.verdicts().items() if name.startswith("sanitizer")) == {"skip"}
    assert "Device not supported" in suite.reason("sanitizer.synccheck.energy_flow.second") and run.returncode == 3


def test_a_tool_that_checked_nothing_is_no_clean_result(suite):
    suite("--only", "^sanitizer[.]memcheck", sanitizer={"never_ran": "energy_flow.second"})
    assert suite.verdicts()["sanitizer.memcheck.energy_flow.second"] == "error"
    assert sanitizer.read_output("========= COMPUTE-SANITIZER\n", 0).verdict == "broken", "no summary line, no verdict"
    assert sanitizer.read_output("========= ERROR SUMMARY: 0 errors\n", 0).verdict == "clean"
    hazards = "========= RACECHECK SUMMARY: 2 hazards displayed (2 errors, 0 warnings)\n"
    assert sanitizer.read_output(hazards, 86).verdict == "found"
    own_end = "========= Internal Sanitizer Error: The Sanitizer failed to handle a hardware exception.\n"
    assert sanitizer.read_output(own_end + hazards, 86).verdict == "broken"


def test_what_libtorch_reads_uninitialised_is_told_and_what_we_read_fails():
    read = "========= Uninitialized __global__ memory read of size 4 bytes\n=========     at void {}+0x3c0\n"
    ended = "========= ERROR SUMMARY: {} errors\n"
    library, ours = read.format("at::native::copy_kernel"), read.format("twinbench::kernels::simt::run<Embed>")
    assert sanitizer.read_output(library + ended.format(1), 86, of_library_too=False).verdict == "clean"
    assert sanitizer.read_output(library + ended.format(1), 86).verdict == "found"
    for text in (library + ours + ended.format(2), library + ended.format(2) + "========= ERROR SUMMARY: 1 errors were "
                 "not printed. Use --print-limit option to adjust the number of printed errors\n"):
        found = sanitizer.read_output(text, 86, of_library_too=False)
        assert found.verdict == "found" and found.reason.startswith("2 reported")


def test_no_sanitizer_is_a_skip_with_its_reason(suite, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr(sanitizer, "TOOLKIT", "/nonexistent/compute-sanitizer")
    program, reason = sanitizer.find_sanitizer(tmp_path)
    assert program == "" and "nor in the bundle" in reason
    (tmp_path / "sanitizer").mkdir()
    (tmp_path / "sanitizer/compute-sanitizer").write_text("")
    assert sanitizer.find_sanitizer(tmp_path)[0] == str(tmp_path / "sanitizer/compute-sanitizer")
    suite("--only", "^sanitizer.memcheck", device="cpu")
    assert suite.verdicts()["sanitizer.memcheck.probe"] == "skip"
    assert "CUDA kernels only" in suite.reason("sanitizer.memcheck.energy_flow.first")


CELL = "energy_flow.first/optimized/cuda/fp32/tiny"


def test_before_anything_else_the_card_is_held_against_simt(suite):
    run = suite("--only", "^bits", behaviour={CELL: "other_bits"})
    first, second = (next(step for step in suite.summary()["steps"] if step["name"] == f"bits.energy_flow.{name}")
                     for name in ("first", "second"))
    assert first["verdict"] == second["verdict"] == "pass", run.stdout
    assert first["detail"]["classes"] == {"same_bits": 3, "close": 1, "different": 0}
    assert first["detail"]["cells"][CELL.replace("cuda", "simt")].startswith("close (output.y: check: ok")
    assert second["detail"]["classes"] == {"same_bits": 4, "close": 0, "different": 0}
    calls = (suite.folder / "calls").read_text().splitlines()
    assert [call.split()[0] for call in calls[:2]] == ["list", "list"]
    assert calls[2].startswith("dump energy_flow.first/optimized/simt/") and sum("check" in call for call in calls) == 1


def test_an_answer_that_the_cell_does_not_accept_fails_and_other_inputs_compare_nothing(suite):
    run = suite("--only", "^bits", behaviour={
        CELL: "other_bits",
        "check": "fail",
        CELL.replace("first", "second"): "other_inputs"})
    assert run.returncode == 1 and suite.verdicts()["bits.energy_flow.first"] == "fail"
    assert "on the card other than on simt: energy_flow.first/optimized/simt/fp32/tiny" in suite.reason(
        "bits.energy_flow.first")
    assert suite.verdicts()["bits.energy_flow.second"] == "error"
    assert "the inputs ['input.x'] differ" in suite.reason("bits.energy_flow.second")


def counters_record(**changes):
    row = {
        "cell": CELL, "verdict": "pass", "launches_by_kernel": {"first::Forward": 2, "first::Never": 0},
        "products_by_shape": {"mm 4x4x4 fp32": 1}, "device_activity": {"runs": 3, "kernels": 9}}
    return {"twinbench": {"counters": [row | changes]}}


HOST = {CELL.replace("cuda", "simt"): {
    "launches_by_kernel": {"first::Forward": 2}, "products_by_shape": {"mm 4x4x4 fp32": 1}}}


@pytest.mark.parametrize("changes, words", [
    ({}, ""), ({"launches_by_kernel": {"first::Forward": 3}}, "launches_by_kernel"),
    ({"products_by_shape": {}}, "products_by_shape"), ({"device_activity": {"runs": 3, "kernels": 3}}, "CUPTI saw 1"),
    ({"device_activity": {"runs": 3, "kernels": 90}}, "CUPTI saw 30"), ({"device_activity": None}, ""),
    ({"verdict": "error", "launches_by_kernel": {}}, None)])
def test_the_cards_counts_are_held_against_the_hosts(changes, words):
    found, compared = host_counts.against_host(counters_record(**changes), HOST, "cuda")
    assert compared == (words is not None) and (words in found[0] if words else not found)
    assert host_counts.against_host(counters_record(cell="a.b/optimized/cuda/fp32/c"), HOST, "cuda") == ([], 0)


def test_where_the_host_runs_ahead_the_card_may_launch_more_and_never_other_kernels():
    cell = "energy_flow.adaptive_stop/optimized/cuda/fp32/tiny"
    host = {cell.replace("cuda", "simt"): {"launches_by_kernel": {"adaptive_stop::Decide": 8}}}

    def found(launches):
        record = counters_record(cell=cell, launches_by_kernel=launches, products_by_shape={},
                                 device_activity={"runs": 3, "kernels": 87})
        return host_counts.against_host(record, host, "cuda")[0]

    assert not found({"adaptive_stop::Decide": 29})
    assert found({"adaptive_stop::Decide": 7}) and found({"adaptive_stop::Decide": 8, "adaptive_stop::Other": 1})


def test_the_components_that_run_ahead_are_those_that_say_so():
    said = {file.parent.name for file in (ROOT / "src").rglob("spec.json") if '"runs_ahead"' in file.read_text()}
    assert said == set(host_counts.RUN_AHEAD)


def test_a_graph_holds_as_many_kernels_as_it_likes():
    host = {CELL.replace("cuda", "simt"): {"launches_by_kernel": {"first::Forward": 2, "graph step": 1}}}
    record = counters_record(launches_by_kernel=host[CELL.replace("cuda", "simt")]["launches_by_kernel"],
                             products_by_shape={}, device_activity={"runs": 3, "kernels": 90})
    assert host_counts.against_host(record, host, "cuda")[0] == []
    record["twinbench"]["counters"][0]["device_activity"]["kernels"] = 6
    assert "CUPTI saw 2" in host_counts.against_host(record, host, "cuda")[0][0]


NCU = """==PROF== Connected
"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"
"0","void twinbench::kernels::simt::run<twinbench::energy_flow::first::Forward, A>(A)","%s","sector","1,024"
"0","void twinbench::kernels::simt::run<twinbench::energy_flow::first::Forward, A>(A)","%s","sector","%s"
"1","void cublas_kernel(float)","%s","sector","7"
"""


def ncu(folder, text, code=0):
    program = folder / "bin/ncu"
    program.write_text(f"#!/bin/sh\ncat '{folder}/ncu.txt'\nexit {code}\n")
    program.chmod(0o755)
    (folder / "ncu.txt").write_text(text)


@pytest.mark.parametrize("stores, verdict", [("512", "pass"), ("640", "fail"), ("400", "pass")])
def test_sectors_are_held_against_the_hosts_count_where_they_may_be_read(suite, tmp_path, stores, verdict):
    loads, stored = host_counts.SECTORS
    ncu(suite.folder, NCU % (loads, stored, stores, loads))
    cell = CELL.replace("cuda", "simt")
    pins = tmp_path / "kernel_counts.json"
    pins.write_text(json.dumps({"cells": {cell: {
        "energy_flow::first::Forward": {"loads": {"sectors": 1024}, "stores": {"sectors": 512}}}}}))
    bench = Bench(suite.folder, suite.folder / "bin/twinbench", tmp_path, "cuda",
                  {"PATH": f"{suite.folder / 'bin'}:/usr/bin:/bin"})
    bench.steps.mkdir()
    step = Step("sectors.energy_flow.first", "sectors", component="energy_flow.first", cells=(cell, ))
    result = host_counts.run_sectors(bench, step, 60, pins)
    assert result.verdict == verdict and result.detail["compared"] == 2
    assert verdict == "pass" or "stores 640 sectors on the card, 512 counted" in result.reason
    assert len(result.detail["fewer_than_counted"]) == (stores == "400")
    ncu(suite.folder, "==ERROR== ERR_NVGPUCTRPERM - no permission", 1)
    refused = host_counts.run_sectors(bench, step, 60, pins)
    assert refused.verdict == "skip" and "ERR_NVGPUCTRPERM" in refused.reason


def test_without_ncu_and_nvbench_there_is_a_skip_with_its_reason(suite):
    suite("--only", "^(sectors|nvbench)")
    assert suite.verdicts()["sectors.energy_flow.first"] == suite.verdicts()["nvbench.energy_flow.first"] == "skip"
    assert "ncu" in suite.reason("sectors.energy_flow.first")
    assert "cuda-bench" in suite.reason("nvbench.energy_flow.first")


@pytest.mark.parametrize("second, verdict", [(1.1e-5, "pass"), (2.2e-5, "fail")])
def test_a_second_timer_must_agree(suite, tmp_path, monkeypatch, second, verdict):
    program = tmp_path / "nvbench_program.py"
    state = {"summaries": [{"tag": second_timer.GPU_MEAN, "data": [{"name": "value", "value": str(second)}]}]}
    text = json.dumps({"benchmarks": [{"states": [state]}]})
    program.write_text(f"import sys\nopen(sys.argv[4], 'w').write({text!r})\n")
    monkeypatch.setattr(second_timer, "PROGRAM", program)
    monkeypatch.setattr(second_timer, "missing", lambda environment: "")
    (suite.folder / "bin/libtwinbench_ops.so").write_text("")
    bench = Bench(suite.folder, suite.folder / "bin/twinbench", tmp_path / "work", "cuda",
                  dict(os.environ) | {"FAKE_CALLS": str(suite.folder / "calls")})
    bench.steps.mkdir(parents=True)
    cell = "energy_flow.first/optimized/cuda/fp32/train"
    step = Step("nvbench.energy_flow.first", "nvbench", component="energy_flow.first", cells=(cell, ))
    assert second_timer.run_second_timer(bench, step, 60).verdict == "inconclusive", "the bench step has not run"
    row = {"cell": cell, "verdict": "pass", "median_s": 1e-3, "gpu_median_s": 1e-5}
    bench.record_of("bench.energy_flow.first").write_text(json.dumps({"twinbench": {"timings": [row]}}))
    result = second_timer.run_second_timer(bench, step, 60)
    assert result.verdict == verdict and f"ratio {second / 1e-5:.3g}" in result.reason


def test_state_of_another_machine_or_program_is_refused(tmp_path):
    file = tmp_path / "state.json"
    State.begin(file, {"gpu": "A", "revision": "1"}, resume=False).put(StepResult("parity.a", "done", "pass"))
    assert State.begin(file, {"gpu": "A", "revision": "1"}, resume=True).finished("parity.a")
    with pytest.raises(SuiteError, match="other_machine: .*gpu: A then, B now"):
        State.begin(file, {"gpu": "B", "revision": "1"}, resume=True)
    file.write_text(file.read_text()[:40])
    with pytest.raises(SuiteError, match="bad_file"):
        State.begin(file, {"gpu": "A", "revision": "1"}, resume=True)


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    file = tmp_path / "state.json"
    write_whole(file, "old")
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk")))
    with pytest.raises(OSError):
        write_whole(file, "new")
    assert file.read_text() == "old"


def test_an_interruption_ends_the_step_at_once(tmp_path):
    stop = Event()
    stop.set()
    ended = run_limited(["sleep", "30"], environment=os.environ, folder=tmp_path, log=tmp_path / "log", limit_s=30,
                        budget_s=30, interrupted=stop, grace_s=1)
    assert ended.how == "interrupted" and ended.seconds < 5
    assert run_limited(["/nonexistent"], environment=os.environ, folder=tmp_path, log=tmp_path / "log", limit_s=1,
                       budget_s=1, interrupted=Event()).how == "not_started"


def test_wrong_flags_are_usage_errors(suite):
    assert suite("--only", "no such step").returncode == 2 and suite("--minutes", "0").returncode == 2
    assert suite("--only", "(").returncode == suite("--minutes", "0", as_user=True).returncode == 2


def test_pins_are_held_only_against_what_is_planned(tmp_path):
    (tmp_path / "ci").mkdir()
    cells = ["a.one/baseline/cpu/fp32/t", "a.one/baseline/cuda/fp32/t", "a.two/baseline/cpu/fp32/t"]
    (tmp_path / "ci/counters.json").write_text(json.dumps({cell: {"dispatches": 1} for cell in cells}))
    plan = [Step("counters.a.one", "counters", component="a.one"), Step("parity.a.two", "parity", component="a.two")]
    pins, pattern = results.pins_held(tmp_path, "cpu", plan)[1::2]
    assert Path(pins) == tmp_path / "ci/counters.json", "the gate knows each component by its pins"
    assert [cell for cell in cells if re.search(pattern, cell)] == cells[:1]
    assert results.pins_held(tmp_path, "cpu", plan[1:]) == results.pins_held(tmp_path, "simt", plan) == []
