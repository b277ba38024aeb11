"""Builds synthetic records for tests and for looking at the report. Deterministic; every number comes from the seed."""

from __future__ import annotations

import copy
import statistics
from typing import Any

import numpy as np

from twinbench_reports.judge.compared import COMPARING
from twinbench_reports.judge.measured import OF_CANDIDATES, OF_EVERY
from twinbench_reports.judge.units import Units
from twinbench_reports.statistics.paired import estimate_ratio

# Of pairs from their median: even in both directions, in an order without a trend.
AWAY = np.array([-1.5, 0.1, -0.9, 1.3, 1.1, 1.5, -1.7, -0.1, -1.3, -0.5,
                 1.9, 0.9, 0.7, 0.5, -0.3, -1.9, 0.3, -1.1, -0.7, 1.7])

# name, sin, baseline dispatches as a formula and a number, optimized dispatches, speedup, flops per byte, claimed ratio
COMPONENTS = [
    ("energy_flow.embedding_mapper", "one call a row", "12·rows", 3072, 6, 14.2, 18.0, 5.0),
    ("energy_flow.simple_neuron", "one call a flow", "4·flows", 1024, 4, 22.5, 6.0, None),
    ("energy_flow.energy_carrier", "GRU cell in a Python loop", "15·flows·layers", 7680, 9, 41.0, 21.0, 10.0),
    ("energy_flow.carrier_heads", "a device synchronisation a flow", "22·flows", 5632, 7, 35.1, 3.0, None),
    ("energy_flow.movement", "a scalar read a flow", "9·flows", 2304, 3, 61.0, 0.6, None),
    ("energy_flow.compaction", "list rebuilt every step", "flows+3", 259, 3, 8.4, 0.0, 3.0),
    ("trainer2.layer_norm", "six separate element-wise passes", "9", 9, 1, 1.9, 1.1, 2.0),
    ("trainer2.attention", "the score matrix is materialised", "7·heads", 56, 3, 3.4, 48.0, 4.0),
    ("trainer2.cross_entropy", "logits copied in fp32", "8", 8, 1, 1.04, 1.6, None),
    ("trainer2.optimizer_step", "one update a tensor", "14·tensors", 2072, 2, 6.2, 0.5, 3.0),
    ("sem.cayley", "a solve a matrix", "5·blocks", 320, 2, 9.3, 30.0, None),
    ("sem.scan", "sequential over time", "4·steps", 4096, 5, 18.0, 0.8, 20.0),
    ("sem.sinkhorn", "a copy to the host to test convergence", "6·iterations", 120, 120, 0.93, 1.2, 1.5),
    ("sem.retrieval", "Python ranking", "3·queries", 768, 3, 130.0, 4.0, 100.0),
]
DTYPES = ("fp32", "bf16")
CASE = "train"
SEED = 20261121


def cell(component: str, variant: str, dtype: str = "fp32", case: str = CASE, device: str = "cpu") -> str:
    return f"{component}/{variant}/{device}/{dtype}/{case}"


def provenance(**changes: Any) -> dict[str, Any]:
    base: dict[str, Any] = dict(
        revision="5f2c9ab31d7e4c06b8a1", dirty=False, utc="2026-11-21T09:40:00Z", build_type="Release",
        compiler="g++ 12.2.0", compiler_flags="-O3 -ffp-contract=off", cxx_standard="20", libtorch="2.11.0+cu130",
        cuda_toolkit="13.0.88", cuda_runtime=None, driver=None, cudnn=None, cpu_model="AMD EPYC 9B14",
        cpu_flags_used="AVX512", cores=2, threads=2, kernel="6.1.0", os="Debian GNU/Linux 12", container="docker",
        governor=None, gpu=None, seed=SEED, environment={"OMP_NUM_THREADS": "2", "CUDA_VISIBLE_DEVICES": None},
        source_hashes={name: {"baseline": "a1", "optimized": "b2", "kernel": None}
                       for name, *_ in COMPONENTS}, command_line="build/cpu/bin/twinbench bench --out record.json")
    return base | changes


