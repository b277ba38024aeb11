"""Nothing of the suite is left out unseen: CTest's entries, as this build has them, and the presets over them."""
import functools
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "ci"))
from registry import kinds_of  # noqa: E402

PROGRAM = Path(os.environ["TWINBENCH_PROGRAM"]).absolute()
BUILD = PROGRAM.parents[1]
SANITIZED = "TWINBENCH_SANITIZE:BOOL=ON" in (BUILD / "CMakeCache.txt").read_text()  # has no budgets, counts no accesses

# `ci/test` runs what has not the label slow, `ci/slow tests` what has it. Whoever adds an entry there says it here,
# with the variables that make it more than the quick one of the same file.
SLOW = {
    "bundle": [], "headers_alone": [], "instructions_counted": [],
    "skeleton": ["TWINBENCH_SKELETON_BUILD=1"], "simulations": ["TWINBENCH_FULL_SIMULATIONS=1"],
    "report_size": ["TWINBENCH_FULL_SIZE=1"], "reports_fuzz": ["TWINBENCH_FUZZ_CHANGES=1500"],
    "hostile_input_every": ["TWINBENCH_EVERY=1"], "every_component": ["TWINBENCH_EVERY=1"],
    "every_component_beyond": ["TWINBENCH_EVERY=1"], "every_size": ["TWINBENCH_EVERY=1"],
    "every_baseline": ["TWINBENCH_EVERY=1"],
    "held_out_sweep": ["TWINBENCH_SWEEP_TEXTS=60"],
    "held_out_sweep_simt": ["TWINBENCH_SWEEP_TEXTS=15", "TWINBENCH_SWEEP_DEVICE=simt"],
}
# What `ctest --preset quick` does without, so that it ends within 8 minutes on two cores. `ci/test` runs it.
THOROUGH = {
    "baseline_code", "command_line", "compare_revisions", "flow_gradients", "gpu_suite", "hostile_input", "injections",
    "modelled_gate", "operators", "other_implementations", "outputs", "planted_fault", "reproduce_runs", "scripts",
    "scenarios", "selftest.timed", "site", "unit.bench_tests", "unit.parity_beyond_tests_1",
    "unit.parity_beyond_tests_2", "unit.size_tests", "workflows",
}
# What the address sanitizer takes over, so that nothing of it can be seen under that (reports/sanitizers.md).
LEFT_TO_PLAIN_BUILDS = {
    "injections": "faults are preloaded, and the sanitizer's runtime must come first",
    "planted_fault": "the same",
    "operators": "they are loaded into a Python that is not instrumented",
    "modelled_gate": "accesses are counted by the compiler's own instrumentation",
    "reproduce_runs": "the same, in a part of it",
    "selftest[.].*": "its twins plant allocations",
}
# Entries that run a part of a program's tests, for longer or of more components; the whole has an entry of its own.
PARTS = {
    "held_out_sweep": "HeldOutSweep.*", "held_out_sweep_simt": "HeldOutSweep.*",
    "every_component": "CostCheck.*:DocumentedMistake.Each*:KernelReach.*:Options.*:Taint.*",
    "every_component_beyond": "-SeedSweep.*",  # that is ci/seed_sweep.py
    "every_baseline": "OperatorShare.Nothing*",
}
# Test files that only other builds run: where that is said.
ELSEWHERE = {"ci/tests/test_cuda_build.py": "twinbench_pytest(cuda_build ci/tests/test_cuda_build.py nvcc)"}
# Entries that are no pytest, no *_tests program and no sampled engine.
OTHERS = {
    "formatting": ["ci/format", "--check"], "headers_alone": ["ci/headers_alone.py", str(BUILD)],
    "selftest.harness": ["selftest", "--timing", "without"], "selftest.timed": ["selftest", "--timing", "only"],
}
# An output that makes an entry a skipped one: which entry's, and why it may.
SKIPPED_BY_OUTPUT = {"unit.cuda_timing_tests": "a CUDA build on a machine without a card"}
# Unit tests that may skip themselves, by what they say then.
SKIP_THEMSELVES = {
    "optimized/energy_flow/dataset_loader/loader_limits_test.cpp": "the sanitizer's own memory does not fit a limit",
    "optimized/energy_flow/train_step/train_step_test.cpp": "the sanitizers slow our own code alone, not LibTorch's",
    "src/formats/hostile_test.cpp": "the sanitizer has this signal", "src/formats/convert_test.cpp": "error.what()",
    "harness/terminal/terminal_test.cpp": "this machine has no pseudo-terminals",
    "harness/runner/runner_test.cpp": "the sanitizer's allocator ends the process instead of throwing",
    "harness/counters/process_calls_test.cpp": "a sanitizer has these functions",
    "harness/simt/host_launch_test.cpp": "the sanitizer ends the process first",
    "harness/device/cuda/cuda_timing_test.cpp": "no CUDA device",
    "harness/memory/global_state_test.cpp": "one processor only",
}
HARMLESS = {"ENVIRONMENT", "ENVIRONMENT_MODIFICATION", "LABELS", "RUN_SERIAL", "TIMEOUT", "WORKING_DIRECTORY",
            "SKIP_RETURN_CODE", "SKIP_REGULAR_EXPRESSION"}  # the two last have rules of their own
