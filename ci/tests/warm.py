"""Calls of the program in children of one warm process: a start of its own takes each a quarter of a second longer, so
tests that look at what it answers call it here, and those that look at how it starts, ends or is disturbed start it."""
import atexit
import functools
import json
import os
import re
import select
import signal
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = os.environ["TWINBENCH_PROGRAM"]
BEGIN_LIMIT_S = 60


class Warm:
    """The process, and a folder for what its children print."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.process = subprocess.Popen([f"{PROGRAM}_warm"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        atexit.register(self.end)

    def ask(self, **asked: object) -> None:
        self.process.stdin.write(json.dumps(asked).encode() + b"\n")

    def answer(self, limit_s: float) -> int | None:
        """The number in the next line; None where there is none in time."""
        if not select.select([self.process.stdout], [], [], limit_s)[0]:
            return None
        return int(self.process.stdout.readline())

    def end(self) -> None:
        self.process.stdin.close()
        self.process.wait(10)
        self.folder.cleanup()


@functools.cache
def warm() -> Warm:
    return Warm()


def run(*words: object, cwd: Path | str = ROOT, timeout: float = 180) -> subprocess.CompletedProcess:
    """As subprocess.run would tell of the program with these words: its exit code, and what it printed."""
    out, err = (Path(warm().folder.name) / name for name in ("out", "err"))
    command = [PROGRAM, *map(str, words)]
    warm().ask(words=command, folder=str(cwd), out=str(out), err=str(err))
    child = warm().answer(BEGIN_LIMIT_S)
    status = warm().answer(timeout)
    if status is None:
        os.killpg(child, signal.SIGKILL)
        warm().answer(BEGIN_LIMIT_S)
        raise subprocess.TimeoutExpired(command, timeout)
    return subprocess.CompletedProcess(command, os.waitstatus_to_exitcode(status),
                                       *(file.read_bytes().decode() for file in (out, err)))


def components() -> list[str]:
    """The ids of all of them, as the registry's file has them."""
    listed = (ROOT / "src/components.def").read_text()
    return [".".join(pair) for pair in re.findall(r"^TWINBENCH_COMPONENT\((\w+), (\w+),", listed, re.M)]
