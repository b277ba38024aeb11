"""The scripts' exit codes: every step that a script runs is made to fail once, and the script must fail with it. And
what they call, word for word, beside the list in script_commands.txt."""
import difflib
import itertools
import os
import re
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMMANDS = Path(__file__).with_name("script_commands.txt")
WRITE = "TWINBENCH_WRITE_COMMANDS"
# Stands in for every program a script calls: writes down how it was called, and fails where it is told to. One at a
# time: ci/slow counts instructions side by side.
STAND_IN = """#!/bin/sh
call="$(basename "$0") $*"
step=$( (flock 9; echo "$call" >> "$STEPS"; wc -l < "$STEPS") 9>> "$STEPS.lock")
case "$call" in
  *"list --cells"*) echo a.b/optimized/simt/fp32/tiny ;;
  "nvidia-smi -L") [ -z "$CARD" ] || echo "GPU 0: $CARD" ;;
esac
for failing in $FAILING; do  # "step:code"
  if [ "$step" = "${failing%:*}" ]; then exit "${failing#*:}"; fi
done
exit 0
"""
# Steps that only look whether something is there.
QUESTIONS = ("nvidia-smi", "nvcc")


def stand_in(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_text(STAND_IN)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def tree(tmp_path):
    """The scripts as they are, over stand-ins for all that they call."""
    for script in ("ci/test", "ci/bench", "ci/slow", "ci/test_cuda_compile", ".ci/run"):
        copy = tmp_path / "tree" / script
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / script, copy)
    tree = tmp_path / "tree"
    for program in ("cmake", "ctest", "nvidia-smi"):
        stand_in(tree / "path" / program)
    for preset in ("cpu", "gpu", "asan", "fuzz"):
        stand_in(tree / f"build/{preset}/bin/twinbench")
    stand_in(tree / "venv/bin/python")
    stand_in(tree / "ci/setup")
    (tree / "path/nproc").write_text("#!/bin/sh\necho 2\n")
    (tree / "path/nproc").chmod(0o755)
    return tree


def run(tree, command, step=0, code=1, more="", card=""):
    steps = tree / "steps"
    steps.write_text("")
    environment = {**os.environ, "PATH": f"{tree}/path:{os.environ['PATH']}", "TWINBENCH_VENV": str(tree / "venv"),
                   "STEPS": str(steps), "FAILING": f"{step}:{code} {more}", "CARD": card}
    result = subprocess.run([str(tree / command[0]), *command[1:]], cwd=tree, env=environment, capture_output=True,
                            text=True)
    return result.returncode, steps.read_text().splitlines()


def replaced(tree, *scripts):
    """These scripts become stand-ins too, so that only the caller is looked at."""
    for script in scripts:
        stand_in(tree / script)


CASES = {
    "test": (["ci/test"], ["ci/test_cuda_compile"]),
    "test_cuda_compile": (["ci/test_cuda_compile"], []),
    "bench": (["ci/bench", "--out", "out/here"], []),
    "slow": (["ci/slow"], []),
    "run": ([".ci/run"], ["ci/test", "ci/bench"]),
}


@pytest.mark.parametrize("name", CASES)
def test_a_script_fails_with_every_one_of_its_steps(tree, name):
    command, others = CASES[name]
    replaced(tree, *others)
    code, steps = run(tree, command)
    assert code == 0 and len(steps) >= 2, steps
    for number, step in enumerate(steps, start=1):
        if step.split()[0] in QUESTIONS:
            continue
        code, _ = run(tree, command, step=number)
        assert code != 0, f"{command[0]} passes although this failed: {step}"