def empty() -> dict[str, Any]:
    """A valid record that measured nothing."""
    return {
        "context": {
            "date": "2026-11-21T09:40:00+00:00", "host_name": "bench-1", "executable": "build/cpu/bin/twinbench",
            "num_cpus": 2, "mhz_per_cpu": 2600, "cpu_scaling_enabled": False, "caches": [], "load_avg": [0.4, 0.3, 0.2],
            "library_version": "1.7.1", "library_build_type": "release", "json_schema_version": 1}, "benchmarks": [],
        "twinbench": {
            "schema_version": "1.4", "engines": [], "provenance": provenance(), "ceilings": [], "session": None,
            "components": [], "parity": [], "counters": [], "proofs": [], "timings": [], "speedups": [],
            "scenarios": [], "selftest": [], "modelled": [], "ledger": {
                "planned": 0, "passed": 0, "failed": 0, "errors": 0, "skipped": 0, "inconclusive": 0, "exit_code": 3,
                "skip_reasons": {}}}}


def parity_row(name: str, variant: str, dtype: str, check: str, ratio: float, verdict: str = "pass",
               reason: str = "") -> dict[str, Any]:
    return {
        "cell": cell(name, variant, dtype), "check": check, "verdict": verdict, "reason": reason, "seed": SEED,
        "seconds": 0.01, "outputs": [{
            "name": "output", "tolerance_class": "op", "max_absolute_error": ratio * 2e-6, "max_relative_error": ratio
            * 2e-5, "rmse": ratio
            * 4e-7, "rmse_baseline": 3e-7, "worst_ratio": ratio, "elements": 65536}] if verdict != "skip" else [],
        "vacuity": {"checked": 5, "rejected": 5} if check == "oracle" else None}


def counters_row(name: str, variant: str, dispatches: int) -> dict[str, Any]:
    baseline = variant == "baseline"
    return {
        "cell": cell(name, variant), "verdict": "pass", "reason": "", "by_name": {"aten::add": dispatches},
        "pinned": None, "values": {
            "dispatches": dispatches, "scalar_reads": 256 if baseline else 0, "sync_calls": 256 if baseline else 0,
            "copies": 4 if baseline else 0, "device_copies": 0, "allocations": dispatches if baseline else 0,
            "allocated_bytes": dispatches * 4096 if baseline else 0,
            "peak_bytes": 80_000_000 if baseline else 20_000_000, "forward_calls": 1}}


def proof_row(name: str, formula: str, baseline: int, optimized: int) -> dict[str, Any]:
    return {
        "component": name, "device": "cpu", "dtype": "fp32", "case": CASE, "counter": "dispatches", "formula": formula,
        "verdict": "pass", "reason": "", "baseline": {"expected": baseline, "measured": baseline},
        "optimized": {"expected": optimized, "measured": optimized}}


def speedup_row(name: str, ratio: float, dtype: str = "fp32", spread: float = 0.02,
                source: str = "baseline") -> dict[str, Any]:
    row = {
        "component": name, "device": "cpu", "dtype": dtype, "case": CASE, "from": source, "to": "optimized",
        "confidence": 0.95, "regime": "hot", "reason": ""}
    return measured(row, ratio, spread)


def measured(row: dict[str, Any], ratio: float, spread: float) -> dict[str, Any]:
    """The row of a speedup with pairs of that median, and the figures that follow from them: an interval of about
    1.8 spreads."""
    logs = [float(value) for value in np.log(ratio) + spread * AWAY]
    made = estimate_ratio(logs, row["confidence"])
    lower, upper = (float(np.exp(bound)) for bound in made.interval)
    row.update(ratio=ratio, lower=lower, upper=upper, n=made.count, autocorrelation=made.autocorrelation,
               verdict="faster" if lower > 1 else "slower" if upper < 1 else "same", log_ratios=logs)
    return row


def spread_of(row: dict[str, Any]) -> float:
    """What `measured` was given."""
    return float(np.max(row["log_ratios"]) - np.log(row["ratio"])) / float(np.max(AWAY))


def timing_row(name: str, variant: str, dtype: str, median: float, intensity: float, fraction: float) -> dict[str, Any]:
    bytes_moved = median * fraction * 20e9 if intensity < 9 else median * fraction * 190e9 / intensity
    return {
        "cell": cell(name, variant, dtype), "verdict": "pass", "reason": "", "regime": "hot", "n": 20,
        "median_s": median, "q1_s": median, "q3_s": median, "minimum_s": median,
        "samples_s": [median] * 20, "iterations_per_sample": 4, "bytes": bytes_moved, "flops": bytes_moved * intensity,
        "floor_s": median * fraction, "impossible_below_s": median * fraction / 1.25, "roofline_fraction": fraction,
        "bound": "bytes" if intensity < 9 else "flops"}


