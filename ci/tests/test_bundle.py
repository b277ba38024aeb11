"""A real bundle of the programs that are built, unpacked elsewhere and run by one command with the source tree hidden."""
import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from twinbench_reports.load import load_record

ROOT = Path(__file__).resolve().parents[2]
PRESET = Path(os.environ["TWINBENCH_PROGRAM"]).parents[1].name
STEPS = r"^(ceilings|parity[.]energy_flow[.]simple_neuron|sanitizer[.]memcheck|counters[.]energy_flow[.]simple_neuron|unit)"


def hidden(command, folder):
    """Runs it with an empty environment and nothing of the source tree but the virtual environment in sight."""
    folders = [path for path in ROOT.iterdir() if path.is_dir() and not path.is_symlink() and path.name != ".venv"]
    mounts = " && ".join(f"mount -t tmpfs none '{path}'" for path in folders)
    script = f"{mounts} && cd '{folder}' && exec env -i HOME=/nonexistent PATH='{Path(sys.executable).parent}:/usr/bin:/bin' {command}"
    return subprocess.run(["unshare", "-m", "bash", "-c", script], capture_output=True, text=True, timeout=400)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    folder = tmp_path_factory.mktemp("elsewhere")
    archive = folder / "bundle.tar.xz"
    run = subprocess.run([sys.executable, str(ROOT / "ci/bundle"), "--no-build", "--preset", PRESET, "--no-sanitizer", "--out", str(archive)],
                         cwd=folder, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert archive.stat().st_size < 60_000_000
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    return next(path for path in folder.iterdir() if path.is_dir())


def test_manifest_lists_every_file_and_no_program_looks_outside(bundle):
    manifest = json.loads((bundle / "MANIFEST.json").read_text())
    present = {str(path.relative_to(bundle)) for path in bundle.rglob("*") if path.is_file() and not path.is_symlink()}
    assert present == set(manifest["files"]) | {"MANIFEST.json"}
    assert manifest["needs"]["torch"].startswith("2.11.0") and manifest["needs"]["glibc"] and "libyaml-cpp.so.0.7" in " ".join(manifest["carried_libraries"])
    assert not [name for name in manifest["carried_libraries"] if name.startswith(("libtorch", "libc10", "libc.", "libcuda", "libgomp"))]


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="hiding the source tree needs root")
def test_one_command_elsewhere_with_the_sources_hidden(bundle, tmp_path):
    run = hidden(f"'{bundle}/gpu_suite' --device cpu --quick --minutes 4 --only '{STEPS}' --out '{tmp_path}/out' --work '{tmp_path}/work'", tmp_path)
    assert run.returncode in (0, 3), run.stdout + run.stderr
    summary = json.loads((tmp_path / "out/summary.json").read_text())
    verdicts = {step["name"]: step["verdict"] for step in summary["steps"]}
    for name in ("ceilings", "parity.energy_flow.simple_neuron", "counters.energy_flow.simple_neuron", "unit.kernel_tests", "merge", "html"):
        assert verdicts[name] == "pass", run.stdout
    assert verdicts["sanitizer.memcheck.probe"] == "skip" and summary["not_run"] == []
    record = load_record(tmp_path / "out/record.json")
    assert record.provenance["revision"] == summary["revision"] == json.loads((bundle / "MANIFEST.json").read_text())["revision"]
    assert len(list((tmp_path / "out").iterdir())) <= 8


def test_a_changed_file_is_refused(bundle, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(bundle, copy, symlinks=True)
    (copy / "ci/counters.json").write_text("{}")
    run = subprocess.run([str(copy / "gpu_suite"), "--device", "cpu", "--out", str(tmp_path / "out")], capture_output=True, text=True)
    assert run.returncode == 2 and "bad_bundle: ci/counters.json" in run.stderr