def test_bench_reports_the_worst_that_an_engine_found_and_goes_on(tree):
    command = CASES["bench"][0]
    _, steps = run(tree, command)
    engines = [n for n, step in enumerate(steps, start=1) if step.startswith("twinbench ") and " --out " in step
               and not step.startswith("twinbench data")]
    assert len(engines) >= 5, steps
    for number in engines:
        for code in (1, 2, 3):
            got, reached = run(tree, command, step=number, code=code)
            assert got == code and len(reached) == len(steps), steps[number - 1]
    for first, last, worst in ((1, 3, 1), (3, 1, 1), (2, 3, 2), (3, 2, 2), (1, 2, 1), (2, 1, 1)):
        assert run(tree, command, step=engines[0], code=first, more=f"{engines[-1]}:{last}")[0] == worst


def shares_of(steps):
    """Minutes that each engine was given."""
    words = [step.split() for step in steps
             if step.startswith("twinbench ") and " --out " in step and " data " not in step]
    assert all("--minutes" in step for step in words), words
    return [float(step[step.index("--minutes") + 1]) for step in words]


@pytest.mark.parametrize("script", ["test", "bench"])
@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_is_the_head_comment_and_runs_nothing(tree, script, flag):
    command = [str(tree / "ci" / script), flag]
    result = subprocess.run(command, cwd=tree, capture_output=True, text=True, timeout=60,
                            env={**os.environ, "STEPS": str(tree / "steps"), "FAILING": ""})
    comment = [line[2:] for line in (ROOT / "ci" / script).read_text().splitlines()[1:] if line.startswith("# ")]
    first, *said = result.stdout.splitlines()
    assert result.returncode == 0 and first.startswith(f"usage: ci/{script}") and said == comment[:len(said)] and said
    assert not (tree / "steps").exists()


@pytest.mark.parametrize("flags, minutes", [([], 15), (["--minutes", "5"], 5), (["--minutes", "0.5"], 0.5)])
def test_bench_shares_out_nine_tenths_of_its_minutes(tree, flags, minutes):
    """However many components there are: every engine has a part, and a tenth is left for what each has begun."""
    shares = shares_of(run(tree, ["ci/bench", "--out", "out/here", *flags])[1])
    assert len(shares) == 8 and min(shares) > 0
    assert sum(shares) == pytest.approx(0.9 * minutes, abs=0.01)


@pytest.mark.parametrize("flags", [["--filter"], ["--out", ""], ["--minutes"], ["--minutes", "ten"], ["--what"]])
def test_bench_takes_no_usage_error_for_a_regression(tree, flags):
    code, steps = run(tree, ["ci/bench", *flags])
    assert code == 2 and steps == []


def test_a_planted_engine_without_a_share_is_seen(tree):
    script = tree / "ci/bench"
    script.write_text(script.read_text().replace("engine counters --filter \"$filter\" $quick $(share 6)",
                                                 "engine counters --filter \"$filter\" $quick"))
    with pytest.raises(AssertionError):
        shares_of(run(tree, ["ci/bench", "--out", "out/here"])[1])


def test_the_engines_tests_share_out_their_seconds_however_many_there_are():
    """340 seconds of a core in all, half a second of each test for its start; each has at least a quarter of a second,
    takes the held-out cases and may leave nothing else out."""
    tests = (Path(os.environ["TWINBENCH_PROGRAM"]).parents[1] / "ci/CTestTestfile.cmake").read_text()
    engines = [line for line in tests.splitlines() if re.match(r'add_test.*"(parity|counters|kernels)" ', line)]
    seconds = [60 * float(text) for line in engines for text in re.findall(r'"--minutes" "([0-9.]+)"', line)]
    if not seconds and engines:
        pytest.skip("a build with sanitizers has no budget: ci/slow has the time")
    assert len(seconds) == len(engines) > 10
    assert 0.249 < min(seconds) and 0.99 * 340 - 0.5 * len(engines) <= sum(seconds) <= 340 + 0.25 * len(engines)
    flags = {word for line in engines for word in re.findall(r'"(--[a-z-]+)"', line)}
    assert flags == {"--tier", "--device", "--filter", "--minutes"}, flags


def test_what_lands_may_be_undecided_in_time_but_in_nothing_else(tree):
    replaced(tree, "ci/test", "ci/bench")
    assert [run(tree, [".ci/run"], step=2, code=code)[0] == 0 for code in (1, 2, 3)] == [False, False, True]
    assert [run(tree, [".ci/run"], step=1, code=code)[0] == 0 for code in (1, 2, 3)] == [False, False, False]