def modelled_row(name: str, card: str = "H200", seconds: float = 4e-5, share: float = 0.75) -> dict[str, Any]:
    """A MADE-UP modelled time: neither the model nor a card gave it."""
    limiter = f"{name.replace('.', '::')}::Forward: memory bandwidth"
    return {
        "cell": cell(name, "optimized", device="simt"), "card": card, "device_names": [f"NVIDIA {card}"],
        "seconds": seconds, "floor_s": seconds * share, "floor_share": share, "limiter": limiter, "verdict": "pass",
        "reason": "", "pinned": {"seconds": seconds, "floor_share": share, "limiter": limiter}}


def on_a_card() -> dict[str, Any]:
    """The realistic record as a machine with a card would write it: traced cells, device memory, a timeline, the card's
    facts."""
    root = full()
    block = root["twinbench"]
    block["provenance"]["gpu"] = {
        "name": "Synthetic card", "uuid_hash": "crc32:0badcafe", "sm_count": 132, "l2_bytes": 52428800,
        "memory_bytes": 1 << 35, "clocks": {"sm_mhz": 1980.0, "max_sm_mhz": None}, "ecc": True, "mig": False,
        "findings": [], "power_limit_w": 700.0}
    for index, row in enumerate(block["counters"]):
        busy = 1e-4 * (1 + index % 7)
        row |= {
            "device_activity_reason": "", "device_activity": {
                "runs": 3, "kernels": 3 * row["values"]["dispatches"], "graph_launches": 0, "copies": 6,
                "copied_bytes": 3 << 20, "memsets": 0, "synchronisations": 3, "host_calls": 9, "busy_s": busy,
                "span_s": busy * 1.25, "busy_share": 0.8, "gap_s": busy * 0.25, "gaps": 8, "longest_gap_s": busy * 0.1}}
        device = {
            "allocations": 12, "peak_bytes": 1 << 26, "leaked_bytes": 0, "reserved_bytes": 1 << 27, "segments": 2,
            "retries": 0, "out_of_memory": 0}
        row["memory"] = {"host": {"allocations": 40, "peak_bytes": 1 << 22, "leaked_bytes": 0}, "device": device}
    seconds = [0.25 * index for index in range(40)]
    columns = {
        "utilisation_percent": [None] + [60.0 + index % 30 for index in range(39)],
        "power_w": [250.0 + 5 * (index % 9) for index in range(40)], "temperature_c": [51.0] * 40,
        "sm_clock_mhz": [1980.0 - 15 * (index % 3)
                         for index in range(40)], "throttle_reasons": [[], None] + [["sw_power_cap"]] * 38}
    block["timelines"] = [{
        "engine": "bench", "reason": "",
        "samples": {"period_s": 0.25, "seconds": seconds, "energy_j": 2600.0,
                    **columns}, "jobs": [{"name": "sem.cayley/cuda/fp32/train", "start_s": 0.0, "end_s": 9.5}]
    }, {"engine": "parity", "reason": "nvml_absent: the management library is not there", "samples": None, "jobs": []}]
    return root


def scenario(seed: int = 3) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    drifting = (0.9 + 0.012 * np.arange(60) + rng.normal(0, 0.02, 60)) / 16  # of 256 flows of 4096
    flat = 0.05 + rng.normal(0, 0.0015, 60)

    def variant(name: str, samples: Any, extrapolated: bool, resident: Any) -> dict[str, Any]:
        return {
            "variant": name, "extrapolated": extrapolated, "measured_flows": 256 if extrapolated else 4096,
            "seconds_per_step": float(np.median(samples)) * (16 if extrapolated else 1),
            "samples_s": [float(value) for value in samples], "counters": {
                "dispatches": 91_840 if name == "baseline" else 212, "scalar_reads": 4096 if name == "baseline" else 0},
            "timelines": [{"name": "resident_bytes", "unit": "B", "values": [float(value) for value in resident]}]}

    return {
        "name": "overnight_drift", "pipeline": "energy_flow",
        "summary": "Sixty training steps: the baseline slows down and grows, the optimized run does not.",
        "experiment": "growth", "source": "energy_flow SC05", "part": "step time", "tier": "std",
        "shows": {
            "baseline": "every step takes longer than the one before", "optimized": "all steps take the same time"},
        "verdict": "pass", "reason": "", "device": "cpu", "configuration": {"batch": 8, "flows": 4096, "steps": 60},
        "variants": [
            variant("baseline", drifting, True, 3e8 + 6e6 * np.arange(60)),
            variant("optimized", flat, False, np.full(60, 2.4e8))],
        "speedup": {"ratio": 25.1, "lower": 24.2, "upper": 26.3, "n": 60, "extrapolated": True}, "criteria": [{
            "name": "baseline step time drifts", "verdict": "pass", "reason": "", "measured": 0.78, "limit": 0.1
        }, {"name": "optimized step time is flat", "verdict": "pass", "reason": "", "measured": 0.004, "limit": 0.02}, {
            "name": "GPU busy fraction", "verdict": "skip", "reason": "no GPU on this machine", "measured": None,
            "limit": 0.9}]}


