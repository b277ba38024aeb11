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


def run(*command, seconds=10, cwd=ROOT):
    """Ends with 2 and one short, harmless line; how long that took does not depend on the input's malice."""
    began = time.monotonic()
    result = warm.run(*command, cwd=cwd, timeout=60)
    said = result.stdout + result.stderr
    assert result.returncode == 2, (result.returncode, said[-500:])
    assert time.monotonic() - began < seconds
    assert len(said) < 8000 and all(char.isprintable() or char == "\n" for char in said), said
    assert "##[" not in said and not any(line.lstrip().startswith("::") for line in said.splitlines())
    return said


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


def changed(cell, tmp_path, change):
    """A dump of the cell after `change(metadata, header, data)`, its metadata being text by key."""
    file = tmp_path / "a.safetensors"
    assert warm.run("dump", cell, "--out", file).returncode == 0
    raw = file.read_bytes()
    length = struct.unpack("<Q", raw[:8])[0]
    header, data = json.loads(raw[8:8 + length]), bytearray(raw[8 + length:])
    change(header["__metadata__"], header, data)
    return safetensors(file, header, bytes(data))


def with_option(name, text):
    def change(metadata, *_):
        options = json.loads(metadata["options"])
        options.pop(name, None)
        metadata["options"] = json.dumps(options)[:-1] + (", " if options else "") + f'"{name}": {text}}}'
    return change


@pytest.mark.parametrize("text", ['"bf16"', "null", "true"])
def test_an_option_that_is_no_number_is_named(text, tmp_path):
    cell = "energy_flow.flow_forward/optimized/cpu/fp32/gate"
    said = run("check", cell, "--from", changed(cell, tmp_path, with_option("hidden_dtype", text)))
    assert "options hidden_dtype" in said and "give a number" in said and "noise" not in said, said


def test_a_range_is_told_to_its_last_digit(tmp_path):
    cell = "energy_flow.flow_forward/optimized/cpu/fp32/gate"
    said = run("check", cell, "--from", changed(cell, tmp_path, with_option("seed", "-1")))
    assert "seed is '-1'" in said and "9007199254740992" in said, said


@pytest.mark.parametrize("missing", [4, 10])
def test_more_missing_rows_than_there_are_are_refused(missing, tmp_path):
    cell = "energy_flow.train_step/optimized/cpu/fp32/text"
    said = run("check", cell, "--from", changed(cell, tmp_path, with_option("missing_rows", missing)))
    assert f"out_of_range: missing_rows is '{missing}'" in said and "0 to 3" in said, said


@pytest.mark.parametrize("count", [-1, 1 << 40, (1 << 63) - 1, -1 << 63])
def test_no_loop_is_as_long_as_a_count_says(count, tmp_path):
    def change(metadata, header, data):
        del metadata["seed"]
        struct.pack_into("<q", data, header["input.counts"]["data_offsets"][0], count)
    cell = "energy_flow.train_step/optimized/cpu/fp32/tiny"
    said = run("check", cell, "--from", changed(cell, tmp_path, change))
    assert "out_of_range: counts" in said and str(count) in said, said


def test_a_check_that_is_none_is_told_all_there_are():
    said = run("parity", "--checks", "nope", "--filter", "simple_neuron")
    assert "'nope'" in said and "oracle" in said and "determinism" in said, said


@pytest.mark.parametrize("size", ["embedding", "height", "width", "rows"])
def test_sizes_of_metadata_have_the_signatures_ranges(size, tmp_path):
    cell, file = "energy_flow.embedding_mapper/optimized/cpu/fp32/tiny", tmp_path / "a.safetensors"
    assert warm.run("dump", cell, "--out", file).returncode == 0
    raw = file.read_bytes()
    length = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:8 + length])
    sizes = json.loads(header["__metadata__"]["sizes"])
    for value in (0, -1, 2**31, 2**63 - 1):
        header["__metadata__"]["sizes"] = json.dumps(sizes | {size: value})
        error = run("check", cell, "--from", safetensors(file, header, raw[8 + length:]), seconds=30)
        assert size in error or "sizes in the metadata" in error, error


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


NAMES = [["dump", EVIL, "--out", "never.safetensors"], ["scenario", EVIL], ["data", "info", EVIL],
         ["bench", "--benchmark_" + EVIL], ["check", EVIL, "--from", "never"], ["configuration", EVIL],
         ["dump", CELL, "--size", EVIL + "=1", "--out", "never.safetensors"], ["list", EVIL],
         ["kernels", "--cards", EVIL], ["kernels", "--size", EVIL], ["counters", "--pins", EVIL],
         ["coverage", "--folder", EVIL], ["bench", "--session-from", EVIL], ["bench", "--earlier", EVIL],
         ["data", "convert", EVIL, "--out", "never.efds"], ["data", "make", EVIL, "--out", "never.efds"]]
