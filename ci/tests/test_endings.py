"""How the program ends: interrupted, limited, or without what it needs: nothing is left, and the code says it."""
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = os.environ["TWINBENCH_PROGRAM"]
CELL = "energy_flow.simple_neuron/optimized/cpu/fp32/tiny"
PARITY = ["parity", "--filter", f"^{CELL}$", "--held-out", "none"]
LOADER = ["parity", "--filter", "^energy_flow.dataset_loader/optimized/cpu/fp32/tiny$", "--held-out", "none"]


def start(*command, folder, **keywords):
    environment = {**os.environ, "TMPDIR": str(folder)} | keywords.pop("env", {})
    return subprocess.Popen([PROGRAM, *map(str, command)], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, env=environment, **keywords)


def run(*command, folder, **keywords):
    process = start(*command, folder=folder, **keywords)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def until(process, words):
    """Waits for a line of standard error that holds the words."""
    for line in process.stderr:
        if words in line:
            return
    raise AssertionError(words)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGXCPU])
def test_an_interruption_keeps_the_record_and_leaves_nothing_else(number, tmp_path):
    out, folder = tmp_path / "out", tmp_path / "tmp"
    out.mkdir()
    folder.mkdir()
    process = start("selftest", "--filter", "never_ends|row_scale", "--out", out / "r.json", folder=folder)
    until(process, "[0/")
    process.send_signal(number)
    began = time.monotonic()
    _, err = process.communicate(timeout=20)
    assert time.monotonic() - began < 5 and process.returncode == 3 and "interrupted" in err, (process.returncode, err)
    assert json.loads((out / "r.json").read_text())["twinbench"]["ledger"]["exit_code"] == 3
    assert [path.name for path in out.iterdir()] == ["r.json"] and not list(folder.iterdir())


KERNELS, ORACLE = ["kernels", "--pins-only", "--filter", "wide"], ["parity", "--checks", "oracle"]


@pytest.mark.parametrize("engine, begun_s, to_all", [
    (KERNELS, 0, False), (KERNELS, 1, True), (["instructions"], 0, True), (["instructions"], 0.4, False),
    (["instructions"], 4, True), (ORACLE, 0, True), (ORACLE, 0.3, False), (["bench"], 0.3, True)])
def test_an_interruption_at_any_moment_is_told_and_3(engine, begun_s, to_all, tmp_path):
    """While libraries are loaded, cells chosen, children run; from a terminal to all, or to the program alone."""
    record, folder = tmp_path / "r.json", tmp_path / "tmp"
    folder.mkdir()
    process = start(*engine, "--out", record, folder=folder, start_new_session=True,
                    env={"TWINBENCH_WAIT_POLICY": "environment"})  # else it starts itself once more
    caught = lambda: int(re.search(r"SigCgt:\s*(\w+)", Path(f"/proc/{process.pid}/status").read_text())[1], 16)
    # Before that the system's loader is at work, not the program. Not SIGINT: for some microseconds of its exec the
    # process still shows the handlers of the Python that started it.
    while not caught() & 1 << (signal.SIGHUP - 1):
        time.sleep(0.001)
    time.sleep(begun_s)
    (os.killpg if to_all else os.kill)(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 3 and "interrupted: " in err, (process.returncode, out, err)
    assert "nothing was" in err or json.loads(record.read_text())["twinbench"]["ledger"]["exit_code"] == 3
    assert not list(folder.iterdir())


def test_in_process_work_ends_within_two_seconds_of_an_interruption(tmp_path):
    took = []
    while len(took) < 3 and not any(seconds < 2 for seconds in took):  # others may keep the machine busy, for once
        process = start("bench", "--in-process", "--filter", "^energy_flow.carrier_heads/", folder=tmp_path)
        until(process, "[0/")
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        _, err = process.communicate(timeout=20)
        took.append(time.monotonic() - began)
        assert "interrupted" in err, err
        assert process.returncode in (-signal.SIGINT, 3) and not list(tmp_path.iterdir())
    assert min(took) < 2, (took, err)


def test_a_record_that_cannot_be_written_at_the_end_is_saved_elsewhere(tmp_path):
    out, folder = tmp_path / "out", tmp_path / "tmp"
    out.mkdir()
    folder.mkdir()
    process = start("selftest", "--filter", "never_ends|row_scale", "--out", out / "r.json", folder=folder)
    until(process, "[0/")
    (out / "r.json").mkdir()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    saved, = folder.iterdir()
    assert process.returncode == 2 and f"saved as {saved}" in err, (process.returncode, err)
    assert json.loads(saved.read_text())["twinbench"]["ledger"]["exit_code"] == 3
    assert [path.name for path in out.iterdir()] == ["r.json"] and not list((out / "r.json").iterdir())


def test_what_a_killed_child_had_made_goes_with_it(tmp_path):
    code, _, err = run(*LOADER, "--time-limit", "0.1", folder=tmp_path)
    assert code in (0, 4) and not list(tmp_path.iterdir()), (code, err)


def test_a_write_that_is_interrupted_leaves_nothing(tmp_path):
    lines = tmp_path / "in.jsonl"
    lines.write_text("".join(json.dumps({"input": f"a {i}", "target": "b " * 50}) + "\n" for i in range(20_000)))
    folder = tmp_path / "out"
    folder.mkdir()
    process = start("data", "convert", lines, "--out", folder / "a.jsonl", folder=folder)
    while process.poll() is None and not list(folder.iterdir()):
        time.sleep(0.005)
    process.terminate()
    process.communicate(timeout=20)
    assert process.returncode == -signal.SIGTERM, "it was too quick"
    assert not list(folder.iterdir())


def test_two_writers_of_one_pin_file_keep_what_both_wrote(tmp_path):
    pins = tmp_path / "pins.json"
    cells = [CELL, CELL.replace("optimized", "baseline"), CELL.replace("tiny", "odd")]
    processes = [start("counters", "--pin", "--pins", pins, "--filter", f"^{cell}$", folder=tmp_path) for cell in cells]
    for process in processes:
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
    assert set(json.loads(pins.read_text())) == set(cells)
    assert list(tmp_path.iterdir()) == [pins]


def test_what_the_system_refuses_is_2(tmp_path):
    code, out, err = run(*LOADER, folder=tmp_path, env={"TMPDIR": str(tmp_path / "nowhere")})
    assert code == 2 and "TMPDIR" in out + err, (code, out, err)
    few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (6, 6))
    code, out, err = run(*PARITY, folder=tmp_path, preexec_fn=few)
    assert code == 2 and "ulimit -n" in out + err, (code, out, err)


