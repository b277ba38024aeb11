"""What the program writes: refused before anything is measured, or whole; output that nobody got is an error."""
import json
import os
import resource
import stat
import subprocess
import time
from pathlib import Path

import pytest
import warm

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = os.environ["TWINBENCH_PROGRAM"]
CELL = "energy_flow.simple_neuron/optimized/cpu/fp32/tiny"
PARITY = [PROGRAM, "parity", "--filter", f"^{CELL}$", "--held-out", "none"]


def run(command, **keywords):
    return subprocess.run(list(map(str, command)), cwd=ROOT, stdout=keywords.pop("stdout", subprocess.PIPE),
                          stderr=subprocess.PIPE, text=True, timeout=120, **keywords)


def shell(script, *arguments):
    return subprocess.run(["bash", "-c", script, "bash", *map(str, arguments)], cwd=ROOT, stderr=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True, timeout=120)


@pytest.mark.parametrize("command", [PARITY, [PROGRAM, "dump", CELL], [PROGRAM, "kernels", "--filter", "neuron/.*tiny"],
                                     [PROGRAM, "selftest"], [PROGRAM, "bench"], [PROGRAM, "data", "make"],
                                     [PROGRAM, "counters"], [PROGRAM, "scenario"], [PROGRAM, "ceilings"],
                                     [PROGRAM, "instructions"]])