# Seconds of a core that the sampled engines have in all, each test's start among them. They may grow.
SECONDS = {("parity", "cpu"): 80, ("parity", "simt"): 120, ("counters", "cpu"): 50, ("counters", "simt"): 40,
           ("kernels", "simt"): 50}
START_S = 0.5
PYTEST = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "faulthandler_timeout=600"]


def commands_below(folder: Path) -> dict[str, list[str]]:
    """By entry, as configured: ctest's own list has no command of a program that is not built yet."""
    text = (folder / "CTestTestfile.cmake").read_text()
    found = {}
    for name, words in re.findall(r'^add_test\(\[=\[(.*?)\]=\] (.*)\)$', text, re.MULTILINE):
        found[name] = [re.sub(r"\\(.)", r"\1", word) for word in re.findall(r'"((?:[^"\\]|\\.)*)"', words)]
    for below in re.findall(r'^subdirs\("(.*)"\)$', text, re.MULTILINE):
        found |= commands_below(folder / below)
    return found


@functools.cache
def entries() -> dict[str, tuple[list[str], dict[str, object]]]:
    """By name: the command and the properties. Listed from another folder: where it lists, ctest writes its log, and
    the one that may have started this test has its own in the build."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "CTestTestfile.cmake").write_text(f'subdirs("{BUILD}")\n')
        listed = subprocess.run(["ctest", "--test-dir", folder, "--show-only=json-v1"], check=True, capture_output=True,
                                text=True, timeout=120).stdout
    properties = {test["name"]: {one["name"]: one["value"] for one in test["properties"]}
                  for test in json.loads(listed)["tests"]}
    commands = commands_below(BUILD)
    assert commands.keys() == properties.keys() and len(commands) > 100
    return {name: (commands[name], properties[name]) for name in commands}


def labels(name: str) -> list[str]:
    return entries()[name][1].get("LABELS", [])


def programs_entries() -> dict[str, tuple[list[str], dict[str, object]]]:
    return {name: (command, properties) for name, (command, properties) in entries().items()
            if Path(command[0]).name.endswith("_tests")}


def engines_entries() -> dict[str, list[str]]:
    """Entries that call the program's own engines, but for the self-test."""
    return {name: command[1:] for name, (command, _) in entries().items()
            if Path(command[0]).name == PROGRAM.name and command[1] != "selftest"}


def pytest_entries() -> dict[str, list[str]]:
    return {name: command for name, (command, _) in entries().items() if "pytest" in command}


def preset_of(name: str) -> dict[str, object]:
    listed = json.loads((ROOT / "CMakePresets.json").read_text())["testPresets"]
    preset, = (preset for preset in listed if preset["name"] == name)
    return preset


@pytest.mark.parametrize("name", ["cpu", "quick", "asan"])
def test_a_preset_filters_by_nothing_but_what_it_leaves_out(name):
    """No environment with a filter in it, nothing inherited, no list of what to take."""
    preset = preset_of(name)
    assert preset.keys() - {"description"} == {"name", "configurePreset", "output", "execution", "filter"}
    assert preset["configurePreset"] == {"quick": "cpu"}.get(name, name)
    assert preset["execution"] == {"noTestsAction": "error"}
    assert preset["filter"].keys() == {"exclude"}


def test_the_cpu_preset_leaves_out_exactly_what_is_slow():
    """So every entry is run by `ci/test` or by `ci/slow tests`; what both call is in ci/tests/script_commands.txt."""
    assert preset_of("cpu")["filter"]["exclude"] == {"label": "slow"}, "what has no label slow is run for every change"


