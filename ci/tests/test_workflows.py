"""The workflows for users: valid by GitHub's schema, and their steps run, over stand-ins for what takes minutes."""
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "reports/tests"))
import synthetic  # noqa: E402

WORKFLOWS = sorted((ROOT / "ci/workflows").glob("*.yaml"))
# What an expression of a workflow stands for here; another one is a mistake until it is added.
EXPRESSIONS = {"github.event.pull_request.base.sha": "base", "github.event.pull_request.head.sha": "head",
               "github.event.pull_request.number": "7"}
ACTIONS = {"actions/checkout", "actions/cache", "actions/upload-artifact"}
COMPARE = """#!/usr/bin/env bash
echo "compare $*" >> "$STEPS"
while [ $# -gt 0 ]; do case "$1" in --verdict) verdict=$2 ;; --summary) echo compared >> "$2" ;; esac; shift; done
[ -z "$VERDICT" ] || echo "$VERDICT" > "$verdict"
exit "$CODE"
"""
BENCH = """#!/usr/bin/env bash
echo "bench $*" >> "$STEPS"
while [ $# -gt 0 ]; do case "$1" in --out) out=$2 ;; esac; shift; done
mkdir -p "$out"
[ -z "$RECORD" ] || cp "$RECORD" "$out/record.json"
exit "$CODE"
"""
SETUP = """#!/bin/sh
echo setup >> "$STEPS"
exit "${SETUP_CODE:-0}"
"""


def git(*arguments, folder):
    return subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@y", *arguments], cwd=folder, check=True,
                          capture_output=True, text=True).stdout


@pytest.fixture
def tree(tmp_path):
    """A clone with the scripts as they are, and an empty repository as its origin."""
    tree = tmp_path / "tree"
    shutil.copytree(ROOT / "ci/workflows", tree / "ci/workflows")
    for name, text in (("compare_revisions", COMPARE), ("bench", BENCH), ("setup", SETUP)):
        (tree / "ci" / name).write_text(text)
        (tree / "ci" / name).chmod(0o755)
    (tree / "ci/counters.json").write_text((ROOT / "ci/counters.json").read_text())
    (tree / "reports").symlink_to(ROOT / "reports")
    (tree / ".venv/bin").mkdir(parents=True)
    (tree / ".venv/bin/python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (tree / ".venv/bin/python").chmod(0o755)
    git("init", "-q", "--bare", "origin.git", folder=tmp_path)
    git("init", "-q", folder=tree)
    git("remote", "add", "origin", str(tmp_path / "origin.git"), folder=tree)
    git("commit", "-q", "--allow-empty", "-m", "first", folder=tree)
    return tree


def run(tree, command, **environment):
    (tree / "steps").write_text("")
    values = {"STEPS": str(tree / "steps"), "CODE": "0", "VERDICT": "", "RECORD": ""}
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("GITHUB_", "GIT_", "TWINBENCH_"))}
    return subprocess.run(["bash", "-e", "-c", command], cwd=tree, env={**kept, **values, **environment},
                          capture_output=True, text=True)


def verdict(code=0, compared=5, *severities):
    return json.dumps({"exit_code": code, "compared": compared, "findings": [{"severity": one} for one in severities]})


def record(tree, name="record", seconds=1.0, day=1):
    root = synthetic.full()
    root["twinbench"]["provenance"]["utc"] = f"2026-11-{day:02d}T09:40:00Z"
    for row in root["twinbench"]["timings"]:
        row["median_s"] = row["median_s"] and row["median_s"] * seconds
    (tree / f"{name}.json").write_text(json.dumps(root))
    return str(tree / f"{name}.json")


def filled(value):
    def fill(found):
        assert found[1] in EXPRESSIONS, f"nothing says what {found[0]} is"
        return EXPRESSIONS[found[1]]

    return re.sub(r"\$\{\{ *(.*?) *\}\}", fill, str(value))


def steps_of(path):
    """Its steps that run a command, with their environment; others must be of known actions at a fixed version."""
    for job in YAML(typ="safe").load(path.read_text())["jobs"].values():
        for step in job["steps"]:
            if "uses" in step:
                action, _, version = step["uses"].partition("@")
                assert action in ACTIONS and re.fullmatch(r"v\d+|[0-9a-f]{40}", version), step["uses"]
            else:
                assert "${{" not in step["run"], "an expression inside a command can inject; pass it by env"
                yield step["run"], {key: filled(value) for key, value in step.get("env", {}).items()}


def lint(*paths):
    return subprocess.run([sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows",
                           *map(str, paths)], capture_output=True, text=True)


