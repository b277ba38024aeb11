"""A real bundle of the programs that are built, unpacked elsewhere and run by one command with the source tree
hidden."""
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from twinbench_reports.load import load_record

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from suite.dry_run import STAGES  # noqa: E402
from suite.plan import GROUPS  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
PRESET = Path(os.environ["TWINBENCH_PROGRAM"]).parents[1].name
RECORDED = ("counters", "modelled", "ceilings", "null", "bench", "parity", "scenario", "selftest")  # stages
STEPS = (r"^(ceilings|parity[.]energy_flow[.]simple_neuron|sanitizer[.]memcheck|"
         r"counters[.]energy_flow[.]simple_neuron|unit)")


def hidden(command, folder):
    """Runs it with an empty environment and nothing of the source tree but the virtual environment in sight."""
    folders = [path for path in ROOT.iterdir() if path.is_dir() and not path.is_symlink() and path.name != ".venv"]
    mounts = " && ".join(f"mount -t tmpfs none '{path}'" for path in folders)
    script = (f"{mounts} && cd '{folder}' && exec env -i HOME='{folder}' "
              f"PATH='{Path(sys.executable).parent}:/usr/bin:/bin' {command}")
    return subprocess.run(["unshare", "-m", "bash", "-c", script], capture_output=True, text=True, timeout=400)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    folder = tmp_path_factory.mktemp("elsewhere")
    archive = folder / "bundle.tar.xz"
    run = subprocess.run([
        sys.executable,
        str(ROOT / "ci/bundle"), "--no-build", "--preset", PRESET, "--no-sanitizer", "--out",
        str(archive)], cwd=folder, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert archive.stat().st_size < 60_000_000
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    return next(path for path in folder.iterdir() if path.is_dir())


def test_manifest_lists_every_file_and_no_program_looks_outside(bundle):
    manifest = json.loads((bundle / "MANIFEST.json").read_text())
    present = {str(path.relative_to(bundle)) for path in bundle.rglob("*") if path.is_file() and not path.is_symlink()}
    assert present == set(manifest["files"]) | {"MANIFEST.json"}
    assert manifest["needs"]["torch"].startswith("2.11.0") and manifest["needs"]["glibc"]
    assert "libyaml-cpp.so.0.7" in " ".join(manifest["carried_libraries"])
    assert not [
        name for name in manifest["carried_libraries"]
        if name.startswith(("libtorch", "libc10", "libc.", "libcuda", "libgomp"))]


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="hiding the source tree needs root")
def test_one_command_elsewhere_with_the_sources_hidden(bundle, tmp_path):
    run = hidden(
        f"'{bundle}/gpu_suite' --device cpu --quick --minutes 4 --only '{STEPS}' --out '{tmp_path}/out' --work "
        f"'{tmp_path}/work'",
        tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr
    summary = json.loads((tmp_path / "out/summary.json").read_text())
    verdicts = {step["name"]: step["verdict"] for step in summary["steps"]}
    for name in ("ceilings", "parity.energy_flow.simple_neuron", "counters.energy_flow.simple_neuron",
                 "unit.kernel_tests", "merge", "html"):
        assert verdicts[name] == "pass", run.stdout
    assert verdicts["sanitizer.memcheck.probe"] == "skip" and summary["not_run"] == []
    record = load_record(tmp_path / "out/record.json")
    assert record.provenance["revision"] == summary["revision"] == json.loads(
        (bundle / "MANIFEST.json").read_text())["revision"]
    assert len(list((tmp_path / "out").iterdir())) <= 8


def finished(folder):
    """Steps that will not be run again, as they were stored, in the order they were begun."""
    return {
        step["name"]: step for step in json.loads((folder / "state.json").read_text())["steps"]
        if step["status"] in ("done", "failed_to_run", "skipped")}


def not_left(folder):
    """What finished steps owe: a valid record where their stage has one, else figures or at least a log."""
    missing = []
    for name, step in finished(folder).items():
        stage, record = name.split(".")[0], folder / "steps" / f"{name}.json"
        if stage in RECORDED:
            if step["record"] != record.name or not load_record(record).provenance["gpu_reason"]:
                missing.append(f"{name}: record {step['record']!r}")
        elif step["verdict"] == "skip":
            if not step["reason"]:
                missing.append(f"{name}: skipped without a reason")
        elif not step["detail"] and not (folder / f"steps/{name}.log").read_text().strip():
            missing.append(f"{name}: neither figures nor a log")
    return missing


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="hiding the source tree needs root")
def test_the_whole_plan_cut_by_its_budget_and_resumed(bundle, tmp_path):
    """No step is chosen, the budget ends it, the second call goes on: at each stop the plan's first steps are finished,
    none left out, and each has left what its stage leaves. How many they are is the machine's affair."""
    out, work = tmp_path / "out", tmp_path / "work"
    command = f"'{bundle}/gpu_suite' --device cpu --quick --out '{out}' --work '{work}'"
    plan = ["environment", *hidden(f"{command} --list", tmp_path).stdout.splitlines()]
    plan = [name for name in plan if re.fullmatch(r"[\w.-]+", name)]
    assert tuple(dict.fromkeys(name.split(".")[0] for name in plan)) == GROUPS
    shutil.rmtree(work)
    first = hidden(f"{command} --minutes 1", tmp_path)
    summary = json.loads((out / "summary.json").read_text())
    assert first.returncode == summary["exit_code"] == 3 and summary["not_run"] and summary[
        "seconds"] < 75, first.stdout + first.stderr
    before = finished(work)
    assert list(before) == plan[:len(before)] and len(before) > 1, "the first of the plan, in its order"
    assert not not_left(work)
    assert not [step for step in before.values() if step["verdict"] in ("fail", "error")
                                         ], first.stdout
    again = hidden(f"{command} --minutes 1", tmp_path)
    assert again.returncode == 2 and "would_overwrite" in again.stderr, "without --resume nothing is lost"
    second = hidden(f"{command} --minutes 2 --resume", tmp_path)
    after, resumed = finished(work), json.loads((out / "summary.json").read_text())
    assert second.returncode == resumed["exit_code"] and resumed["exit_code"] in (0, 3), second.stdout + second.stderr
    assert list(after) == plan[:len(after)] and len(after) > len(before), "it goes on where the first call stopped"
    for said, names in ((summary, before), (resumed, after)):
        assert said["not_run"] in (plan[len(names):], plan[len(names) + 1:]), "one step may have been cut in its midst"
    # The environment is looked at in every call; nothing else that was finished is done twice.
    assert all(after[name] == step for name, step in before.items() if name != "environment")
    assert not [step for step in after.values() if step["verdict"] in ("fail", "error")], second.stdout
    assert not not_left(work)
    # However far that went, a stage that leaves records is reached; what is done stays done.
    chosen = ["counters.energy_flow.dataset_file", "parity.energy_flow.dataset_file"]
    third = hidden(f"{command} --minutes 3 --resume --only '^({'|'.join(map(re.escape, chosen))})$'", tmp_path)
    last = finished(work)
    assert third.returncode in (0, 3) and set(chosen) <= set(last) and not not_left(work), third.stdout + third.stderr
    assert all(last[name] == step for name, step in after.items() if name != "environment")
    page = (out / "report.html").read_text()
    assert page.startswith("<!DOCTYPE html>") and page.rstrip().endswith("</html>")
    assert (out / "results.tar.gz").stat().st_size < 15 << 20


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="hiding the source tree needs root")
def test_the_dry_run_begins_every_stage_of_the_real_programs(bundle, tmp_path):
    folders = f"--out '{tmp_path}/out' --work '{tmp_path}/work'"
    run = hidden(f"'{bundle}/gpu_suite' --dry-run --minutes 6 {folders}", tmp_path)
    page = (tmp_path / "out/dry_run.md").read_text()
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr
    for stage in STAGES:
        text = page.split(f". {stage}\n")[1].split("\n## ")[0]
        here = [line.split(" | ") for line in text.splitlines() if line.startswith("| here |")]
        assert here, f"{stage} did not begin"
        wanted = "skip" if stage in ("sectors", "nvbench", "sanitizer") else "pass"
        if stage not in ("null", "bench"):  # times decide those
            assert {row[2] for row in here} == {wanted}, text
    assert not not_left(tmp_path / "work")
    assert load_record(tmp_path / "work/steps/bench.energy_flow.adaptive_stop.json").block["timings"]
    compared = json.loads((tmp_path / "work/state.json").read_text())["steps"]
    counted = next(step for step in compared if step["name"].startswith("counters."))
    assert counted["detail"]["compared_with_simt"] >= 10 and counted["detail"]["other_than_simt"] == []


