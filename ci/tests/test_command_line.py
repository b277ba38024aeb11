"""The program's command line: help everywhere, exit codes, suggestions, bad input, interruption."""
import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
import warm

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = os.environ["TWINBENCH_PROGRAM"]


def run(*arguments, env=None):
    if env is None:
        return warm.run(*arguments)
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=180, cwd=ROOT,
                          env=env)


def test_a_start_answers_as_the_warm_process_does():
    for words in (["list", "--cells"], ["parity", "--help"], ["partiy"]):
        warm_one, started = run(*words), run(*words, env=os.environ)
        assert (warm_one.returncode, warm_one.stdout, warm_one.stderr) == (
            started.returncode, started.stdout, started.stderr), words


def test_the_readme_says_which_subcommands_filter_and_record():
    commands = re.findall(r"^  ([a-z]+)  ", run("--help").stdout.split("Subcommands:")[1], re.M)
    assert len(commands) > 10
    for command in commands:
        said = run(command, "--help").stdout
        filters = command not in ("coverage", "configuration", "dump", "check", "data")
        assert ("--filter" in said) == filters, command
        assert ("--out" in said) == (filters and command != "list" or command == "dump"), command


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
    (["dump", "energy_flow.simple_neuron/optimized/cpu/fp32/tinny", "--out", "never.safetensors"], "tiny"),
])
def test_unknown_names_suggest_the_nearest(arguments, hint):
    result = run(*arguments)
    assert result.returncode == 2 and hint in result.stderr, result.stderr


@pytest.mark.parametrize("arguments, field", [
    (["parity", "--filter", "("], "--filter"), (["parity", "--threads", "-3"], "--threads"),
    (["parity", "--threads", "1024"], "--threads is '1024'"), (["instructions", "--threads", "2"], "--threads"),
    (["parity", "--held-out", ""], "--held-out: '' names no text"),
    (["parity", "--held-out", "abc", "--filter", "simple_neuron/optimized/cpu/fp32/tiny$"], "--held-out is 'abc'"),
    (["bench", "--held-out", "abc", "--filter", "simple_neuron/.*/cpu/fp32/train$"], "--held-out is 'abc'"),
    (["parity", "--device", "tpu"], "--device"), (["parity", "--seed", "abc"], "--seed"),
    (["parity", "--seed", "18446744073709551616"], "18446744073709551615"), (["bench", "--seed", "-1"], "--seed"),
    (["kernels", "--seed", "9" * 10_000], "--seed"), (["selftest", "--seed", "1e3"], "--seed"),
    (["data", "make", "--seed", "0x1", "--out", "x.efds"], "--seed"),
    (["dump", "energy_flow.simple_neuron/optimized/cpu/fp32/tiny", "--seed", "1.5", "--out", "x"], "--seed"),
    (["data", "info", "/nonexistent.efds"], "nonexistent"),
    (["data", "make", "--rows", "-1", "--out", "never.efds"], "'-1' is no whole number from 0"),
    (["data", "make", "--rows", "0100", "--out", "never.efds"], "'0100' is no whole number"),
    (["data", "make", "--width", "0", "--out", "never.efds"], "'0' is no whole number from 1"),
    (["data", "make", "--words", "9", "3", "--out", "never.efds"], "9 to 3"),
    (["data", "make", "--words", "5", "a.txt", "--out", "never.efds"], "two, the fewest and the most"),
    (["data", "make", "--fliter"], "twinbench data make --help"), (["data", "foo"], "command is 'foo'"),
    (["bench", "--filter", "neuron/.*/cpu/fp32/tiny", "--benchmark_filter=("], "--benchmark_filter is '('"),
    (["data", "mkae"], "did you mean 'make'"), (["kernels", "--filter", ""], "--filter: '' names nothing"),
    (["scenario", "--folder", "/nonexistent"], "nonexistent"), (["scenario", "no_such_scenario"], "no_such_scenario"),
    (["dump", "energy_flow.simple_neuron/optimized/cpu/fp32/tiny", "--size", "flows=-1", "--out", "x.safetensors"
      ], "flows=-1"), ])
def test_bad_input_is_exit_code_2_and_names_the_field(arguments, field):
    result = run(*arguments)
    assert result.returncode == 2 and field in result.stderr, result.stderr


@pytest.mark.parametrize("engine", ["counters", "instructions", "kernels", "coverage"])
def test_without_the_file_of_pins_nothing_is_compared(engine, tmp_path):
    """In an empty folder, as where somebody forgot to go to the repository's root."""
    result = warm.run(engine, cwd=tmp_path)
    assert result.returncode == 2 and not result.stdout, result.stdout + result.stderr
    assert "--pins" in result.stderr and "repository's root" in result.stderr and "--pin" in result.stderr
    assert not list(tmp_path.iterdir())


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