def full() -> dict[str, Any]:
    """A realistic passing record from a machine without a GPU."""
    root = empty()
    block = root["twinbench"]
    block["engines"] = ["parity", "counters", "bench", "scenario", "selftest"]
    block["ceilings"] = [{
        "device": "cpu", "name": "copy", "unit": "B/s", "value": 19.8e9, "data_sheet": None,
        "method": "best of 20 copies of 256 MiB"}, {
            "device": "cpu", "name": "gemm_fp32", "unit": "FLOP/s", "value": 188e9, "data_sheet": None,
            "method": "best of 20 products of 2048³"}, {
                "device": "cpu", "name": "gemm_bf16", "unit": "FLOP/s", "value": 49e9, "data_sheet": None,
                "method": "best of 20 products of 2048³"}]
    block["session"] = {"null_test": {"verdict": "same", "pairs": 60, "noise_floor": 0.006, "cells": [
        {"cell": cell("sem.cayley", "optimized"), "ratio": 1.006, "lower": 0.995, "upper": 1.007, "n": 60}]},
        "dispatcher_ns_per_call": 1400.0, "clock_resolution_ns": 21.0}
    for index, (name, sin, formula, before, after, ratio, intensity, claimed) in enumerate(COMPONENTS):
        block["components"].append({
            "id": name, "summary": f"The {name.split('.')[1].replace('_', ' ')} of the pipeline.",
            "source": f"{name.split('.')[0]} C{index + 1:02d}", "sin": sin, "regime": "hot", "dtypes": list(DTYPES),
            "variants": ["baseline", "optimized"] + (["library"] if index % 3 == 1 else []), "cases": [{
                "name": CASE, "sizes": {"flows": 256}, "options": {}, "pass": "forward", "timed": True,
                "degenerate": False, "outputs": {"output": "op"}, "items": 256}],
            "checks": [], "proof": [{"counter": "dispatches", "formula": formula}],
            "claims": [{
                "document": "D0", "text": f"batching the {name.split('.')[1].replace('_', ' ')} gives a large speedup",
                "figure": f"{claimed:g}x", "ratio": claimed, "verdict": "unproven" if index
                % 2 else "ok"}] if claimed else []})
        block["proofs"].append(proof_row(name, formula, before, after))
        for variant, count in (("baseline", before), ("optimized", after)):
            block["counters"].append(counters_row(name, variant, count))
        for dtype in DTYPES:
            for check, worst in (("oracle", 0.02 + 0.055 *
                                  (index % 11)), ("determinism", 0.0), ("batch_invariance", 0.0), ("guard_bands", 0.0)):
                block["parity"].append(
                    parity_row(name, "optimized", dtype, check, worst * (1.4 if dtype == "bf16" else 1)))
        for dtype in DTYPES[: 1 + index % 2]:
            own = ratio * (0.8 if dtype == "bf16" else 1)
            block["speedups"].append(speedup_row(name, own, dtype=dtype, spread=0.02 + 0.03 * (index % 4)))
            fast = 0.62 / (1 + index % 5)
            median = 2e-4 * (1 + index)
            block["timings"] += [
                timing_row(name, "baseline", dtype, median * own, intensity, fast / own),
                timing_row(name, "optimized", dtype, median, intensity, fast)]
        if index % 3 == 1:
            library = min(1.25, ratio * 0.45)
            block["speedups"].append(speedup_row(name, library, source="library"))
            block["timings"].append(timing_row(name, "library", "fp32", 2e-4 * (1 + index) * library, intensity,
                                               0.62 / (1 + index % 5) / library))
    for name, *_ in COMPONENTS:
        for dtype in DTYPES:
            for check in ("vacuity", "stale", "sensitivity", "poisoned_neighbour", *OF_CANDIDATES):
                if check not in ("oracle", "determinism", "guard_bands"):
                    row = parity_row(name, "optimized", dtype, check, 0.0)
                    row.update(outputs=row["outputs"] if check in COMPARING else [],
                               vacuity={"checked": 5, "rejected": 5} if check == "vacuity" else None)
                    block["parity"].append(row)
    block["parity"].append({
        **parity_row("sem.scan", "optimized", "fp32", "oracle", 0, "skip", "no GPU"),
        "cell": "sem.scan/optimized/cuda/fp32/train"})
    block["scenarios"].append(scenario())
    for name, kind, caught in (("stale_buffer", "wrong_twin", "oracle"), ("dropped_tail", "wrong_twin", "oracle"),
                               ("one_nan", "wrong_twin", "oracle"), ("extra_item", "wrong_twin", "counters"),
                               ("leak", "wrong_twin", "counters"), ("honest_twin", "correct_control", "")):
        expected = "pass" if kind == "correct_control" else "fail"
        block["selftest"].append({
            "name": name, "kind": kind, "caught_by": caught, "expected": expected, "got": expected, "verdict": "pass",
            "reason": ""})
    for index, (name, *_) in enumerate(COMPONENTS[:5]):
        for card, factor in (("H200", 1.0), ("RTX 5090", 1.9)):
            block["modelled"].append(modelled_row(name, card, 2e-5 * (index + 1) * factor, 0.9 - 0.13 * index))
    block["engines"].append("kernels")
    add_other_variants(block)
    return balance(root)