def test_the_workflows_are_valid_and_say_least_permissions():
    assert [path.name for path in WORKFLOWS] == ["nightly.yaml", "pull_request.yaml"]
    result = lint(*WORKFLOWS)
    assert result.returncode == 0, result.stdout + result.stderr
    permissions = {path.stem: YAML(typ="safe").load(path.read_text())["permissions"] for path in WORKFLOWS}
    assert permissions == {"nightly": {"contents": "write"}, "pull_request": {"contents": "read"}}


@pytest.mark.parametrize("right, wrong", [("runs-on:", "run-on:"), ("timeout-minutes: 120", "timeout-minutes: soon"),
                                          ("pull_request:", "pull_requests:")])
def test_the_linter_finds_a_planted_mistake(tmp_path, right, wrong):
    text = (ROOT / "ci/workflows/pull_request.yaml").read_text()
    assert right in text
    (tmp_path / "planted.yaml").write_text(text.replace(right, wrong))
    assert lint(tmp_path / "planted.yaml").returncode != 0


def test_strangers_code_never_runs_where_it_could_write():
    nightly = YAML(typ="safe").load((ROOT / "ci/workflows/nightly.yaml").read_text())
    assert set(nightly["on"]) == {"schedule", "workflow_dispatch"}  # the one with a self-hosted runner
    gate = YAML(typ="safe").load((ROOT / "ci/workflows/pull_request.yaml").read_text())
    assert set(gate["on"]) == {"pull_request"} and set(gate["jobs"]) == {"gate", "answers"}
    assert {job["runs-on"] for job in gate["jobs"].values()} == {"ubuntu-24.04"}


def test_the_steps_of_the_gate_run(tree):
    (command, environment), (answers, _) = steps_of(ROOT / "ci/workflows/pull_request.yaml")
    assert answers == "ci/test"  # the gate compares costs; whether answers are right is another job's
    result = run(tree, command, VERDICT=verdict(), GITHUB_STEP_SUMMARY=str(tree / "page.md"), **environment)
    assert result.returncode == 0, result.stderr
    first, second = (tree / "steps").read_text().splitlines()
    assert first == "setup" and second.startswith("compare base head --minutes 20 --filter . --verdict out/gate/")
    assert (tree / "page.md").read_text() == "compared\n"


@pytest.mark.parametrize("code, written, undecided, expected", [
    (0, verdict(0), "fail", 0), (1, verdict(1, 5, "fail"), "pass", 1), (2, "", "pass", 2),
    (3, verdict(3, 5, "inconclusive"), "fail", 3), (3, verdict(3, 5, "inconclusive", "notice"), "pass", 0),
    (3, verdict(3, 5, "missing"), "pass", 3), (3, verdict(3, 0, "missing"), "pass", 3),
    (3, verdict(3, 0, "inconclusive"), "pass", 3), (0, verdict(0, 0), "pass", 3), (0, "", "pass", 2),
    (0, "{", "pass", 2), (0, "[]", "pass", 2), (0, verdict(1, 5, "fail"), "pass", 2), (139, "", "pass", 2)])
def test_the_gate_passes_only_what_was_compared(tree, code, written, undecided, expected):
    result = run(tree, f"ci/workflows/gate base head --undecided {undecided}", CODE=str(code), VERDICT=written)
    assert result.returncode == expected, result.stdout + result.stderr


def test_an_old_verdict_decides_nothing(tree):
    assert run(tree, "ci/workflows/gate base head", VERDICT=verdict()).returncode == 0
    assert run(tree, "ci/workflows/gate base head").returncode == 2  # it wrote none this time
    assert run(tree, "ci/workflows/gate base head", VERDICT=verdict(), SETUP_CODE="1").returncode == 2


@pytest.mark.parametrize("command", [
    "gate", "gate base", "gate a b c", "gate a b --undecided maybe", "gate a b --what", "gate --minutes",
    "nightly --what", "nightly --history", "keep_history here", "keep_history . b no_such_file", "keep_history --site",
    "keep_history --site out . b", "keep_history . bad..name no_such_file"])
def test_usage_errors(tree, command):
    assert run(tree, f"ci/workflows/{command}").returncode == 2
    assert (tree / "steps").read_text() == ""


