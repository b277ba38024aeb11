"""The observers of a card in the real program, against driver libraries that answer as the environment tells them."""
import os
import subprocess
from pathlib import Path

import pytest

from twinbench_reports import machine
from twinbench_reports.load import load_record

PROGRAM = Path(os.environ["TWINBENCH_PROGRAM"])
FAKE = PROGRAM.parents[1] / "fake"
CELL = "^energy_flow.simple_neuron/optimized/cpu/fp32/odd$"
TIMED = "^energy_flow.simple_neuron/(baseline|optimized)/cpu/fp32/train$"
LIBRARIES = {"TWINBENCH_CUDA_LIBRARY": FAKE / "libfake_cuda.so", "TWINBENCH_NVML_LIBRARY": FAKE / "libfake_nvml.so",
             "TWINBENCH_CUPTI_LIBRARY": FAKE / "libfake_cupti.so"}


def run(folder, *arguments, cell=CELL, **answers):
    """The record and the exit code of one run with the fake card."""
    out = folder / "record.json"
    environment = {**os.environ, **{name: str(path) for name, path in LIBRARIES.items()}, **answers}
    ended = subprocess.run([str(PROGRAM), *arguments, "--filter", cell, "--out",
                            str(out)], env=environment, capture_output=True, text=True, timeout=120)
    assert out.is_file(), ended.stdout + ended.stderr
    return load_record(out).block, ended.returncode


def test_a_traced_pass_is_on_the_counters_row(tmp_path):
    block, code = run(tmp_path, "counters", "--trace-all", FAKE_CUPTI_KERNELS="3")
    row = block["counters"][0]
    assert code == 0 and row["device_activity_reason"] == ""
    activity = row["device_activity"]
    assert (activity["kernels"], activity["gaps"], activity["busy_share"]) == (3, 2, pytest.approx(0.6))
    assert activity["host_calls_by_name"]["cudaLaunchKernel"] == 3


def test_lost_records_fail_the_row(tmp_path):
    block, code = run(tmp_path, "counters", "--trace-all", FAKE_CUPTI_DROPPED="2")
    row = block["counters"][0]
    assert code == 1 and row["verdict"] == "fail" and "records_dropped" in row["reason"]
    assert row["device_activity"] is None


@pytest.mark.parametrize("answers, name",
                         [({
                             "FAKE_CUPTI_SUBSCRIBE": "39"}, "cupti_busy"),
                          ({
                              "FAKE_CUPTI_ENABLE": "35"}, "cupti_permission"),
                          ({
                              "TWINBENCH_CUPTI_LIBRARY": "/nonexistent/libcupti.so.13"}, "cupti_absent")])
def test_what_refuses_is_null_with_its_reason(tmp_path, answers, name):
    block, code = run(tmp_path, "counters", "--trace-all", **answers)
    row = block["counters"][0]
    assert code == 0 and row["verdict"] == "pass" and row["device_activity"] is None
    assert row["device_activity_reason"].startswith(name + ": ")


def test_a_cpu_cell_is_not_traced_and_leaves_no_memory_behind(tmp_path):
    block, code = run(tmp_path, "counters")
    row = block["counters"][0]
    assert code == 0 and row["device_activity"] is None and row["device_activity_reason"].startswith("not traced")
    assert row["memory"]["host"]["leaked_bytes"] == 0 < row["memory"]["host"]["allocations"]
    assert row["memory"]["device"] is None


def test_the_card_is_in_the_record_of_every_engine(tmp_path):
    for engine in ("parity", "counters", "bench"):
        block, _ = run(tmp_path, engine, *(["--quick"] if engine == "bench" else []),
                       cell=TIMED if engine == "bench" else CELL, FAKE_NVML_PROCESSES="4242")
        gpu = block["provenance"]["gpu"]
        assert gpu["name"] == "Fake card" and gpu["other_processes"] == 1 and gpu["mig"] is False and gpu["ecc"] is True
        assert block["provenance"]["driver"] == "580.65.06" and block["provenance"]["gpu_reason"] == ""
        assert any(text.startswith("other_processes: ") for text in gpu["findings"])
        for timeline in block["timelines"]:
            samples = timeline["samples"]
            assert timeline["engine"] == engine and timeline["reason"] == ""
            assert samples["power_w"] == [321.5] * len(samples["seconds"])
            for job in timeline["jobs"]:
                assert 0 <= job["start_s"] <= job["end_s"] <= samples["seconds"][-1]
        assert sum(len(timeline["jobs"]) for timeline in block["timelines"]) == (2 if engine == "bench" else 1)


def test_a_card_without_management_library_is_named_and_not_sampled(tmp_path):
    block, code = run(tmp_path, "counters", TWINBENCH_NVML_LIBRARY="/nonexistent/libnvidia-ml.so.1")
    gpu = block["provenance"]["gpu"]
    assert code == 0 and gpu["name"] == "Fake card" and gpu["power_limit_w"] is None and gpu["uuid_hash"] is None
    assert block["timelines"] == [{
        "engine": "counters",
        "reason": block["timelines"][0]["reason"],
        "samples": None,
        "jobs": []}]
    assert block["timelines"][0]["reason"].startswith("nvml_absent: ")


def test_no_card_is_null_with_the_same_reason_everywhere(tmp_path):
    block, code = run(tmp_path, "counters", FAKE_CUDA_COUNT="0")
    assert code == 0 and block["provenance"]["gpu"] is None
    assert block["provenance"]["gpu_reason"].startswith("no_device: ")
    assert block["timelines"][0]["reason"] == block["provenance"]["gpu_reason"]


def test_ranges_name_cell_and_phase_for_a_profiler(tmp_path):
    cell = "energy_flow.simple_neuron/optimized/cpu/fp32/odd"
    for engine, flags, phases in (("parity", [], {"job", "oracle", "determinism", "guard_bands"}),
                                  ("counters", ["--trace-all"], {"job", "counted", "memory", "traced"})):
        log = tmp_path / engine
        run(tmp_path, engine, *flags, NVTX_INJECTION64_PATH=str(FAKE / "libfake_nvtx_tool.so"), FAKE_NVTX_OUT=str(log))
        lines = log.read_text().splitlines()
        depth = [sum(1 if line != "-" else -1 for line in lines[: end + 1]) for end in range(len(lines))]
        assert depth[-1] == 0 and min(depth) >= 0 and max(depth) == 2, lines
        assert phases <= {line.removeprefix(f"+{cell}/") for line in lines}, lines


def test_a_checking_tool_sees_one_process_and_its_record_names_the_same_card(tmp_path):
    block, code = run(tmp_path, "counters", "--in-process")
    here = block["provenance"]
    assert code == 0 and block["timelines"][0]["reason"] == "not sampled: --in-process"
    forked = run(tmp_path, "counters")[0]["provenance"]
    assert machine.differences(
        machine.board(here) | machine.toolchain(here),
        machine.board(forked) | machine.toolchain(forked)) == []
    assert here["gpu"]["name"] == "Fake card"
