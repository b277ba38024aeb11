"""The examples' waiting threads: what libgomp reads when torch loads after `settle()`, and what is refused or
reported."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def start(program, **variables):
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "TWINBENCH_WAIT_POLICY")}
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, cwd=EXAMPLES,
                          env={**environment, **variables})


@pytest.mark.parametrize("variables, said", [
    ({}, "waiting threads: passive\n"),
    ({"OMP_WAIT_POLICY": "ACTIVE", "GOMP_SPINCOUNT": "77"}, "passive, not OMP_WAIT_POLICY=ACTIVE GOMP_SPINCOUNT=77\n"),
])
def test_torch_loads_with_the_projects_policy(variables, said):
    result = start("import waiting_threads; waiting_threads.settle(); import torch", OMP_DISPLAY_ENV="verbose",
                   **variables)
    assert result.returncode == 0 and said in result.stderr, result.stderr
    assert "OMP_WAIT_POLICY = 'PASSIVE'" in result.stderr and "GOMP_SPINCOUNT = '0'" in result.stderr


@pytest.mark.parametrize("variables, expected", [({}, "too late for passive"), ({"OMP_WAIT_POLICY": "PASSIVE"}, "")])
def test_too_late_is_an_error_where_it_matters(variables, expected):
    result = start("import sys; sys.modules['torch'] = None; import waiting_threads; waiting_threads.settle()",
                   **variables)
    assert bool(result.returncode) == bool(expected) and expected in result.stderr, result.stderr


def test_an_unknown_policy_is_refused():
    result = start("import waiting_threads; waiting_threads.settle()", TWINBENCH_WAIT_POLICY="spin")
    assert result.returncode and "TWINBENCH_WAIT_POLICY" in result.stderr