def add_other_variants(block: dict[str, Any]) -> None:
    """The rows of the baselines in parity and of the library in parity and counters, behind all others: tests know
    those by their places."""
    with_library = {component["id"] for component in block["components"] if "library" in component["variants"]}
    for section in ("parity", "counters"):
        for row in list(block[section]):
            name, variant, device, *_ = row["cell"].split("/")
            if name in with_library and (variant, device) == ("optimized", "cpu"):
                copied = copy.deepcopy(row)
                block[section].append({**copied, "cell": row["cell"].replace("/optimized/", "/library/")})
    for name, *_ in COMPONENTS:
        for dtype in DTYPES:
            for check in (*OF_EVERY, "sensitivity", "precision", "cost"):
                block["parity"].append({**parity_row(name, "baseline", dtype, check, 0.0), "outputs": []})


def failing() -> dict[str, Any]:
    """A record with one failure of each kind, a slow twin and an undecided one."""
    root = full()
    block = root["twinbench"]
    block["parity"][8].update(verdict="fail", reason="output differs: 2.4 times the allowed error at [3, 17]")
    block["parity"][8]["outputs"][0].update(worst_ratio=2.4, max_absolute_error=4.8e-6)
    block["proofs"][4].update(verdict="fail", reason="dispatches of the optimized variant: 5 where its formula gives 3")
    block["proofs"][4]["optimized"]["measured"] = 5
    block["selftest"][2].update(verdict="fail", got="pass", reason="one NaN went through the oracle check")
    undecided = block["speedups"][5]
    measured(undecided, 1.04, 0.075).update(verdict="inconclusive", reason="the interval is still 14 % wide")
    slow, quick = (next(row for row in block["timings"]
                        if row["cell"] == cell(undecided["component"], variant, undecided["dtype"]))
                   for variant in (undecided["from"], undecided["to"]))
    quick.update(median_s=slow["median_s"] / 1.04, samples_s=[slow["median_s"] / 1.04] * quick["n"])
    reject(root, block["timings"][-1]["cell"])
    return balance(root)


def reject(root: dict[str, Any], spoilt: str) -> None:
    """Rejects a timing, and every speedup that rests on it, as `twinbench bench` does."""
    block = root["twinbench"]
    for row in (row for row in block["timings"] if row["cell"] == spoilt):
        row.update(verdict="rejected", reason="answer_after_timing: on changed inputs output 'y' is wrong")
    for row in block["speedups"]:
        if spoilt in (cell(row["component"], row[side], row["dtype"]) for side in ("from", "to")):
            row.update(verdict="rejected", reason="optimized: answer_after_timing", ratio=None, lower=None,
                       upper=None, log_ratios=[])


def balance(root: dict[str, Any]) -> dict[str, Any]:
    """Rewrites the ledger to agree with the rows, and the times with the pairs of their speedups."""
    block = root["twinbench"]
    for row in block["speedups"]:
        _time_of_pairs(block, row)
    units = Units(block)
    null_test = (block["session"] or {}).get("null_test")
    ledger: dict[str, Any] = {key: units.outcomes[key] for key in ("passed", "failed", "errors", "skipped",
                                                                   "inconclusive")}
    if null_test and block["timings"]:  # a run of `twinbench bench` counts its session
        ledger["passed" if null_test["verdict"] == "same" else "inconclusive"] += 1
    ledger["planned"] = sum(ledger.values())
    ledger["skip_reasons"] = dict(units.reasons)
    ledger["exit_code"] = 1 if ledger["failed"] + ledger["errors"] else 3 if ledger["inconclusive"] else 0
    if not ledger["passed"] and not ledger["exit_code"]:
        ledger["exit_code"] = 3
    block["ledger"] = ledger
    return root


