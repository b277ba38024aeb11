"""ci/bisect: a planted slowdown and a planted dispatch among 64 commits, in at most seven steps."""
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "ci"), str(ROOT / "reports")]
from comparing.bisecting import BAD, GOOD, SKIP, bisect  # noqa: E402

from simulations import noise  # noqa: E402
from twinbench_reports.statistics import looks  # noqa: E402

COMMITS = [f"c{index:02d}" for index in range(64)]
CELL = "sem.scan/optimized/cpu/fp32/train"


@pytest.mark.parametrize("culprit", range(64))
def test_every_place_is_found_in_seven_steps(culprit):
    search = bisect(COMMITS, lambda commit: BAD if commit >= COMMITS[culprit] else GOOD)
    assert search.first == COMMITS[culprit] and search.steps <= 7


def test_skipped_commits_are_gone_around_or_left_as_suspects():
    def judge(commit):
        return SKIP if commit in ("c30", "c31", "c32") else BAD if commit >= "c40" else GOOD

    assert bisect(COMMITS, judge).first == "c40"
    beside = bisect(COMMITS, lambda commit: SKIP if commit == "c20" else BAD if commit >= "c21" else GOOD)
    assert beside.first == "" and beside.suspects == ["c20", "c21"]


def test_nothing_to_find_is_said():
    search = bisect(COMMITS, lambda commit: GOOD)
    assert not search.first and not search.suspects and search.steps == 1


def timed(slowdown, deviation, rng):
    """One comparison as compare_revisions makes it, on simulated blocks."""
    values = noise.draw("gaussian", deviation, (1, looks.RULE.looks[-1]), rng)[0] + math.log1p(slowdown)
    verdict = next((verdict for look in looks.RULE.looks
                    if (verdict := int(looks.judge(values[:look]))) != looks.UNDECIDED), looks.UNDECIDED)
    if verdict == looks.SLOWER:
        fresh = noise.draw("gaussian", deviation, (1, looks.RULE.confirm_blocks), rng)[0] + math.log1p(slowdown)
        verdict = int(looks.judge_fresh(fresh))
    return {looks.SLOWER: BAD, looks.UNDECIDED: SKIP}.get(verdict, GOOD)


def test_five_percent_is_found_by_time():
    rng, found, steps = np.random.default_rng(1), 0, []
    for _ in range(200):
        culprit = int(rng.integers(0, 64))
        search = bisect(COMMITS, lambda commit: timed(0.05 * (commit >= COMMITS[culprit]), 0.02, rng))
        found += search.first == COMMITS[culprit]
        steps.append(search.steps)
    assert found >= 190 and max(steps) <= 8 and np.mean(np.array(steps) <= 7) >= 0.95


def git(folder, *arguments):
    subprocess.run(["git", "-C", str(folder), "-c", "user.name=t", "-c", "user.email=t@t", *arguments], check=True,
                   capture_output=True)


def test_an_extra_dispatch_is_found_in_a_repository_of_64_commits(tmp_path):
    """Real commits, worktrees and builds, of a program whose counts are made up."""
    tree, cache = tmp_path / "tree", tmp_path / "cache"
    tree.mkdir()
    (tree / "CMakePresets.json").write_text(json.dumps({
        "version": 6,
        "configurePresets": [{"name": "cpu", "generator": "Ninja", "binaryDir": "${sourceDir}/build/cpu"}],
        "buildPresets": [{"name": "cpu", "configurePreset": "cpu"}]}))
    (tree / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(fake NONE)\n"
        "add_custom_target(twinbench ALL COMMAND ${CMAKE_COMMAND} -E copy ${CMAKE_SOURCE_DIR}/twinbench "
        "${CMAKE_SOURCE_DIR}/twinbench.json ${CMAKE_BINARY_DIR}/bin/)\n"
        "file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/bin)\n")
    (tree / "twinbench").write_text((ROOT / "ci/tests/fake_compared.py").read_text())
    (tree / "twinbench").chmod(0o755)
    git(tree, "init", "-q", "-b", "main")
    for index in range(65):
        behaviour = {"noise": 0, "seed": 1, "note": index, "cells": {
            CELL: {"wall": 1e-3, "cpu": 1e-3, "counters": {"dispatches": 12 + (index >= 42)}}}}
        (tree / "twinbench.json").write_text(json.dumps(behaviour))
        git(tree, "add", "-A")
        git(tree, "commit", "-qm", f"commit {index}")
    script = (f"import sys; sys.path[:0] = {sys.path[:2]!r}\nfrom pathlib import Path\n"
              f"from comparing.bisecting import main\nsys.exit(main(Path({str(tree)!r}), sys.argv[1:]))")
    done = subprocess.run([sys.executable, "-c", script, "HEAD~64", "HEAD", "--filter", "sem.scan", "--stages",
                           "counters"], capture_output=True, text=True, timeout=300,
                          env=os.environ | {"TWINBENCH_COMPARE_CACHE": str(cache), "TWINBENCH_VENV": sys.prefix})
    assert done.returncode == 0, done.stdout + done.stderr
    assert "commit 42" in done.stdout and "of 64 commits, after 7 steps" in done.stdout
    assert len([path for path in cache.iterdir() if path.is_dir()]) <= 9