def test_two_that_pack_at_once_do_not_meet(tmp_path):
    before = {path.name for path in (ROOT / "build/bundle").iterdir()}
    both = [tmp_path / name / "bundle.tar.xz" for name in ("one", "other")]
    command = [sys.executable, str(ROOT / "ci/bundle"), "--no-build", "--preset", PRESET, "--no-sanitizer", "--out"]
    runs = [subprocess.Popen([*command, str(archive)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            for archive in both]
    said = [run.communicate(timeout=400)[1] for run in runs]
    assert [run.returncode for run in runs] == [0, 0], said
    assert both[0].read_bytes() == both[1].read_bytes(), "the same files, the same bytes"
    assert [path.name for path in tmp_path.rglob(".*")] == [], "a part of an archive was left"
    assert {path.name for path in (ROOT / "build/bundle").iterdir()} == before


def test_an_archive_above_the_limit_is_refused(tmp_path):
    script = (
        "import sys; sys.argv = ['ci/bundle', '--no-build', '--preset', %r, '--no-sanitizer', '--out', %r]; import "
        "runpy; sys.path.insert(0, 'ci'); "
        "import bundling.archive as archive; archive.LARGEST = 1000; runpy.run_path('ci/bundle', run_name='__main__')" %
        (PRESET, str(tmp_path / "b.tar.xz")))
    run = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 2 and "out_of_range" in run.stderr and not (tmp_path / "b.tar.xz").exists(), run.stderr


def test_a_changed_file_is_refused(bundle, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(bundle, copy, symlinks=True)
    (copy / "ci/counters.json").write_text("{}")
    run = subprocess.run([str(copy / "gpu_suite"), "--device", "cpu", "--out",
                          str(tmp_path / "out")], capture_output=True, text=True)
    assert run.returncode == 2 and "bad_bundle: ci/counters.json" in run.stderr