def test_the_quick_preset_leaves_out_besides_exactly_what_is_thorough():
    assert preset_of("quick")["filter"]["exclude"] == {"label": "slow|thorough"}
    thorough = {name for name in entries() if any(re.search("thorough", label) for label in labels(name))}
    assert thorough == THOROUGH and all("thorough" in labels(name) for name in thorough)


def test_the_asan_preset_leaves_out_besides_exactly_what_the_sanitizer_takes_over():
    left_out = preset_of("asan")["filter"]["exclude"]
    names = re.fullmatch(r"\^\((.*)\)\$", left_out["name"])[1].split("|")
    assert left_out == {"label": "slow", "name": left_out["name"]}
    assert sorted(names) == sorted(LEFT_TO_PLAIN_BUILDS), "add it to LEFT_TO_PLAIN_BUILDS with its reason"
    assert [one for one in names if not any(re.fullmatch(one, name) for name in entries())] == [], "no such entry"


def test_exactly_what_is_listed_here_is_slow():
    """CMake's presets look for the word in every label: one that only holds it would be left out as well."""
    slow = {name for name in entries() if any(re.search("slow", label) for label in labels(name))}
    assert slow == SLOW.keys() and all("slow" in labels(name) for name in slow)
    for name, variables in SLOW.items():
        missing = set(variables) - set(entries()[name][1].get("ENVIRONMENT", []))
        assert not missing, f"{name} is no more than the quick one without {missing}"


def files_of(command: list[str]) -> list[tuple[str, str]]:
    """(test file, what -k restricts it to) of a command of pytest."""
    words = command[1 + len(PYTEST):]
    assert command[1:1 + len(PYTEST)] == PYTEST, command
    only, ignored, paths = "", [], []
    while words:
        word = words.pop(0)
        if word == "-k":
            only = words.pop(0)
        elif word.startswith("--ignore-glob="):
            ignored.append(word.partition("=")[2])
        else:
            assert not word.startswith("-"), f"{word}: this test does not know what it leaves out"
            paths.append(word)
    files = [str(file.relative_to(ROOT)) for path in paths
             for file in (sorted((ROOT / path).glob("test_*.py")) if (ROOT / path).is_dir() else [ROOT / path])]
    return [(file, only) for file in files if not any(fnmatch(file, pattern) for pattern in ignored)]


def test_every_pytest_file_is_run_by_an_entry():
    """A folder counts for its files; one that is run in part, with -k, must be run with the contrary as well."""
    run = defaultdict(set)
    for command in pytest_entries().values():
        for file, only in files_of(command):
            run[file].add(only)
    whole = {file for file, parts in run.items() if any(not part or f"not {part}" in parts for part in parts)}
    there = {str(file.relative_to(ROOT)) for folder in ("ci/tests", "reports/tests")
             for file in (ROOT / folder).glob("test_*.py")}
    listed = (ROOT / "ci/CMakeLists.txt").read_text()
    other_builds = {file for file, said in ELSEWHERE.items() if said in listed}
    assert sorted(there - whole - other_builds) == [], "give it to a twinbench_pytest in ci/CMakeLists.txt"
    assert sorted(run.keys() - there) == [], "an entry runs what is not there"


def test_every_program_of_unit_tests_is_run_whole():
    """By entries without a filter, all of whose shards are there."""
    built = set(re.findall(r"^build bin/(\w+_tests):", (BUILD / "build.ninja").read_text(), re.MULTILINE))
    shards = defaultdict(set)
    for name, (command, properties) in programs_entries().items():
        environment = dict(one.split("=", 1) for one in properties.get("ENVIRONMENT", []))
        if "slow" not in labels(name) and len(command) == 1:
            shards[Path(command[0]).name].add((int(environment["GTEST_SHARD_INDEX"]),
                                               int(environment["GTEST_TOTAL_SHARDS"])))
    assert len(built) > 20
    whole = {program for program, parts in shards.items() if parts == {(i, len(parts)) for i in range(len(parts))}}
    assert sorted(built - whole) == [], "give it a twinbench_test, whose parts are all there"


def test_an_entry_that_filters_a_program_s_tests_is_one_of_these():
    filtered = {name: command[1:] for name, (command, _) in programs_entries().items() if len(command) > 1}
    assert filtered == {name: [f"--gtest_filter={tests}"] for name, tests in PARTS.items()}


