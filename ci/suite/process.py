"""Runs one program in its own process group under a limit; nothing of it outlives the limit."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event

GRACE_S = 6.0  # after SIGINT: `twinbench` writes what it has measured


@dataclass(frozen=True)
class Ended:
    """How a program ended: by itself (exited, with its code), by a signal (crashed), or stopped by the suite."""

    how: str  # exited, crashed, hung (its own limit), cut (the suite's budget), interrupted (the user), not_started
    code: int  # the exit code; minus the signal where crashed
    seconds: float
    what: str = ""


def run_limited(command: Sequence[str], *, environment: Mapping[str, str], folder: Path, log: Path, limit_s: float,
                budget_s: float, interrupted: Event, grace_s: float = GRACE_S) -> Ended:
    """Runs until the program ends, its limit passes (hung), the budget ends (cut) or `interrupted` is set.

    A program that is stopped gets SIGINT first, to write what it has, and SIGKILL for its whole group after `grace_s`.
    """
    started = time.monotonic()
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        output.write(f"$ {' '.join(command)}\n".encode())
        output.flush()
        try:
            process = subprocess.Popen(command, env=dict(environment), cwd=folder, stdin=subprocess.DEVNULL,
                                       stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        except OSError as error:
            output.write(f"not started: {error}\n".encode())
            return Ended("not_started", 127, 0.0, str(error))
        how = "exited"
        while process.poll() is None:
            passed = time.monotonic() - started
            if interrupted.is_set():
                how = "interrupted"
            elif passed > budget_s:
                how = "cut"
            elif passed > limit_s:
                how = "hung"
            if how != "exited":
                _stop(process, grace_s)
                break
            time.sleep(0.02 if passed < 1 else 0.1)
        _kill_group(process.pid)  # what it left behind, also where it ended by itself
    code = process.wait()
    if how == "exited" and code < 0:
        how = "crashed"
    what = {"crashed": f"ended by {_signal_name(-code)}", "hung": f"no end within its limit of {limit_s:.0f} s; killed",
            "cut": "the time budget ended first", "interrupted": "interrupted"}.get(how, "")
    return Ended(how, code, time.monotonic() - started, what)


def _stop(process: subprocess.Popen[bytes], grace_s: float) -> None:
    try:
        os.killpg(process.pid, signal.SIGINT)
        process.wait(grace_s)
    except subprocess.TimeoutExpired:
        _kill_group(process.pid)
        process.wait()
    except ProcessLookupError:
        process.wait()


def _kill_group(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
