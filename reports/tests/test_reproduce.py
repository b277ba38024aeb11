"""Reproduce commands: they name one row, for a shell, on the row's device."""

from __future__ import annotations

import re
import shlex

import synthetic

from twinbench_reports.judge.reproduce import reproduce


def filter_of(command):
    words = shlex.split(command)
    return re.compile(words[words.index("--filter") + 1])


def test_a_cell_is_found_alone():
    cell = synthetic.cell("sem.scan", "optimized")
    pattern = filter_of(reproduce("parity", {"cell": cell}))
    assert pattern.search(cell) and not pattern.search(cell + "_large") and not pattern.search("x" + cell)
    assert not pattern.search(cell.replace(".", "_"))


def test_a_pair_is_found_by_both_cells():
    pattern = filter_of(reproduce("speedups", synthetic.speedup_row("sem.scan", 2.0)))
    assert pattern.search(synthetic.cell("sem.scan", "baseline"))
    assert pattern.search(synthetic.cell("sem.scan", "optimized"))
    assert not pattern.search(synthetic.cell("sem.scan", "optimized", "bf16"))


def test_the_device_chooses_the_build():
    assert reproduce("parity", {
        "cell": "a.b/optimized/cuda/fp32/tiny"}).startswith("build/gpu/bin/twinbench parity --filter '^a\\.b")
    assert reproduce("parity", {"cell": "a.b/optimized/cuda/fp32/tiny"}).endswith("--device cuda")
    assert reproduce("scenarios", {
        "name": "x y; rm",
        "device": "cpu"}) == "build/cpu/bin/twinbench scenario 'x y; rm' --device cpu"
