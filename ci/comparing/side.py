"""One of the two programs that are compared, and how it is called."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twinbench_reports.errors import ReportError
from twinbench_reports.exit_codes import INCONCLUSIVE, TOOL_ERROR
from twinbench_reports.load import parse_json, read_bytes

_REMEDY = "run it by hand to see what it says"


@dataclass(frozen=True)
class Side:
    """`name` is base or head; `root` its source tree, in which the program is started."""

    name: str
    root: Path
    program: Path

    def call(self, arguments: Sequence[str], *, limit_s: float,
             codes: Sequence[int] = (0,)) -> subprocess.CompletedProcess[str]:
        """Runs the program. Another exit code than expected, or none in time, is an error that names it."""
        command = [str(self.program), *arguments]
        environment = os.environ | {"OMP_WAIT_POLICY": "PASSIVE"}
        try:
            done = subprocess.run(command, cwd=self.root, env=environment, capture_output=True, text=True,
                                  errors="replace", timeout=limit_s)
        except subprocess.TimeoutExpired as error:
            raise ReportError(f"{self.name}: no end after {limit_s:.0f} s: {' '.join(arguments[:4])}",
                              file=str(self.program), remedy="give a narrower --filter") from error
        except OSError as error:
            raise ReportError(f"{self.name}: cannot be started: {error.strerror}", file=str(self.program),
                              remedy="build it first: cmake --build --preset cpu --target twinbench") from error
        if done.returncode not in codes:
            tail = (done.stderr.strip() or done.stdout.strip())[-600:]
            raise ReportError(f"{self.name}: `{' '.join(arguments[:4])}` ended with {done.returncode}: {tail}",
                              file=str(self.program), remedy=_REMEDY)
        return done

    def pins(self, engine: str, arguments: Sequence[str], limit_s: float) -> Any:
        """What the engine counts, as the file it would pin. null where no cell of the filter is the engine's."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "pins.json"
            done = self.call([engine, "--pin", "--pins", str(file), *arguments], limit_s=limit_s, codes=(0, 1, 2, 3))
            if done.returncode == TOOL_ERROR and "unknown_name: --filter" in done.stderr:
                return None
            if done.returncode == INCONCLUSIVE and "(nothing was planned)" in done.stdout:  # it counts one of each kind
                return None
            if not file.is_file():
                raise ReportError(f"{self.name}: {engine} ended with {done.returncode} and counted nothing: "
                                  f"{(done.stderr.strip() or done.stdout.strip())[-300:]}",
                                  file=str(self.program), remedy=_REMEDY)
            return parse_json(read_bytes(file), f"{engine} of {self.name}")

    def components(self) -> list[dict[str, Any]]:
        """The components of `list --json`."""
        try:
            return json.loads(self.call(["list", "--json"], limit_s=120).stdout)
        except json.JSONDecodeError as error:
            raise ReportError(f"{self.name}: `list --json` is not JSON: {error}", file=str(self.program),
                              remedy=_REMEDY) from error

    def image(self) -> str:
        """A hash of the program as it is loaded, where it was built left out: equal for equal code."""
        with tempfile.TemporaryDirectory() as folder:
            memory = Path(folder) / "image"
            copied = subprocess.run(["objcopy", "-O", "binary", "-R", ".note.gnu.build-id", str(self.program),
                                     str(memory)], capture_output=True)
            data = memory.read_bytes() if copied.returncode == 0 else read_bytes(self.program)
        return hashlib.sha256(data.replace(str(self.root).encode(), b"")).hexdigest()
