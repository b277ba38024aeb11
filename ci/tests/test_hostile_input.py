"""What a stranger's file, name or pattern can do to the program: nothing but an error that names it."""
import json
import os
import struct
import subprocess
import time
from pathlib import Path

import pytest
import warm

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = os.environ["TWINBENCH_PROGRAM"]
CELL = "energy_flow.simple_neuron/optimized/cpu/fp32/tiny"
EVERY = bool(os.environ.get("TWINBENCH_EVERY"))  # ci/slow: in each command; else each attack in one of them
EVIL = "\x1b[31m\n::error::planted\r##[error]planted"
DEEP = "[" * 100_000 + "]" * 100_000


def some(values, count=1):
    return values if EVERY else values[:count]


def run(*command, seconds=10):
    """Ends with 2 and one short, harmless line of error; how long that took does not depend on the input's malice."""
    began = time.monotonic()
    result = warm.run(*command, timeout=60)
    error = result.stderr
    assert result.returncode == 2, (result.returncode, error[-500:])
    assert time.monotonic() - began < seconds
    assert len(error) < 8000 and all(char.isprintable() or char == "\n" for char in error), error
    assert "##[" not in error and not any(line.lstrip().startswith("::") for line in error.splitlines())
    return error


def safetensors(path, header, data=b""):
    header = (header if isinstance(header, str) else json.dumps(header)).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)
    return path


def entry(at=0):
    return {"dtype": "F32", "shape": [1], "data_offsets": [at, at + 4]}


@pytest.mark.parametrize("header", some(['{"input.x":{"dtype":"F32","shape":' + DEEP + ',"data_offsets":[0,4]}}',
                                         '{"a":' + '{"a":' * 100_000 + "1" + "}" * 100_000 + "}"]))
@pytest.mark.parametrize("command", some([["check", CELL, "--from"], ["data", "info"]]))
def test_a_deep_header_is_an_error(command, header, tmp_path):
    assert "header" in run(*command, safetensors(tmp_path / "a.safetensors", header, b"\0" * 4))


@pytest.mark.parametrize("key, value, says", some([
    ("sizes", '{"flows":' + DEEP + "}", "sizes"), ("options", DEEP, "options"), ("complex", DEEP, "complex"),
    ("cell", "x" * 200_000, "cell"), ("sizes", '{"flows":1e999}', "sizes"),
    ("sizes", '{"flows":' + "9" * 10_000 + "}", "sizes"), ("seed", EVIL, "seed")]))
def test_metadata_is_not_trusted(key, value, says, tmp_path):
    file = tmp_path / "a.safetensors"
    subprocess.run([PROGRAM, "dump", CELL, "--out", file], cwd=ROOT, check=True, capture_output=True)
    raw = file.read_bytes()
    length = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:8 + length])
    header["__metadata__"][key] = value
    safetensors(file, header, raw[8 + length:])
    assert says in run("check", CELL, "--from", file)


@pytest.mark.parametrize("command", some([["check", CELL, "--from"], ["data", "info"]]))
def test_80000_tensors_are_refused_at_once_and_not_listed(command, tmp_path):
    header = {f"input.t{i}": entry(4 * i) for i in range(80_000)}
    assert "80" in run(*command, safetensors(tmp_path / "a.safetensors", header, b"\0" * 320_000))


@pytest.mark.parametrize("command", some([["check", CELL, "--from"], ["data", "info"]]))
def test_names_of_tensors_are_not_obeyed(command, tmp_path):
    assert "planted" in run(*command, safetensors(tmp_path / "a.safetensors", {f"input.{EVIL}": entry()}, b"\0" * 4))


@pytest.mark.parametrize("engine", some(["kernels", "parity", "selftest", "scenario"]))
def test_patterns_neither_crash_nor_hang(engine):
    for pattern in some(["a" * 120_000, r"([a-z_./0-9]+)+!", "(" * 60_000, EVIL], 2):
        assert "--filter" in run(engine, "--filter", pattern)


FIFOS = [["counters", "--pins"], ["kernels", "--pins"], ["kernels", "--cards"], ["instructions", "--pins"],
         ["coverage", "--pins"], ["bench", "--session-from"], ["bench", "--earlier"], ["check", CELL, "--from"],
         ["data", "info"], ["scenario"]]


@pytest.mark.parametrize("command", some(FIFOS))
def test_a_fifo_is_no_input(command, tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    assert "fifo" in run(*command, fifo)


@pytest.mark.parametrize("command, start", some([
    (["data", "info"], b'{"input"'), (["counters", "--pins"], b"{"), (["bench", "--earlier"], b"{"),
    (["check", CELL, "--from"], b"\x10" + b"\0" * 7 + b"{")]))
def test_a_terabyte_of_nothing_is_refused_at_once(command, start, tmp_path):
    file = tmp_path / "large"
    with file.open("wb") as out:
        out.write(start)
        out.truncate(1 << 40)
    assert "1099511627776 bytes" in run(*command, file)


@pytest.mark.parametrize("command", some([["bench", "--earlier"], ["counters", "--pins"], ["kernels", "--pins"],
                                          ["instructions", "--pins"], ["bench", "--session-from"]]))
def test_json_of_strangers_is_an_error_by_name(command, tmp_path):
    file = tmp_path / "a.json"
    for text in some(['{"twinbench": {"speedups": [{}]}}' if "--earlier" in command else "[1]", '{"a":' + DEEP + "}",
                      '{"a": 1e999}', '{"\\ud800": 1}'], 2):
        file.write_text(text)
        assert "a.json" in run(*command, file)


@pytest.mark.skipif(not EVERY, reason="a gigabyte and half a minute: in ci/slow")
def test_one_opcode_50_million_times_is_refused(tmp_path):
    import zipfile
    for opcode in (b"N", b"(", b"]", b"\x94"):
        file = tmp_path / "a.pt"
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr("a/data.pkl", b"\x80\x02N" + opcode * 50_000_000 + b".")
        assert "pickle" in run("data", "info", file)


def test_a_command_line_that_is_no_text_does_not_lose_the_record(tmp_path):
    out = tmp_path / "r\udcff.json"
    command = [PROGRAM, "parity", "--held-out", "none", "--filter", f"^{CELL}$", "--out", out]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, timeout=60).returncode == 0
    assert json.loads(Path(out).read_text())["twinbench"]["parity"]
