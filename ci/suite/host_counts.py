"""What the card did against what the host counted: launches and products by CUPTI, sectors where they may be read."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any

from suite.engines import Bench
from suite.files import tail_of
from suite.plan import Step
from suite.state import StepResult

# Metrics of Nsight Compute and the totals of ci/kernel_counts.json that they must equal.
SECTORS = {
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": "loads",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": "stores"}
# Components with "runs_ahead" in their spec.json: on a card their hosts issue more steps until a flag is up.
RUN_AHEAD = ("adaptive_stop", "flow_forward", "flow_backward", "train_step", "text_bridge", "text_decoder")
NOT_ALLOWED = "ERR_NVGPUCTRPERM"


def _equal(card: dict[str, int], host: dict[str, int], ahead: bool) -> bool:
    """Of one run; with `ahead` the card's has the same kernels, none of them less often."""
    if not ahead:
        return card == host
    return card.keys() == host.keys() and all(card[name] >= host[name] for name in host)


def against_host(record: dict[str, Any], pins: dict[str, Any], device: str) -> tuple[list[str], int]:
    """(differences in words, cells compared). Own launches and products are the adapter's own, so equal to simt's; the
    kernels that CUPTI saw are at least those, and no more where no graph holds several of them."""
    found, compared = [], 0
    for row in record["twinbench"]["counters"]:
        host = pins.get(row["cell"].replace(f"/{device}/", "/simt/"))
        if host is None or "/optimized/" not in row["cell"] or row["verdict"] in ("skip", "error"):
            continue
        ahead = row["cell"].split("/")[0].split(".")[-1] in RUN_AHEAD
        compared += 1
        for name in ("launches_by_kernel", "products_by_shape"):
            card = {key: value for key, value in row.get(name, {}).items() if value}
            if not _equal(card, host.get(name, {}), ahead):
                found.append(f"{row['cell']}: {name} {card} on the card, {host.get(name, {})} on simt")
        activity = row.get("device_activity")
        if activity and activity["runs"]:
            a_run, least = activity["kernels"] / activity["runs"], sum(host.get("launches_by_kernel", {}).values())
            most = least + 4 * sum(host.get("products_by_shape", {}).values())  # split products take several kernels
            if ahead or any(name.startswith("graph ") for name in host.get("launches_by_kernel", {})):
                most = math.inf
            if not least <= a_run <= most:
                found.append(f"{row['cell']}: CUPTI saw {a_run:g} kernels a run, the host counted {least} own ones and "
                             f"at most {most:g} with products")
    return found, compared


def judge_counts(bench: Bench, result: StepResult, pins: Path) -> StepResult:
    """Adds the comparison with the host to a step that counted on a card."""
    if not result.record or bench.device == "cpu" or not pins.is_file():
        return result
    found, compared = against_host(json.loads(bench.record_of(result.name).read_text()), json.loads(pins.read_text()),
                                   bench.device)
    result.detail = {**(result.detail or {}), "compared_with_simt": compared, "other_than_simt": found}
    if found:
        result.verdict, result.reason = "fail", f"{found[0]}" + (f" and {len(found) - 1} more" if found[1:] else "")
    return result


def sectors_by_kernel(text: str) -> dict[str, dict[str, float]]:
    """Kernel -> total -> sectors, from what `ncu --csv` prints. Kernels under the names of the pins."""
    rows = [line for line in text.splitlines() if line.startswith('"')]
    found: dict[str, dict[str, float]] = defaultdict(lambda: dict.fromkeys(SECTORS.values(), 0.0))
    for row in csv.DictReader(io.StringIO("\n".join(rows))):
        kernel = re.search(r"simt::run<(?:twinbench::)?(.+?)[,>]", row.get("Kernel Name", ""))
        if kernel and row.get("Metric Name") in SECTORS:
            name = kernel[1].replace("twinbench::", "").replace("(anonymous namespace)::", "")
            found[name][SECTORS[row["Metric Name"]]] += float(row["Metric Value"].replace(",", ""))
    return dict(found)


def run_sectors(bench: Bench, step: Step, budget_s: float, pins: Path) -> StepResult:
    """Reads the card's own counters of one cell a component; a skip with its reason where that is not to be had."""
    result = StepResult(step.name, "done", "skip")
    ncu = shutil.which("ncu", path=bench.environment.get("PATH"))
    if bench.device != "cuda":
        result.reason = "counters of a card are read on device cuda only"
    elif ncu is None:
        result.reason = "ncu (Nsight Compute) is not on PATH: sectors are known from the host only"
    elif not step.cells:
        result.reason = "no cell of it is counted on simt"
    if result.reason:
        return result
    counted = json.loads(pins.read_text())["cells"] if pins.is_file() else {}
    # The host counts each access that the source makes; the compiler may load once what is named twice.
    differences, fewer, compared = [], [], 0
    for cell in step.cells:
        out = bench.work / "bits" / f"{step.name}.safetensors"
        out.parent.mkdir(parents=True, exist_ok=True)
        # Whole names: else inner namespaces are left out.
        command = [ncu, "--csv", "--rename-kernels", "no", "--metrics", ",".join(SECTORS), str(bench.program), "dump",
                   cell.replace("/simt/", "/cuda/"), "--out", str(out)]
        ended = bench.run(step.name, command, step.limit_s, budget_s)
        result.seconds = round(result.seconds + ended.seconds, 2)
        text = bench.log_of(step.name).read_text(errors="replace")
        if NOT_ALLOWED in text:
            result.reason = f"{NOT_ALLOWED}: this machine lets no user read the card's counters"
            return result
        if ended.how != "exited" or ended.code != 0:
            result.verdict, result.reason = "error", f"ncu: {ended.what or tail_of(bench.log_of(step.name), 300)}"
            return result
        for kernel, totals in sectors_by_kernel(text).items():
            host = counted.get(cell, {}).get(kernel)
            if host is None or "counted_blocks" in host:
                continue
            for name, sectors in totals.items():
                compared += 1
                expected = host.get(name, {}).get("sectors", 0)
                if sectors > expected:
                    differences.append(f"{cell}: {kernel} {name} {sectors:g} sectors on the card, {expected} counted")
                elif sectors < expected:
                    fewer.append(f"{cell}: {kernel} {name} {sectors:g} of {expected} sectors")
    result.detail = {"compared": compared, "other_than_counted": differences, "fewer_than_counted": fewer}
    result.verdict = "fail" if differences else "pass" if compared else "inconclusive"
    result.reason = differences[0] if differences else "" if compared else "ncu saw no kernel that is counted"
    return result
