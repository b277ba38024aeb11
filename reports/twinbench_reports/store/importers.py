"""From the files of benchmark programs to kept runs: Twinbench, Google Benchmark, nvbench and pytest-benchmark."""

from __future__ import annotations

import datetime
import statistics
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from twinbench_reports import machine
from twinbench_reports.errors import ReportError
from twinbench_reports.load import Record, load_record, parse_json, read_bytes, unpacked
from twinbench_reports.store.facts import run_facts
from twinbench_reports.store.run import Run

_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_NVBENCH_TIMES = ("nv/cold/time/gpu/median", "nv/cold/time/gpu/mean", "nv/cold/time/cpu/mean",
                  "nv/cpu_only/time/cpu/mean")
Series = dict[str, list[float]]


def read_run(path: Path, *, revision: str = "", machine_name: str = "", utc: str = "") -> Run:
    """The run of a file, its kind told by what it holds. What the file does not say must be given."""
    root = parse_json(unpacked(read_bytes(path), str(path)), str(path))
    keys = set(root) if isinstance(root, dict) else set()
    try:
        facts: dict[str, Any] = {}
        if "twinbench" in keys:
            record = load_record(path)
            found, facts = _twinbench(record), run_facts(record)
        elif {"machine_info", "commit_info", "benchmarks"} <= keys:
            found = _pytest_benchmark(root)
        elif {"devices", "benchmarks"} <= keys:
            found = _nvbench(root)
        elif {"context", "benchmarks"} <= keys:
            found = _google_benchmark(root)
        else:
            raise ReportError("neither a Twinbench record nor JSON of Google Benchmark, nvbench or pytest-benchmark",
                              file=str(path), remedy="give the file that --benchmark_out, --json or --benchmark-json "
                              "wrote")
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise ReportError(f"{type(error).__name__} {error}: a field is missing or of another kind", file=str(path),
                          remedy="give the file as the program wrote it") from error
    source, said, series = found
    given = {"revision": revision or said.get("revision", ""), "machine": machine_name or said.get("machine", ""),
             "utc": _moment(utc or said.get("utc", ""), "--utc" if utc else str(path))}
    lacking = [key for key in ("machine", "utc") if not given[key]]
    if lacking:
        raise ReportError(f"it does not say its {' and '.join(lacking)}", file=str(path),
                          remedy=" ".join(f"--{key} TEXT" for key in lacking))
    points = {name: statistics.median(values) for name, values in series.items() if min(values) > 0}
    if not points:
        raise ReportError("it holds no time", file=str(path), remedy="run the benchmarks again; all failed or skipped")
    return Run(given["utc"], given["revision"], given["machine"], source, points, **facts)


def _moment(text: Any, file: str) -> str:
    """Runs are put in the order of their times as written: a word that is none would be a run at a wrong place for
    ever, and so would a local time, such as Google Benchmark writes: it is given in UTC."""
    if text == "":
        return ""
    try:
        moment = datetime.datetime.fromisoformat(text)
        if not moment.utcoffset():
            return str(text)
        return moment.astimezone(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (TypeError, ValueError, OverflowError) as error:
        raise ReportError(f"{text!r} is no time of a run", file=file,
                          remedy="give one as ISO 8601 writes it, 2026-01-31T12:00:00Z; --utc TEXT where the file is "
                          "wrong") from error


Found = tuple[str, Mapping[str, str], Series]


def _collect(rows: Iterator[tuple[str, float]]) -> Series:
    series: Series = {}
    for name, seconds in rows:
        series.setdefault(name, []).append(float(seconds))
    return series


def _twinbench(record: Record) -> Found:
    provenance = record.provenance
    toolchain = ", ".join(f"{provenance[key]}" for key in ("libtorch", "compiler"))
    said = {"revision": provenance["revision"], "utc": provenance["utc"],
            "machine": f"{machine.label(provenance)} · {toolchain}"}
    return "twinbench", said, _collect((row["cell"], row["median_s"]) for row in record.block["timings"]
                                       if row["verdict"] == "pass" and row["median_s"])


def _google_benchmark(root: dict[str, Any]) -> Found:
    context = root["context"]
    said = {"utc": context.get("date", ""), "revision": str(context.get("revision", "")),
            "machine": f"{context['host_name']}, {context['num_cpus']} cores" if "host_name" in context else ""}
    return "google_benchmark", said, _collect(
        (row.get("run_name", row["name"]), row["real_time"] * _SECONDS[row.get("time_unit", "ns")])
        for row in root["benchmarks"] if row.get("run_type", "iteration") == "iteration"
        and not row.get("error_occurred"))


def _nvbench(root: dict[str, Any]) -> Found:
    names = {device["id"]: device["name"] for device in root["devices"]}

    def rows() -> Iterator[tuple[str, float]]:
        for benchmark in root["benchmarks"]:
            for state in benchmark["states"]:
                values = {summary["tag"]: entry["value"] for summary in state.get("summaries") or []
                          for entry in summary["data"] if entry["name"] == "value"}
                time = next((values[tag] for tag in _NVBENCH_TIMES if tag in values), None)
                if time is not None and not state.get("is_skipped"):
                    yield f"{benchmark['name']} {state['name']}", float(time)  # numbers come in quotes

    return "nvbench", {"machine": ", ".join(sorted(set(names.values())))}, _collect(rows())


def _pytest_benchmark(root: dict[str, Any]) -> Found:
    about = root["machine_info"]
    cpu = about.get("cpu") or {}
    said = {"utc": root.get("datetime", ""), "revision": root["commit_info"].get("id") or "",
            "machine": ", ".join(str(part) for part in (about.get("node"), cpu.get("brand_raw")) if part)}
    return "pytest_benchmark", said, _collect((row["fullname"], row["stats"]["median"]) for row in root["benchmarks"])