def test_what_is_no_regular_file_is_refused_before_anything_is_measured(command, tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    began = time.monotonic()
    for path in (tmp_path, fifo, "/dev/null"):
        result = warm.run(*command[1:], "--out", path)
        assert result.returncode == 2 and "--out" in result.stderr and str(path) in result.stderr, result.stderr
        assert not result.stdout
    assert time.monotonic() - began < 30
    assert stat.S_ISFIFO(fifo.stat().st_mode) and stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert list(tmp_path.iterdir()) == [fifo]


@pytest.mark.parametrize("engine", ["counters", "coverage", "instructions", "kernels"])
def test_pins_that_cannot_be_written_are_refused_first(engine, tmp_path):
    result = warm.run(engine, "--pin", "--pins", tmp_path)
    assert result.returncode == 2 and "regular file" in result.stderr, result.stderr


def test_a_planted_temporary_file_is_not_written_through(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    out = tmp_path / "record.json"
    for number in range(os.getpid(), os.getpid() + 400):
        (tmp_path / f"record.json.partial.{number}").symlink_to(victim)
    assert run([*PARITY, "--out", out]).returncode == 0
    assert victim.read_text() == "mine" and json.loads(out.read_text())["twinbench"]["engines"] == ["parity"]


def test_a_name_may_be_as_long_as_the_system_takes(tmp_path):
    out = tmp_path / ("r" * 250 + ".json")
    assert run([*PARITY, "--out", out]).returncode == 0
    assert json.loads(out.read_text())["twinbench"]["engines"] == ["parity"] and list(tmp_path.iterdir()) == [out]


def test_a_working_directory_that_is_gone_is_named(tmp_path):
    result = shell('cd "$1" && mkdir gone && cd gone && rmdir ../gone && shift && "$@"', tmp_path, *PARITY)
    assert result.returncode == 2 and "working directory was removed" in result.stderr, result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_output_that_nobody_gets_is_an_error(tmp_path):
    with open("/dev/full", "w") as full:
        result = run(PARITY, stdout=full)
    assert result.returncode == 2 and "No space left" in result.stderr, result.stderr
    out = tmp_path / "record.json"
    result = shell('"$@" >&-', *PARITY, "--out", out)
    assert result.returncode == 2 and "standard output" in result.stderr, result.stderr
    assert json.loads(out.read_text())["twinbench"]["ledger"]["exit_code"] == 0, "the record is whole all the same"
    reading, writing = os.pipe()
    os.close(reading)  # as head does, which has seen enough: the run has its own verdict
    result = run(PARITY, stdout=writing)
    os.close(writing)
    assert result.returncode == 0 and "twinbench: " not in result.stderr, (result.returncode, result.stderr)


def test_a_file_that_is_no_record_is_not_replaced(tmp_path):
    out = tmp_path / "record.json"
    for text in ("mine", json.dumps({"mine": 1})):
        out.write_text(text)
        for command in (PARITY[1:], ["kernels", "--filter", "neuron/.*tiny"]):
            result = warm.run(*command, "--out", out)
            assert result.returncode == 2 and "no record" in result.stderr and not result.stdout, result.stderr
        assert out.read_text() == text
    out.write_text("")  # as mktemp makes it
    assert [warm.run(*PARITY[1:], "--out", out).returncode for _ in range(2)] == [0, 0], "a record is replaced"


def test_the_second_run_on_one_record_is_refused_at_its_start(tmp_path):
    (tmp_path / "deep").mkdir()
    out, same = tmp_path / "record.json", tmp_path / "deep" / ".." / "record.json"
    first = subprocess.Popen([PROGRAM, "selftest", "--filter", "never_ends", "--out", out], cwd=ROOT, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    next(line for line in first.stderr if "[0/" in line)
    for path in (out, same):
        result = warm.run(*PARITY[1:], "--out", path)
        assert result.returncode == 2 and f"--out is '{path}': another run" in result.stderr, result.stderr
    assert warm.run(*PARITY[1:], "--out", tmp_path / "other.json").returncode == 0
    first.kill()  # nothing of it is left to stand in the way
    first.communicate(timeout=20)
    assert warm.run(*PARITY[1:], "--out", out).returncode == 0
    assert json.loads(out.read_text())["twinbench"]["engines"] == ["parity"]


def test_a_revision_that_is_unknown_is_explained():
    result = run(PARITY, env={**os.environ, "PATH": "", "TWINBENCH_REVISION": ""})
    assert result.returncode == 0 and "the revision is unknown: " in result.stderr and "git" in result.stderr, result
    assert "revision is unknown" not in run(PARITY).stderr


def test_closed_streams_do_not_end_up_in_a_file(tmp_path):
    out = tmp_path / "record.json"
    result = shell('"$@" <&- >&- 2>&-', *PARITY, "--out", out)
    assert result.returncode == 2
    assert json.loads(out.read_text())["twinbench"]["parity"]
    result = shell('"$@" <&- 2>&-', *PARITY, "--out", out)
    assert result.returncode == 0 and "parity: " in result.stdout


TIMED = ["bench", "--filter", "simple_neuron/baseline/cpu/fp32/tiny", "--benchmark_min_time=0.001"]


def test_google_benchmarks_own_file_is_written_as_every_other(tmp_path):
    """It would write into a FIFO, end with 1 where it cannot open its file, and not see a disk that is full."""
    fifo, out = tmp_path / "fifo", tmp_path / "gb.json"
    os.mkfifo(fifo)
    for path in (fifo, tmp_path, "/dev/full", "/proc/nowhere/gb.json"):
        result = warm.run(*TIMED, f"--benchmark_out={path}")
        assert result.returncode == 2 and "--benchmark_out" in result.stderr and str(path) in result.stderr, result
        assert not result.stdout
    out.write_text("the old one")
    assert warm.run(*TIMED, f"--benchmark_out={out}").returncode == 0
    assert json.loads(out.read_text())["benchmarks"]
    out.write_text("the old one")
    assert warm.run(*TIMED, f"--benchmark_out={out}", "--benchmark_filter=nothing").returncode == 3
    assert out.read_text() == "the old one" and {path.name for path in tmp_path.iterdir()} == {"fifo", "gb.json"}


def test_a_limit_on_the_size_of_files_is_an_error_and_leaves_nothing(tmp_path):
    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))

    result = run([*PARITY, "--out", tmp_path / "record.json"], preexec_fn=limited)
    assert result.returncode == 2 and "too large" in result.stderr, (result.returncode, result.stderr)
    assert not list(tmp_path.iterdir())