NAMES += [["parity", *words] for words in (
    [EVIL], ["--" + EVIL], ["--checks", EVIL], ["--device", EVIL], ["--seed", EVIL], ["--shard", EVIL],
    ["--out", "/proc/" + EVIL], ["--thread-order", EVIL, "--device", "simt"])]
NAMES += [[engine, "--filter", EVIL] for engine in ("parity", "counters", "bench", "ceilings", "scenario", "selftest",
                                                    "kernels", "list")]


@pytest.mark.parametrize("command", some(NAMES, 4))
def test_names_and_filters_on_the_command_line_are_not_obeyed(command, tmp_path):
    assert "planted" in run(*command, cwd=tmp_path if "never" in str(command) else ROOT)


@pytest.mark.parametrize("command", [["dump", CELL, "--out"], ["coverage", "--pin", "--pins"]])
def test_where_it_was_written_is_not_obeyed(command, tmp_path):
    result = warm.run(*command, tmp_path / EVIL.replace("/", ""), cwd=ROOT)
    assert result.returncode == 0 and "planted" in result.stdout, result.stderr
    assert all(char.isprintable() or char == "\n" for char in result.stdout)
    assert not any(line.startswith("::") for line in result.stdout.splitlines())


def test_words_of_a_scenario_file_are_not_obeyed(tmp_path):
    text = (ROOT / "scenarios/sem/scan_memory_budget.yaml").read_text()
    for line in (line for line in text.splitlines() if line.startswith(("summary:", "  baseline:", "  optimized:"))):
        text = text.replace(line, line.split(":")[0] + ': "\\e[31m\\n::error::planted\\r##[error]planted"')
    (tmp_path / "scan_memory_budget.yaml").write_text(text)
    for form in ([], ["--json"]):
        result = warm.run("list", "--scenarios", "--folder", tmp_path, *form)
        assert result.returncode == 0 and result.stdout.count("planted") >= 3, result.stderr
        assert all(char.isprintable() or char == "\n" for char in result.stdout) and "##[" not in result.stdout
        assert not any(line.lstrip().startswith("::") for line in result.stdout.splitlines())


def test_texts_of_a_dataset_are_not_obeyed(tmp_path):
    file, texts = tmp_path / "a.jsonl", {"input": EVIL + "\x9b31m\u202e", "target": "##[error]planted \x7f ü"}
    file.write_text(json.dumps(texts) + "\n")
    said = warm.run("data", "info", file).stdout
    assert "planted" in said and all(char.isprintable() or char == "\n" for char in said) and "##[" not in said
    said = warm.run("data", "info", "--json", file).stdout
    assert json.loads(said)["first_row"] == texts
    assert all(char.isprintable() or char == "\n" for char in said) and "##[" not in said


@pytest.mark.parametrize("engine", ["counters", "kernels", "coverage"])
def test_what_a_file_of_pins_says_is_not_obeyed(engine, tmp_path):
    """A change of theirs that a stranger proposes is compared, and the difference printed, before anybody reads it."""
    pins = tmp_path / "pins"
    device = "simt" if engine == "kernels" else "cpu"
    cell = CELL.replace("/cpu/", f"/{device}/")
    kept = {"counters": "counters.json", "kernels": "kernel_counts.json", "coverage": "coverage.txt"}[engine]
    kept = (ROOT / "ci" / kept).read_text()
    if engine == "coverage":
        pins.write_text(kept + EVIL + "\n")
    elif engine == "counters":
        pins.write_text(json.dumps({cell: json.loads(kept)[cell] | {"by_name": {EVIL: 3}}}))
    else:
        found = json.loads(kept)
        pins.write_text(json.dumps(found | {"cells": {cell: found["cells"][cell] | {EVIL: 3}}}))
    words = [] if engine == "coverage" else ["--filter", f"^{cell}$"]
    result = warm.run(engine, "--pins", pins, *words)
    said = result.stdout + result.stderr
    assert result.returncode == 1 and "planted" in said, said
    assert all(char.isprintable() or char == "\n" for char in said) and "##[" not in said
    assert not any(line.lstrip().startswith("::") for line in said.splitlines())


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