# How each script is called whose commands are written down; which other scripts are stand-ins then, and the card there.
CALLS = {
    "ci/test": (["ci/test_cuda_compile"], ""), "ci/test -R one": (["ci/test_cuda_compile"], ""),
    "ci/test_cuda_compile": ([], ""), ".ci/run": (["ci/test", "ci/bench"], ""),
    "ci/bench": ([], ""), "ci/bench --quick --minutes 12": ([], ""), "ci/bench --filter a.b": ([], ""),
    "ci/bench --minutes 0, with a card": ([], "of a test"),
    "ci/slow": ([], ""),
}


def command_lines(tree, call):
    """Every command that the script runs; ci/bench where it ran before, so that it has records to hand on."""
    others, card = CALLS[call]
    (tree / "reports/records/a").mkdir(parents=True)
    (tree / "reports/records/a/card_times_1.json.gz").touch()
    replaced(tree, *others)
    command = call.partition(",")[0].split()
    if command[0] == "ci/bench":
        command += ["--out", "out/earlier"]
        for step in run(tree, command, card=card)[1]:
            for record in re.findall(r"--out (out/earlier/\S+\.json)", step):
                (tree / record).touch()
    code, steps = run(tree, command, card=card)
    assert code == 0, steps
    # Shards run side by side, in any order; the revision is another each time.
    groups = itertools.groupby(steps, lambda step: re.sub(r"--shard \d+/", "", step))
    return [re.sub(r"(seed_sweep)\.[^. ]*\.", r"\1.<revision>.", step).rstrip() for _, group in groups
            for step in sorted(group)]


def listed_commands():
    """By call: its lines in the list."""
    found = {}
    for line in COMMANDS.read_text().splitlines():
        if line.startswith("== "):
            found[line[3:]] = lines = []
        elif line and not line.startswith("#"):
            lines.append(line)
    return found


@pytest.mark.parametrize("call", CALLS)
def test_its_command_lines_are_those_of_the_list(tree, call):
    """A device, a tier, a file of pins or a flag that is dropped fails no step: it is seen here alone."""
    now, listed = command_lines(tree, call), listed_commands()
    if os.environ.get(WRITE):
        write_commands(listed | {call: now})
    then = listed_commands().get(call, [])
    changed = [line for line in difflib.ndiff(then, now) if line[0] in "+-"]
    told = "\n".join({"+": "new:  ", "-": "gone: "}[line[0]] + line[2:] for line in changed)
    assert changed == [], (f"{call} calls something else than ci/tests/script_commands.txt says\n{told}\n"
                           f"If that is meant: {WRITE}=1 .venv/bin/python -m pytest {Path(__file__).relative_to(ROOT)} "
                           "-k command_lines")


def write_commands(commands):
    head = [line for line in COMMANDS.read_text().splitlines() if line.startswith("#")]
    blocks = ["\n".join([f"== {call}", *commands[call]]) for call in CALLS if call in commands]
    COMMANDS.write_text("\n\n".join(["\n".join(head), *blocks]) + "\n")


def test_the_list_has_these_calls_and_no_other():
    assert list(listed_commands()) == list(CALLS)


@pytest.mark.parametrize("script, right, wrong", [
    ("ci/bench", "judging=(--pins ci/counters.json --filter", "judging=(--filter"),
    ("ci/bench", "[ -f \"$record\" ] && earlier+=", "false && earlier+="),
    ("ci/slow", "for device in cpu simt; do", "for device in cpu; do"),
    ("ci/slow", "$(seq \"$shards\")", "1")])
def test_command_lines_show_what_is_dropped(tree, script, right, wrong):
    text = (tree / script).read_text()
    assert text.count(right) == 1
    (tree / script).write_text(text.replace(right, wrong))
    assert command_lines(tree, script) != listed_commands()[script]