def test_a_list_is_of_what_was_asked_for():
    gates = ("--filter", "stop_gate|lazy_gate")
    assert [row["id"] for row in json.loads(run("list", "--json", *gates).stdout)] == [
        line.split()[0] for line in run("list", *gates).stdout.splitlines() if line[0] != " "]
    assert len(json.loads(run("list", "--json", "--device", "simt").stdout)) < len(warm.components())
    by_device = [run("list", "--cells", "--device", device).stdout.split() for device in ("cpu", "cuda", "simt")]
    assert all(by_device) and sorted(sum(by_device, [])) == sorted(run("list", "--cells").stdout.split())
    assert len(json.loads(run("list", "--scenarios", "--json", "--filter", "scan_memory").stdout)["scenarios"]) == 1
    both = run("list", "--cells", "--json")
    assert both.returncode == 2 and "--json" in both.stderr and not both.stdout


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


@pytest.fixture(scope="module")
def benched(tmp_path_factory):
    """A run of bench in an environment that asks for spinning threads, and its record."""
    out = tmp_path_factory.mktemp("bench") / "record.json"
    result = run("bench", "--quick", "--null-cells", 1, "--null-blocks", 2, "--held-out", "none", "--out", out,
                 "--filter", "^trainer2.rotor_update/.*/cpu/fp32/default$",
                 env={**os.environ, "OMP_WAIT_POLICY": "ACTIVE"})
    assert result.returncode in (0, 3), result.stderr
    return result, out


def test_our_record_loads_in_compare_py(benched):
    compare(benched[1])


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
    # One check alone: the first cells take a moment, all of them far longer than this waits.
    for wait_s in (0.5, 2, 8):  # others may keep the machine busy
        process = subprocess.Popen([PROGRAM, "parity", "--checks", "oracle", "--out", str(out)], cwd=ROOT,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        next(line for line in process.stderr if "[0/" in line)
        time.sleep(wait_s)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        assert process.returncode in (1, 3), process.returncode
        measured = json.loads(out.read_text())["twinbench"]["parity"]
        if measured:
            break
    assert measured, "what was measured before the interruption is in the record"


def test_refused_output_leaves_nothing_behind(tmp_path):
    result = run("counters", "--filter", "simple_neuron/optimized/cpu/fp32/tiny", "--out", "/proc/nowhere/record.json")
    assert result.returncode == 2 and "--out" in result.stderr


# What libgomp itself says it read, at the last of the program's starts.
def waiting(**variables):
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "TWINBENCH_WAIT_POLICY")}
    result = run("list", env={**environment, "OMP_DISPLAY_ENV": "verbose", **variables})
    assert result.returncode == 0, result.stderr
    read = [line.split("=")[1].strip(" '") for line in result.stderr.splitlines() if "OMP_WAIT_POLICY =" in line]
    spins = [line.split("=")[1].strip(" '") for line in result.stderr.splitlines() if "GOMP_SPINCOUNT =" in line]
    assert len(read) == len(spins) <= 2, result.stderr
    return read[-1], spins[-1], len(read), result.stderr


@pytest.mark.parametrize("variables, policy, spins, said", [
    ({}, "PASSIVE", "0", ""),
    ({"OMP_WAIT_POLICY": "PASSIVE"}, "PASSIVE", "0", ""),
    ({"OMP_WAIT_POLICY": "ACTIVE"}, "PASSIVE", "0", "passive, not OMP_WAIT_POLICY=ACTIVE;"),
    ({"GOMP_SPINCOUNT": "77"}, "PASSIVE", "0", "passive, not GOMP_SPINCOUNT=77;"),
    ({"TWINBENCH_WAIT_POLICY": "environment", "GOMP_SPINCOUNT": "77"}, "PASSIVE", "77", ""),
    ({"TWINBENCH_WAIT_POLICY": "active", "OMP_WAIT_POLICY": "ACTIVE"}, "ACTIVE", None, ""),
])
def test_waiting_threads_do_what_the_projects_variable_says(variables, policy, spins, said):
    read, count, loads, stderr = waiting(**variables)
    assert (read, loads) == (policy, 1) and count == (spins or count), stderr  # LibTorch is loaded once
    assert said in stderr if said else "waiting threads" not in stderr


