"""The program's command line: help everywhere, exit codes, suggestions, bad input, interruption."""
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = os.environ["TWINBENCH_PROGRAM"]


def run(*arguments, timeout=180, **keywords):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=timeout,
                          cwd=keywords.pop("cwd", ROOT), **keywords)


@pytest.mark.parametrize("command",
                         [[], ["list"], ["parity"], ["counters"], ["bench"], ["scenario"], ["selftest"], ["dump"],
                          ["check"], ["data"], ["data", "make"], ["data", "info"], ["data", "convert"]])
def test_help_everywhere(command):
    result = run(*command, "--help")
    assert result.returncode == 0 and "--help" in result.stdout


@pytest.mark.parametrize("arguments, hint", [
    (["partiy"], "parity"),
    (["parity", "--fliter", "x"], "--filter"),
    (["bench", "--benchmark_fliter=x"], "--benchmark_filter"),
    (["bench", "--quik"], "--quick"),
    (["parity", "--filter", "energy_flow.simple_nueron"], "energy_flow.simple_neuron"),
    (["dump", "energy_flow.simple_neuron/optimized/cpu/fp32/tinny", "--out", "/dev/null/x"], "tiny"),
])
def test_unknown_names_suggest_the_nearest(arguments, hint):
    result = run(*arguments)
    assert result.returncode == 2 and hint in result.stderr, result.stderr


@pytest.mark.parametrize("arguments, field", [
    (["parity", "--filter", "("], "--filter"), (["parity", "--threads", "-3"], "--threads"),
    (["parity", "--device", "tpu"], "--device"), (["parity", "--seed", "abc"], "--seed"),
    (["data", "info", "/nonexistent.efds"], "nonexistent"),
    (["data", "make", "--words", "9", "3", "--out", "/nonexistent/x.efds"], "9 to 3"),
    (["scenario", "--folder", "/nonexistent"], "nonexistent"), (["scenario", "no_such_scenario"], "no_such_scenario"),
    (["dump", "energy_flow.simple_neuron/optimized/cpu/fp32/tiny", "--size", "flows=-1", "--out", "x.safetensors"
      ], "flows=-1"), ])
def test_bad_input_is_exit_code_2_and_names_the_field(arguments, field):
    result = run(*arguments)
    assert result.returncode == 2 and field in result.stderr, result.stderr


def test_text_limits_of_data_make(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text(
        "One two three four five. Six seven eight nine ten. Short one here. Alpha beta gamma delta epsilon. Zeta eta "
        "theta iota kappa.\n"
    )

    def rows(*arguments):
        result = run("data", "make", str(text), "--out", str(tmp_path / "pairs.efds"), *arguments)
        assert result.returncode == 0, result.stderr
        return json.loads(run("data", "info", "--json", str(tmp_path / "pairs.efds")).stdout)["rows"]

    assert (rows(), rows("--words", "3", "40"), rows("--words", "3", "40", "--rows", "2")) == (3, 4, 2)


def test_cuda_where_there_is_none():
    if Path("/proc/driver/nvidia").exists():
        pytest.skip("this machine has an NVIDIA driver")
    result = run("parity", "--device", "cuda", "--filter", "simple_neuron")
    assert result.returncode == 2 and ("missing_device" in result.stderr or "unknown_name" in result.stderr)


def test_list_json_is_the_components_table():
    table = json.loads(run("list", "--json").stdout)
    listed = [
        line for line in (ROOT / "src/components.def").read_text().splitlines()
        if line.startswith("TWINBENCH_COMPONENT(")]
    assert len(table) == len(listed) > 0
    for component in table:
        assert component["sin"] and component["proof"] and component["cases"] and component["summary"]
        assert any(case["timed"] for case in component["cases"])


def test_cell_names_are_unique_and_well_formed():
    cells = run("list", "--cells").stdout.split()
    assert len(cells) == len(set(cells)) > 0
    assert all(len(cell.split("/")) == 5 for cell in cells)


def test_google_benchmark_json_loads_in_compare_py(tmp_path):
    out = tmp_path / "gb.json"
    result = run("bench", "--filter", "simple_neuron/.*/cpu/fp32/tiny", f"--benchmark_out={out}",
                 "--benchmark_min_time=0.01")
    assert result.returncode == 0, result.stderr
    names = [row["name"] for row in json.loads(out.read_text())["benchmarks"]]
    assert any("energy_flow.simple_neuron/optimized/cpu/fp32/tiny" in name for name in names)
    compare(out)


def test_our_record_loads_in_compare_py(tmp_path):
    out = tmp_path / "record.json"
    result = run("bench", "--quick", "--filter", "collation/.*/cpu/fp32/", "--out", out)
    assert result.returncode in (0, 3), result.stderr
    compare(out)


def compare(path):
    """Google Benchmark's own compare.py, from Debian's package, on a file against itself."""
    tools = [p for p in (Path("/usr/share/benchmark"), Path("/usr/share/doc/libbenchmark-tools")) if p.exists()]
    scripts = [s for t in tools for s in t.rglob("compare.py")] + [Path("/usr/bin/benchmark-compare")]
    script = next((s for s in scripts if s.exists()), None)
    listed = subprocess.run(["dpkg", "-L", "libbenchmark-tools"], capture_output=True, text=True).stdout.split()
    script = script or next(Path(p) for p in listed if p.endswith("compare.py"))
    result = subprocess.run(
        ["/usr/bin/env", "python3",
         str(script), "--no-color", "benchmarks",
         str(path), str(path)], capture_output=True, text=True)
    if "No module named" in result.stderr:
        venv = Path(os.environ["TWINBENCH_VENV"]) / "bin/python"
        result = subprocess.run([str(venv), str(script), "--no-color", "benchmarks",
                                 str(path), str(path)], capture_output=True, text=True)
    assert result.returncode == 0 and "OVERALL_GEOMEAN" in result.stdout, result.stderr + result.stdout


def test_interruption_keeps_what_was_measured(tmp_path):
    out = tmp_path / "record.json"
    process = subprocess.Popen([PROGRAM, "parity", "--out", str(out)], cwd=ROOT, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    time.sleep(6)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode in (1, 3), process.returncode
    record = json.loads(out.read_text())
    assert record["twinbench"]["parity"], "what was measured before the interruption is in the record"


def test_refused_output_leaves_nothing_behind(tmp_path):
    result = run("counters", "--filter", "simple_neuron/optimized/cpu/fp32/tiny", "--out", "/proc/nowhere/record.json")
    assert result.returncode == 2 and "--out" in result.stderr
