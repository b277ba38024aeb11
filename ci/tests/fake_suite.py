"""Calls of ci/gpu_suite over scripted programs.

Most are made in this process, the suite and its report; one that is made as a user makes it starts ci/gpu_suite, which
starts the report's commands."""
import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(ROOT / "ci"), str(ROOT / "reports/tests")]

import synthetic  # noqa: E402
from fake_twinbench import CASES, COMPONENTS  # noqa: E402
from in_process import caught  # noqa: E402
from suite import engines  # noqa: E402
from suite import main as script  # noqa: E402
from suite.process import Ended, run_limited  # noqa: E402
from twinbench_reports import cli  # noqa: E402
from twinbench_reports.render.figures.drawing import Drawing  # noqa: E402

REPORT = [sys.executable, "-m", "twinbench_reports"]


def run_here(command, *, log, **keywords):
    """Runs the report's commands in this process, without the figures, which take nearly all of a page's time."""
    if command[:3] != REPORT:
        return run_limited(command, log=log, **keywords)
    with mock.patch.object(Drawing, "inline_svg", lambda drawing: "<svg></svg>"):
        code, out, err = caught(lambda: cli.main(command[3:]))
    with log.open("a") as file:
        file.write(f"$ {' '.join(command)}\n{out}{err}")
    return Ended("exited", code, 0.0)


class Suite:
    """A folder with the fake programs, and calls of ci/gpu_suite in it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.out = folder, folder / "out"
        (folder / "bin").mkdir()
        for name, source in (("twinbench", "fake_twinbench.py"), ("compute-sanitizer", "fake_compute_sanitizer.py")):
            (folder / "bin" / name).symlink_to(HERE / source)
        (folder / "bin/sanitizer_probe").write_text("")
        record, block = synthetic.empty(), synthetic.on_a_card()["twinbench"]
        record["twinbench"]["provenance"].update(gpu=block["provenance"]["gpu"],
                                                 source_hashes=dict.fromkeys(COMPONENTS, {"baseline": "a1"}))
        record["twinbench"]["components"] = [{
            **block["components"][0],
            "id": name,
            "variants": ["baseline", "optimized"],
            "dtypes": ["fp32", "bf16"],
            "cases": [{**case, "options": {}} for case in CASES]} for name in COMPONENTS]
        (folder / "record.json").write_text(json.dumps(record))

    def __call__(self, *flags, behaviour=None, sanitizer=None, device="cuda", out=None, minutes=1, as_user=False):
        variables = {
            "PATH": f"{self.folder / 'bin'}:{Path(sys.executable).parent}:/usr/bin:/bin",
            "FAKE_BEHAVIOUR": json.dumps(behaviour or {}),
            "FAKE_SANITIZER": json.dumps(sanitizer or {}),
            "FAKE_RECORD": str(self.folder / "record.json"),
            "FAKE_CALLS": str(self.folder / "calls")}
        command = ["--program", str(self.folder / "bin/twinbench"), "--device", device, "--minutes", str(minutes),
                   "--out", str(out or self.out), *flags]
        if as_user:
            return subprocess.run([sys.executable, str(ROOT / "ci/gpu_suite"), *command], env=variables, cwd="/",
                                  capture_output=True, text=True, timeout=120)
        with (mock.patch.dict(os.environ, variables, clear=True), mock.patch.object(engines, "run_limited", run_here),
              contextlib.chdir("/")):
            return subprocess.CompletedProcess(command, *caught(lambda: script.main(ROOT, command)))

    def summary(self):
        return json.loads((self.out / "summary.json").read_text())

    def verdicts(self):
        return {step["name"]: step["verdict"] for step in self.summary()["steps"]}

    def reason(self, name):
        return next(step.get("reason", "") for step in self.summary()["steps"] if step["name"] == name)