def test_an_unknown_wait_policy_is_a_usage_error():
    result = run("list", env={**os.environ, "TWINBENCH_WAIT_POLICY": "spin"})
    assert result.returncode == 2 and "bad_argument" in result.stderr and "TWINBENCH_WAIT_POLICY" in result.stderr


def test_the_record_says_how_threads_waited(benched):
    result, out = benched
    assert "waiting threads: passive\n" in result.stderr
    environment = json.loads(out.read_text())["twinbench"]["provenance"]["environment"]
    assert (environment["OMP_WAIT_POLICY"] == "PASSIVE"
            and environment["TWINBENCH_WAIT_OVERRIDDEN"] == "OMP_WAIT_POLICY=ACTIVE")


def cells_of(path, section="parity"):
    """Cell -> its rows, without those that only say that the cell was left out."""
    rows = json.loads(path.read_text())["twinbench"][section]
    return ({row["cell"] for row in rows if row.get("check") != "left_out" and row["verdict"] != "skip"},
            {row["cell"]: row["reason"] for row in rows
             if row.get("check") == "left_out" or row["verdict"] == "skip" and "check" not in row})


SMALL = "^trainer2.rotor_update/"  # two large cases, of 6 and 128 planes


@pytest.mark.parametrize("engine", ["parity", "counters"])
def test_the_quick_tier_names_the_large_cells_that_it_leaves_out(engine, tmp_path):
    out = tmp_path / "record.json"
    checks = ["--checks", "oracle,specimen"] if engine == "parity" else []
    words = [engine, "--tier", "quick", "--filter", SMALL, *checks]
    # From the environment, as a replay would give it.
    result = run(*words, "--out", out, env={**os.environ, "TWINBENCH_SAMPLE": "abc"})
    assert result.returncode == 0, result.stdout + result.stderr
    judged, left_out = cells_of(out, engine)
    listed = run("list", "--cells", "--filter", f"{SMALL}.*/cpu/").stdout.split()
    judged = {cell for cell in judged if not cell.endswith("/held_out")}
    assert judged | set(left_out) == set(listed) and not judged & set(left_out)
    assert left_out and all("--tier full" in reason and "sample abc" in reason for reason in left_out.values())
    assert "--sample abc" in result.stdout and "skipped" in result.stdout
    again = tmp_path / "again.json"
    assert run(*words, "--sample", "abc", "--out", again).returncode == 0
    repeated, left_out_again = cells_of(again, engine)
    assert {cell for cell in repeated if not cell.endswith("/held_out")} == judged and left_out_again == left_out


def test_a_revision_counts_other_kernels_first_and_small_cases_before_timed_ones():
    """Under a limit the rest is left out: what always came last would never be compared with its pins."""
    def order(sample: str) -> list[str]:
        result = run("kernels", "--pins-only", "--filter", "^energy_flow.losses/", "--minutes", "1e-6",
                     "--sample", sample)
        assert result.returncode == 3, result.stderr
        return re.findall(r"^(\S+): left out", result.stderr, re.MULTILINE)
    first, again, other = order("abc"), order("abc"), order("abd")
    assert first == again != other and sorted(first) == sorted(other) and len(first) > 10
    losses = next(one for one in json.loads(run("list", "--json").stdout) if one["id"] == "energy_flow.losses")
    timed = [case["name"] for case in losses["cases"] if case["timed"]]
    places = [cell.rsplit("/", 1)[1] in timed for cell in other]
    assert places == sorted(places) and any(places)


def test_shards_are_disjoint_and_together_everything(tmp_path):
    parts = []
    for index in (1, 2, 3):
        out = tmp_path / f"{index}.json"
        result = run("parity", "--checks", "golden,oracle", "--shard", f"{index}/3", "--filter",
                     "simple_neuron/(baseline|optimized)/cpu/fp32/.*(tiny|odd|one|empty|tile)", "--out", str(out))
        assert f"shard {index}/3" in result.stdout
        parts.append(cells_of(out)[0])
    whole = run("list", "--cells", "--filter",
                "simple_neuron/(baseline|optimized)/cpu/fp32/.*(tiny|odd|one|empty|tile)").stdout.split()
    assert sum(len(part) for part in parts) == len(set.union(*parts)) == len(whole) and set.union(*parts) == set(whole)