def test_the_steps_of_the_night_run_and_keep_the_run(tree, tmp_path):
    (command, environment), = steps_of(ROOT / "ci/workflows/nightly.yaml")
    result = run(tree, command, RECORD=record(tree), GITHUB_STEP_SUMMARY=str(tree / "page.md"), GITHUB_ACTIONS="true",
                 **environment)
    assert result.returncode in (0, 1, 3), result.stderr  # the pins are not of this record
    assert (tree / "steps").read_text() == "bench --minutes 60 --out out/nightly\n"
    written = json.loads((tree / "out/nightly/verdict.json").read_text())
    assert written["exit_code"] == result.returncode
    assert "## " in (tree / "page.md").read_text() and (tree / "out/nightly/junit.xml").is_file()
    files = git("ls-tree", "-r", "--name-only", "bench-history", folder=tmp_path / "origin.git").splitlines()
    assert len(files) == 3 and ".gitignore" in files  # the run, and its record
    pages = (tree / "out/nightly/site/index.html").read_text()
    assert "energy_flow" in pages  # of the kept runs, this one among them
    assert git("status", "--porcelain", "-uno", folder=tree) == "" and git("branch", folder=tree).count("\n") == 1


@pytest.mark.parametrize("code, made, expected", [(1, True, 1), (2, True, {1, 2}), (2, False, 2), (1, False, 1),
                                                  (0, False, 2), (139, False, 2)])
def test_the_night_fails_with_its_steps(tree, code, made, expected):
    result = run(tree, "ci/workflows/nightly", CODE=str(code), RECORD=record(tree) if made else "")
    assert result.returncode in (expected if isinstance(expected, set) else {expected}), result.stderr


def test_a_history_that_cannot_be_pushed_fails_the_night(tree, tmp_path):
    result = run(tree, f"ci/workflows/keep_history {tmp_path / 'nowhere.git'} kept {record(tree)}")
    assert result.returncode == 2 and "cannot be read" in result.stderr
    night = run(tree, f"ci/workflows/nightly --history {tmp_path / 'nowhere.git'}", RECORD=record(tree))
    assert night.returncode in (1, 2) and "cannot be read" in night.stderr


def test_history_grows_and_nothing_is_kept_twice(tree, tmp_path):
    origin = tmp_path / "origin.git"

    def keep(*files):
        result = run(tree, f"ci/workflows/keep_history {origin} kept {' '.join(files)}")
        assert result.returncode == 0, result.stderr
        return git("ls-tree", "-r", "--name-only", "kept", folder=origin).splitlines(), result

    first, _ = keep(record(tree, "one", day=1))
    second, _ = keep(record(tree, "two", day=2))
    again, result = keep(record(tree, "two", day=2))
    assert len(first) == 3 and set(first) < set(second) and again == second and "kept before" in result.stderr
    assert git("rev-list", "--count", "kept", folder=origin).strip() == "2"
    many, result = keep(*(record(tree, f"r{day}", seconds=1.0 if day < 11 else 1.5, day=day) for day in range(3, 19)))
    assert len(many) == 37 and "energy_flow" in result.stdout  # the level that changed is named


@pytest.mark.parametrize("site", ["a_file", "a_file/below", "/proc/nowhere"])
def test_pages_that_cannot_be_written_are_known_before_anything_is_kept(tree, tmp_path, site):
    (tree / "a_file").write_text("mine")
    result = run(tree, f"ci/workflows/keep_history --site {site} {tmp_path / 'origin.git'} kept {record(tree)}")
    assert result.returncode == 2 and "--site" in result.stderr and site.strip("/") in result.stderr, result.stderr
    assert git("branch", "--list", folder=tmp_path / "origin.git") == "" and (tree / "a_file").read_text() == "mine"


def test_several_that_keep_at_once_in_one_checkout_all_do(tree, tmp_path):
    origin, count = tmp_path / "origin.git", 4
    files = [record(tree, f"r{day}", day=day) for day in range(1, count + 1)]
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        done = list(pool.map(lambda file: run(tree, f"ci/workflows/keep_history {origin} kept {file}"), files))
    assert [one.returncode for one in done] == [0] * count, [one.stderr for one in done]
    assert len(git("ls-tree", "-r", "--name-only", "kept", folder=origin).splitlines()) == 2 * count + 1


def test_two_that_keep_at_once_both_do(tree, tmp_path):
    """The other's push lands between our fetch and our push, once."""
    origin = tmp_path / "origin.git"
    hook = origin / "hooks/pre-receive"
    hook.write_text(f"""#!/bin/sh
[ -e {tmp_path}/landed ] && exit 0
touch {tmp_path}/landed
echo "another landed first" >&2
exit 1
""")
    hook.chmod(0o755)
    result = run(tree, f"ci/workflows/keep_history {origin} kept {record(tree)}")
    assert result.returncode == 0 and "push 1 was refused" in result.stderr
    hook.write_text("#!/bin/sh\nexit 1\n")
    result = run(tree, f"ci/workflows/keep_history {origin} kept {record(tree, 'two', day=2)}")
    assert result.returncode == 2 and "five pushes" in result.stderr
