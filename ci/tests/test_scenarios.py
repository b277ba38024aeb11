"""The smoke scenarios on real text, what `list --scenarios` says of all, and the device: honoured or refused."""
import json
import math
import re
import struct
import zlib
from pathlib import Path

import pytest
import warm

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "scenarios").rglob("*.yaml"))


def run(*arguments, cwd=ROOT, timeout=400):
    return warm.run(*arguments, timeout=timeout, cwd=cwd)


@pytest.fixture(scope="module")
def listed():
    return json.loads(run("list", "--scenarios", "--json").stdout)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a small default dataset, made from real text."""
    place = tmp_path_factory.mktemp("scenarios")
    (place / "data").mkdir()
    made = run("data", "make", "--rows", 512, "--out", place / "data/default.efds", cwd=place)
    assert made.returncode == 0, made.stderr
    return place


def test_list_names_every_file_with_what_coverage_needs(listed):
    assert [row["file"] for row in listed["scenarios"]] == [str(path.relative_to(ROOT)) for path in FILES]
    kinds = {kind["name"] for kind in listed["experiments"]}
    files = (ROOT / "scenarios/experiments").glob("*.cpp")
    assert kinds == {path.stem for path in files if not path.stem.endswith("_test")}
    documented = {row["source"] for row in json.loads((ROOT / "ci/documented.json").read_text())["scenarios"]}
    for row in listed["scenarios"]:
        assert row["source"] in documented and row["experiment"] in kinds
        assert row["tier"] in ("smoke", "std", "full")
        assert row["shows"]["baseline"] and row["shows"]["optimized"]
        assert {"baseline", "optimized"} <= set(row["variants"])
        assert "cpu" in row["devices"] or (row["tier"], row["devices"]) == ("full", ["cuda"])


def test_the_components_table_is_still_an_array():
    assert isinstance(json.loads(run("list", "--json").stdout), list)


def test_smoke_scenarios_pass_on_real_text(folder, listed):
    out = folder / "record.json"
    result = run("scenario", "--tier", "smoke", "--folder", ROOT / "scenarios", "--out", out, cwd=folder)
    assert result.returncode == 0, result.stdout + result.stderr
    rows = json.loads(out.read_text())["twinbench"]["scenarios"]
    smoke = {row["name"] for row in listed["scenarios"] if row["tier"] == "smoke"}
    assert smoke and {row["name"] for row in rows} == smoke
    for row in rows:
        assert row["verdict"] == "pass" and row["device"] == "cpu" and row["source"] and row["experiment"]
        passed = [criterion for criterion in row["criteria"] if criterion["verdict"] == "pass"]
        left = [criterion for criterion in row["criteria"] if criterion["verdict"] != "pass"]
        of_a_card = ("the CPU launches nothing", "no GPU: how long windows take is judged on one only")
        assert passed and all(criterion["verdict"] == "skip" and any(why in criterion["reason"] for why in of_a_card)
                              for criterion in left), row["name"]


def test_what_only_a_card_can_do_in_time_is_skipped_elsewhere(folder):
    out = folder / "card_only.json"
    result = run("scenario", "training_before_after_experiment", "--folder", ROOT / "scenarios", "--out", out,
                 cwd=folder)
    ledger = json.loads(out.read_text())["twinbench"]["ledger"]
    assert result.returncode == 3 and ledger["skipped"] == 1
    assert "its file says 'device: cuda'" in next(iter(ledger["skip_reasons"]))


@pytest.mark.skipif(Path("/proc/driver/nvidia").exists(), reason="this machine has an NVIDIA driver")
def test_a_missing_device_is_refused_or_skipped_and_never_replaced(folder):
    arguments = ("flow_free_run", "--folder", ROOT / "scenarios")
    refused = run("scenario", *arguments, "--device", "cuda", cwd=folder)
    assert refused.returncode == 2 and "missing_device" in refused.stderr
    out = folder / "all.json"
    skipped = run("scenario", *arguments, "--device", "all", "--out", out, cwd=folder)
    block = json.loads(out.read_text())["twinbench"]
    assert skipped.returncode == 0 and [row["device"] for row in block["scenarios"]] == ["cpu", "simt"]
    assert any("missing_device" in reason for reason in block["ledger"]["skip_reasons"])
    required = run("scenario", *arguments, "--device", "all", "--require-device", cwd=folder)
    assert required.returncode == 2 and "energy_flow/flow_free_run/cuda" in required.stdout


def test_shards_are_disjoint_and_a_spent_budget_is_never_a_pass(folder):
    def names(*arguments):
        out = folder / "part.json"
        out.unlink(missing_ok=True)
        arguments = ("scenario", "--filter", "resume|free_run|scan_memory", "--tier", "smoke", "--out", out, *arguments)
        code = run(*arguments, "--folder", ROOT / "scenarios", cwd=folder).returncode
        return code, [row["name"] for row in json.loads(out.read_text())["twinbench"]["scenarios"]]

    parts = [name for shard in ("1/2", "2/2") for name in names("--shard", shard)[1]]
    assert sorted(parts) == ["flow_free_run", "flow_resume", "scan_memory_budget"]
    assert names("--minutes", "1e-6") == (3, [])


@pytest.mark.parametrize("arguments, part", [
    (["--tier", "tiny"], "--tier"),
    (["--filter", "flow_scalling"], "flow_scaling"),
    (["flow_stp"], "flow_step"),
])
def test_bad_selection_names_the_nearest(arguments, part):
    result = run("scenario", *arguments)
    assert result.returncode == 2 and part in result.stderr, result.stderr


def test_invalid_rows_of_a_dataset_are_left_out_and_the_reader_is_told(folder):
    raw = bytearray((folder / "data/default.efds").read_bytes())
    rows, width = struct.unpack_from("<QI", raw, 8)
    raw[4096:4100] = struct.pack("<f", math.nan)
    raw[68:72] = struct.pack("<I", zlib.crc32(raw[4096:4096 + rows * width * 4]))
    (folder / "nan.efds").write_bytes(raw)
    text = (ROOT / "scenarios/energy_flow/training_reads.yaml").read_text()
    (folder / "nan.yaml").write_text(text + f"dataset: {folder / 'nan.efds'}\n")
    result = run("scenario", folder / "nan.yaml", cwd=folder)
    assert result.returncode == 0 and f"1 of {rows} rows are invalid and left out: 0" in result.stdout, result.stdout
    raw[-1] ^= 4
    (folder / "nan.efds").write_bytes(raw)
    damaged = run("scenario", folder / "nan.yaml", cwd=folder)
    assert damaged.returncode == 2 and "nan.efds, text blob" in damaged.stderr, damaged.stderr


def test_a_wrong_file_is_refused_before_anything_runs(tmp_path):
    text = FILES[0].read_text()
    (tmp_path / "planted.yaml").write_text(re.sub(r"^experiment: .*$", "experiment: spede", text, flags=re.MULTILINE))
    result = run("scenario", tmp_path / "planted.yaml")
    assert result.returncode == 2 and "planted.yaml" in result.stderr and "'speed'" in result.stderr, result.stderr