@pytest.mark.parametrize("engine", ["parity", "counters", "bench"])
def test_a_spent_budget_names_what_it_leaves_out_and_is_no_pass(engine, tmp_path, benched):
    out = tmp_path / "record.json"
    case = "train" if engine == "bench" else "tiny"
    session = ("--session-from", benched[1]) if engine == "bench" else ()
    result = run(engine, *session, "--minutes", "0.0001", "--filter", f"simple_neuron/.*/cpu/fp32/{case}$", "--out",
                 str(out))
    assert result.returncode == 3, result.stdout + result.stderr
    assert "left out, budget" in result.stdout and "inconclusive" in result.stdout
    block = json.loads(out.read_text())["twinbench"]
    rows = block["speedups" if engine == "bench" else engine]
    assert rows and all("budget" in row["reason"] for row in rows)
    assert all(row["verdict"] in ("skip", "inconclusive") for row in rows)


@pytest.mark.parametrize("engine", ["parity", "bench"])
def test_a_filter_may_mean_held_out_cells_alone(engine, tmp_path, benched):
    """Those of one component, drawn by a text: they are in no list."""
    out = tmp_path / "record.json"
    session = ("--session-from", benched[1]) if engine == "bench" else ()
    result = run(engine, *session, "--quick", "--held-out", "abc", "--filter", "^energy_flow.collation/.*/held_out$",
                 "--minutes", "0.5" if engine == "parity" else "0.0001", "--out", str(out))
    assert result.returncode in (0, 3), result.stderr
    block = json.loads(out.read_text())["twinbench"]
    rows = block["parity" if engine == "parity" else "speedups"]
    assert {row.get("case", row.get("cell", "").rsplit("/", 1)[-1]) for row in rows} == {"held_out"}
    assert engine == "bench" or "held out by abc" in result.stdout
    assert run(engine, "--held-out", "none", "--filter", "held_out").returncode == 2


def test_kernels_forget_a_cell_that_is_no_more(tmp_path):
    """Pins of other cells that exist stay, whatever the filter."""
    pins, cell = tmp_path / "pins.json", "energy_flow.simple_neuron/optimized/simt/fp32/tiny"
    kept = json.loads((ROOT / "ci/kernel_counts.json").read_text())
    other = next(name for name in kept["cells"] if name.startswith("sem."))
    gone = cell.replace("tiny", "no_such_case")
    pins.write_text(json.dumps({"reasons": kept["reasons"], "cells": {
        cell: kept["cells"][cell], gone: kept["cells"][cell], other: kept["cells"][other]}}))
    result = run("kernels", "--pin", "--pins", pins, "--filter", f"^{cell}$")
    assert result.returncode == 0 and "dropped 1 " in result.stderr, result.stderr
    assert set(json.loads(pins.read_text())["cells"]) == {cell, other}


def test_kernels_keep_to_their_budget():
    result = run("kernels", "--pins-only", "--minutes", "0.00001", "--filter", "simple_neuron/.*/fp32/(tiny|odd)$")
    assert result.returncode == 3 and ": left out, budget" in result.stderr, result.stderr  # which one: by revision
    assert run("kernels", "--minutes", "0").returncode == 2


def test_selftest_keeps_to_its_budget_and_shards(tmp_path):
    """Left out is named and no pass; the shards are disjoint; the first of every check come before any second."""
    out = tmp_path / "selftest.json"
    spent = run("selftest", "--minutes", "0.0001", "--filter", "dropped_tail|stale_buffer|^correct$", "--out", str(out))
    assert spent.returncode == 3 and "left out, budget" in spent.stdout and "passed" in spent.stdout
    ledger = json.loads(out.read_text())["twinbench"]["ledger"]
    assert ledger["inconclusive"] >= 2 and ledger["passed"] == ledger["planned"] - ledger["inconclusive"]
    names = lambda *more: [row["name"] for row in (
        run("selftest", "--filter", "^(zeros|dropped_tail|stale_buffer|one_item|empty)$", "--out", str(out), *more),
        json.loads(out.read_text())["twinbench"]["selftest"])[1]]
    assert sorted(names("--shard", "1/2") + names("--shard", "2/2")) == sorted(names())


@pytest.mark.parametrize("arguments, named", [
    (["--shard", "3/2"], "--shard"), (["--shard", "1/99999999999999999999"], "--shard"),
    (["--shard", "half"], "--shard"), (["--shard", ""], "--shard: '' names no part"),
    (["--filter", ""], "--filter: '' names nothing"), (["--tier", "quik"], "quick"),
    (["--sample", ""], "--sample: '' names no text"), (["--tier", "full", "--quick"], "--quick excludes --tier"),
    (["--minutes", "-1"], "--minutes")])
def test_bad_shares_are_usage_errors(arguments, named):
    result = run("parity", *arguments)
    assert result.returncode == 2 and named in result.stderr
