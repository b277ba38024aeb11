"""Three operators timed a second way, by NVIDIA's nvbench (package cuda-bench), and held against the bench engine."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from suite.engines import Bench
from suite.files import last_line
from suite.plan import Step
from suite.state import StepResult

AGREE = 1.3  # the two timers may differ by this factor: nvbench times an operator, launch included, the suite a run
GPU_MEAN = "nv/cold/time/gpu/mean"
PROGRAM = Path(__file__).with_name("nvbench_program.py")


def missing(environment: Mapping[str, str]) -> str:
    """Why nvbench cannot run in this environment; "" where it can."""
    look = "from importlib.util import find_spec; raise SystemExit(not find_spec('cuda.bench'))"
    found = subprocess.run([sys.executable, "-c", look], env=dict(environment), capture_output=True).returncode == 0
    return "" if found else "the package cuda-bench (nvbench) is not installed"


def mean_seconds(text: str) -> float | None:
    """The mean GPU time of the only state in a file of nvbench, or nothing where it was skipped."""
    for benchmark in json.loads(text).get("benchmarks", []):
        for state in benchmark.get("states", []):
            for summary in state.get("summaries", []) or []:
                if summary.get("tag") == GPU_MEAN:
                    return float(next(row["value"] for row in summary["data"] if row["name"] == "value"))
    return None


def suite_seconds(bench: Bench, component: str, cell: str) -> float | None:
    """What the bench engine measured for the cell in this run of the suite."""
    path = bench.record_of(f"bench.{component}")
    if not path.is_file():
        return None
    for row in json.loads(path.read_text())["twinbench"]["timings"]:
        if row["cell"] == cell and row["verdict"] == "pass":
            return row.get("gpu_median_s") or row["median_s"]
    return None


def run_second_timer(bench: Bench, step: Step, budget_s: float) -> StepResult:
    """Times one cell's operator by nvbench and compares with the bench engine's time of it."""
    result = StepResult(step.name, "done", "skip")
    operators = next((path for path in (bench.program.parent / "libtwinbench_ops.so",
                                        bench.program.parents[1] / "lib/libtwinbench_ops.so") if path.is_file()), None)
    if bench.device != "cuda":
        result.reason = "nvbench times kernels of a card only"
    elif why := missing(bench.environment):
        result.reason = f"{why}: one timer only"
    elif operators is None:
        result.reason = "libtwinbench_ops.so is not beside the program"
    if result.reason:
        return result
    cell = step.cells[0]
    inputs, out = bench.work / "bits/second_timer.safetensors", bench.work / "bits" / f"{step.name}.nvbench.json"
    inputs.parent.mkdir(parents=True, exist_ok=True)
    out.unlink(missing_ok=True)
    for command in ([str(bench.program), "dump", cell, "--out", str(inputs)],
                    [sys.executable, str(PROGRAM), str(operators), str(inputs), step.component.replace(".", "_"),
                     str(out)]):
        ended = bench.run(step.name, command, step.limit_s, budget_s - result.seconds)
        result.seconds = round(result.seconds + ended.seconds, 2)
        if ended.how in ("cut", "interrupted"):
            result.status, result.verdict, result.reason = ended.how, "inconclusive", ended.what
            return result
        if ended.how != "exited" or ended.code != 0:
            result.verdict, result.reason = "error", ended.what or last_line(bench.log_of(step.name))
            return result
    if not out.is_file():
        result.verdict, result.reason = "error", "nvbench ended well and left no file"
        return result
    second, first = mean_seconds(out.read_text()), suite_seconds(bench, step.component, cell)
    result.detail = {"cell": cell, "nvbench_s": second, "suite_s": first}
    if second is None or first is None:
        result.verdict = "inconclusive"
        result.reason = "nvbench gave no time" if second is None else f"the bench step has no time of {cell}"
        return result
    ratio = second / first
    result.verdict = "pass" if 1 / AGREE <= ratio <= AGREE else "fail"
    result.reason = f"nvbench {1e6 * second:.3g} us, the suite {1e6 * first:.3g} us, ratio {ratio:.3g}"
    return result