def test_what_is_neither_pytest_nor_unit_test_nor_engine_is_one_of_these():
    known = pytest_entries().keys() | programs_entries().keys() | engines_entries().keys()
    others = {name: command for name, (command, _) in entries().items()
              if name not in known and "nvcc" not in labels(name)}
    assert others.keys() == OTHERS.keys()
    for name, words in OTHERS.items():
        assert " ".join(others[name]).endswith(" ".join(words)), others[name]


def test_every_component_has_its_engines():
    """Parity and counters on the CPU; those with kernels on simt too, where accesses are counted besides."""
    listed = subprocess.run([PROGRAM, "list", "--json"], check=True, capture_output=True, text=True).stdout
    kinds = kinds_of(ROOT)
    ids = [component["id"] for component in json.loads(listed)]
    assert sorted(ids) == sorted(kinds)
    expected = {}
    for one in ids:
        cells = ["--filter", "^" + one.replace(".", "\\.") + "/"]
        on_simt = kinds[one] == "kernel"
        for device in ("cpu", "simt") if on_simt else ("cpu",):
            for engine in ("parity", "counters"):
                expected[f"{engine}.{one}.{device}"] = [engine, "--tier", "quick", "--device", device, *cells]
        if on_simt and not SANITIZED:
            expected[f"kernel_counts.{one}"] = ["kernels", *cells]
    without_budget = {name: words[:-2] if "--minutes" in words else words for name, words in engines_entries().items()}
    assert without_budget == expected


def test_the_sampled_engines_have_their_seconds():
    if SANITIZED:
        pytest.skip("a build with sanitizers has no budget: ci/slow has the time")
    seconds = defaultdict(float)
    for words in engines_entries().values():
        assert words[-2] == "--minutes", words
        device = words[words.index("--device") + 1] if "--device" in words else "simt"
        seconds[words[0], device] += 60 * float(words[-1]) + START_S
    assert seconds.keys() == SECONDS.keys()
    less = {key: round(seconds[key], 1) for key, least in SECONDS.items() if seconds[key] < 0.99 * least}
    assert less == {}, f"cells are then left out by the draw of more revisions; at least {SECONDS}"


def test_an_entry_is_shown_as_skipped_only_where_an_engine_ends_undecided():
    """The engines' exit code 3; 1 is a failure, and 2 the tool's."""
    codes = {name: properties["SKIP_RETURN_CODE"] for name, (_, properties) in entries().items()
             if "SKIP_RETURN_CODE" in properties}
    assert codes == dict.fromkeys(engines_entries(), 3)
    by_output = {name for name, (_, properties) in entries().items() if "SKIP_REGULAR_EXPRESSION" in properties}
    assert sorted(by_output - SKIPPED_BY_OUTPUT.keys()) == []


def test_no_entry_passes_for_another_reason_than_its_exit_code():
    """Neither WILL_FAIL, nor DISABLED, nor PASS_REGULAR_EXPRESSION, nor variables that restrict a test program."""
    for name, (_, properties) in entries().items():
        assert properties.keys() <= HARMLESS, f"{name}: is {properties.keys() - HARMLESS} harmless? Then say so here"
        variables = [*properties.get("ENVIRONMENT", []), *properties.get("ENVIRONMENT_MODIFICATION", [])]
        restricting = [one for one in variables if re.match(r"(?!GTEST_TOTAL_SHARDS=|GTEST_SHARD_INDEX=)GTEST_|PYTEST_",
                                                            one)]
        assert restricting == [], name


def test_a_unit_test_skips_itself_only_where_it_is_listed_with_its_reason():
    skipping = {}
    for folder in ("baselines", "harness", "kernels", "optimized", "scenarios", "src"):
        for file in (ROOT / folder).rglob("*_test.cpp"):
            text = file.read_text()
            assert not re.search(r"\bTEST\w*\([^)]*\bDISABLED_", text), f"{file}: a test that is disabled is none"
            for said in re.findall(r"GTEST_SKIP\(\)(.*)", text):
                skipping.setdefault(str(file.relative_to(ROOT)), []).append(re.sub(r'^ << "?|"?;$', "", said))
    assert skipping == {file: [reason] for file, reason in SKIP_THEMSELVES.items()}