@pytest.mark.skipif(os.getuid() != 0, reason="the limit is one of a user: only root can become one without others")
@pytest.mark.skipif("asan" in Path(PROGRAM).parts, reason="an instrumented process needs threads of its own")
def test_a_limit_on_processes_is_named_at_once():
    """The program and its child, and no thread beside them."""
    def limited():
        resource.setrlimit(resource.RLIMIT_NPROC, (2, 2))
        os.setgroups([])
        os.setresgid(54321, 54321, 54321)
        os.setresuid(54321, 54321, 54321)

    with tempfile.TemporaryDirectory() as folder:  # pytest's own lie below one of root's
        os.chmod(folder, 0o777)
        began = time.monotonic()
        code, out, err = run(*PARITY, "--threads", "2", "--time-limit", "20", folder=folder, preexec_fn=limited)
    assert time.monotonic() - began < 15 and code == 2 and "ulimit -u" in out and "threads" in out, (code, out, err)


def test_a_limit_that_is_reached_is_4(tmp_path):
    record = tmp_path / "r.json"
    code, out, _ = run(*PARITY, "--time-limit", "0.001", "--out", record, folder=tmp_path)
    assert code == 4 and "timeout" in out
    assert json.loads(record.read_text())["twinbench"]["ledger"]["exit_code"] == 4


def test_a_thread_that_memory_has_no_room_for_is_a_limit_too(tmp_path):
    cell = "energy_flow.text_decoder/library/cpu/fp32/wide_ff"
    code, out, _ = run("parity", "--filter", f"^{cell}$", "--memory-limit", "20", "--threads", "1", folder=tmp_path)
    assert code == 4 and "out_of_memory" in out and "limit is 20 MiB" in out and "ulimit -u" not in out, out


@pytest.mark.parametrize("engine", [["selftest", "--filter", "^never_ends$"], ["scenario", "scan_memory_budget"]])
def test_a_stopped_child_does_not_outlive_its_limit(engine, tmp_path):
    process = start(*engine, "--time-limit", "1.5", folder=tmp_path)
    until(process, "[0/")
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while process.poll() is None and not children.read_text().split():
        time.sleep(0.005)
    for child in children.read_text().split():
        os.kill(int(child), signal.SIGSTOP)
    began = time.monotonic()
    out, _ = process.communicate(timeout=30)
    assert time.monotonic() - began < 10 and process.returncode in (1, 4) and "timeout: longer than 1.5 s" in out, out
    assert not list(tmp_path.iterdir())


def test_a_filter_that_matches_nothing_is_2(tmp_path):
    for engine in ("ceilings", "selftest"):
        code, _, err = run(engine, "--filter", "nothing of this name", folder=tmp_path)
        assert code == 2 and "--filter" in err
