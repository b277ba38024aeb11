"""The table of operators against torch modules, with small budgets: it knows every operator, compares, judges."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
LIBRARY = os.environ["TWINBENCH_OPERATORS"]
sys.path.insert(0, str(EXAMPLES))


def table(*arguments):
    command = [sys.executable, EXAMPLES / "operator_table.py", LIBRARY, *arguments]
    environment = {**os.environ, "TWINBENCH_WAIT_POLICY": "passive"}
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)


def test_every_operator_has_rows_and_right_values():
    rows = "unit|debug|backward_train|flows_64|simple_neuron/train|retrieval/short|scan/short"
    done = table("--seconds", "0.01", "--filter", rows)
    assert "differ" not in done.stderr and "result " not in done.stderr, done.stderr  # times are not judged here
    names = {line.split()[0].split("/")[0] for line in done.stdout.splitlines() if "x [" in line}
    from operator_modules import PAIRS

    assert names == set(PAIRS), done.stdout + done.stderr
    assert "waiting threads passive" in done.stdout


PLANTED = """
import sys, runpy
sys.path.insert(0, {examples!r})
sys.argv = ["operator_table.py", {library!r}, "--seconds", "0.05", "--filter", "simple_neuron/train"]
import operator_modules
pairs = operator_modules.PAIRS["energy_flow.simple_neuron"]
def planted(*given):
    for pair in pairs(*given):
        right = pair.operator
        pair.operator = {planted}
        yield pair
operator_modules.PAIRS["energy_flow.simple_neuron"] = planted
{more}
runpy.run_path({examples!r} + "/operator_table.py", run_name="__main__")
"""


@pytest.mark.parametrize(
    "planted, more, said",
    [
        ("lambda *data: (right(*data)[0] + 0.01,)", "", "result 0"),
        ("lambda *data: [right(*data) for _ in range(30)][0]", "", "BELOW 1.0"),
        ("right", 'del operator_modules.PAIRS["energy_flow.simple_neuron"]', "no modules for energy_flow.simple"),
    ],
)
def test_what_is_planted_fails(planted, more, said):
    program = PLANTED.format(examples=str(EXAMPLES), library=LIBRARY, planted=planted, more=more)
    # torch loads with the modules, before the table settles how threads wait
    environment = {name: value for name, value in os.environ.items() if name != "GOMP_SPINCOUNT"}
    environment |= {"OMP_WAIT_POLICY": "PASSIVE", "TWINBENCH_WAIT_POLICY": "passive"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 1 and said in done.stdout + done.stderr, done.stdout + done.stderr
