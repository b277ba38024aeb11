"""Tests run by hand find what CTest sets for them: the report package, the checkout's program and its environment."""
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# What CTest sets (ci/CMakeLists.txt), and where it lies in a checkout that is set up and built.
USUAL = {"TWINBENCH_PROGRAM": ROOT / "build/cpu/bin/twinbench", "TWINBENCH_VENV": ROOT / ".venv"}
TO_MAKE = {"TWINBENCH_PROGRAM": "build it with ci/test, or set TWINBENCH_PROGRAM to a twinbench that is built",
           "TWINBENCH_VENV": "make it with ci/setup, or set TWINBENCH_VENV to a virtual environment of its packages"}


def put_first(path: str, paths: list[str]) -> list[str]:
    return [path, *(other for other in paths if other and other != path)]


# Before any test file is read: many take these from the environment in their first lines. Children inherit them.
sys.path[:] = put_first(str(ROOT / "reports"), sys.path)
os.environ["PYTHONPATH"] = os.pathsep.join(
    put_first(str(ROOT / "reports"), os.environ.get("PYTHONPATH", "").split(os.pathsep)))
for variable, place in USUAL.items():
    if variable not in os.environ and place.exists():
        os.environ[variable] = str(place)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Some tests need neither, so nothing is refused at the start; where tests fail, this may be why."""
    if terminalreporter.stats.keys() & {"failed", "error"}:
        for variable, what in TO_MAKE.items():
            if variable not in os.environ:
                terminalreporter.write_line(f"{variable} is not set and {USUAL[variable]} is not there: {what}")
