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


@pytest.fixture
def told(monkeypatch, capsys):
    """Runs the table in this process with something planted, and gives its code and what it said."""
    monkeypatch.delenv("GOMP_SPINCOUNT", raising=False)
    monkeypatch.setenv("OMP_WAIT_POLICY", "PASSIVE")  # torch has loaded: the table asks only what the variables say
    monkeypatch.setenv("TWINBENCH_WAIT_POLICY", "passive")
    import operator_modules
    import operator_table

    def run(operator, pairs=None):
        right_pairs = operator_modules.PAIRS[NEURON]

        def planted(*given):
            for pair in right_pairs(*given):
                right = pair.operator
                pair.operator = lambda *data: operator(right, data)
                yield pair

        monkeypatch.setitem(operator_modules.PAIRS, NEURON, planted)
        if pairs == "removed":
            monkeypatch.delitem(operator_modules.PAIRS, NEURON)
        words = ["operator_table.py", LIBRARY, "--seconds", "0.05", "--filter", "simple_neuron/train"]
        monkeypatch.setattr(sys, "argv", words)
        try:
            code = operator_table.main()
        except SystemExit as end:
            code = end.code
        return code, "".join(capsys.readouterr())

    return run


NEURON = "energy_flow.simple_neuron"


def test_what_is_right_and_quick_passes(told):
    code, said = told(lambda right, data: right(*data))
    assert "simple_neuron/train" in said and ("BELOW 1.0" in said or code == 0), said


@pytest.mark.parametrize(
    "operator, said",
    [
        (lambda right, data: (right(*data)[0] + 0.01,), "result 0"),
        (lambda right, data: [right(*data) for _ in range(30)][0], "BELOW 1.0"),
    ],
)
def test_what_is_planted_fails(told, operator, said):
    code, everything = told(operator)
    assert code == 1 and said in everything, everything


def test_an_operator_without_modules_is_named(told):
    code, _ = told(lambda right, data: right(*data), pairs="removed")
    assert "no modules for energy_flow.simple" in code, code