def _time_of_pairs(block: dict[str, Any], speedup: dict[str, Any]) -> None:
    """Samples of the slower side as the pairs have them. The faster side's are all its median, which stays."""
    rows = {row["cell"]: row for row in block["timings"]}
    from_, to = (rows.get("/".join((speedup["component"], speedup[side], speedup["device"], speedup["dtype"],
                                    speedup["case"]))) for side in ("from", "to"))
    if speedup["from"] != "baseline" or not from_ or not to or len(speedup["log_ratios"]) < 2:
        return
    to["samples_s"] = [to["median_s"]] * len(speedup["log_ratios"])
    from_["samples_s"] = [to["median_s"] * float(np.exp(value)) for value in speedup["log_ratios"]]
    for row in (from_, to):
        low, middle, high = statistics.quantiles(row["samples_s"], n=4, method="inclusive")
        row.update(n=len(row["samples_s"]), median_s=middle, q1_s=low, q3_s=high, minimum_s=min(row["samples_s"]))


def only(root: dict[str, Any], *sections: str) -> dict[str, Any]:
    """The record with all but these judged sections emptied."""
    result = copy.deepcopy(root)
    for section in ("parity", "counters", "proofs", "timings", "speedups", "scenarios", "selftest", "modelled"):
        if section not in sections:
            result["twinbench"][section] = []
    return balance(result)


def on_device() -> dict[str, Any]:
    """A MADE-UP record of a device, for tests of the rendering only: no card gave any of its numbers."""
    root = only(full(), "timings", "speedups")
    block = root["twinbench"]
    block["ceilings"] = [{
        "device": "cuda", "name": "copy", "unit": "B/s", "value": 2e12, "data_sheet": 4e12, "method": "made up",
        "data_sheet_source": "made-up data sheet"}, {
            "device": "cuda", "name": "gemm_fp32", "unit": "FLOP/s", "value": 3e13, "data_sheet": None,
            "method": "made up", "data_sheet_source": "'Made Up 9000' is not in harness/device/data_sheets.json"
        }, {"device": "cuda", "name": "launch", "unit": "s", "value": 2.5e-6, "data_sheet": None, "method": "made up"}]
    block["session"]["device"] = {
        "name": "Made Up 9000", "empty_span_s": 1.5e-6, "empty_wall_s": 9e-6, "empty_samples": 101, "clock_mhz": 1234.0,
        "hold": {"verdict": "pass", "reason": "", "dawdled_s": 2e-4, "held_span_s": 2e-6}, "flush": {
            "verdict": "fail", "reason": "a read after the flush is not slower", "resident_s": 2e-5, "flushed_s": 2e-5,
            "leak_s": 0.0}, "refused_ceilings": ["gemm_bf16: made up"]}
    for row in block["speedups"]:
        row.update(device="cuda", clock="gpu_span", clock_reason="", clock_mhz=1234.0, decomposition_reason="",
                   decomposition={"wall": 12.0, "host": 1.5, "launch_gap": 4.0, "kernel": 2.0})
    block["speedups"][0].update(decomposition={"wall": 12.0, "host": 1.5, "launch_gap": None, "kernel": None},
                                clock="host_wall", decomposition_reason="from: the busy time is unknown",
                                clock_reason="a run waits for the device: 256 scalar reads")
    for row in block["timings"]:
        row.update(cell=row["cell"].replace("/cpu/", "/cuda/"), clock="gpu_span", clock_reason="",
                   gpu_median_s=row["median_s"], clock_mhz=1234.0, sample_clocks_mhz=[1234.0] * 20, timer_limited=False,
                   discarded=0, throttled=0, graph_replay_s=7e-6, graph_reason="",
                   in_place={"wall_s": 8e-5, "span_s": 6e-5, "busy_s": 2e-5, "reason": ""})
    block["timings"][0].update(
        graph_replay_s=None, graph_reason="a run waits for the device: no graph can hold it",
        in_place={"wall_s": 8e-5, "span_s": 6e-5, "busy_s": None, "reason": "cupti_absent: made up"})
    return balance(root)
