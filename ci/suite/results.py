"""What leaves the machine: the merged record, gate, page, summary and one archive, few enough and small enough to
send."""

from __future__ import annotations

import gzip
import io
import json
import re
import sys
import tarfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from suite.engines import Bench
from suite.errors import FAIL, INCONCLUSIVE, PASS, TOOL_ERROR
from suite.files import last_line, tail_of, write_json, write_whole
from suite.plan import Step
from suite.state import State, StepResult

LARGEST_FILE = 15 << 20  # bytes; some machines send back no file above 16 MiB
LOG_SHARE = 200_000  # bytes of each log that are kept
REPORT_LIMIT_S = 90


def make_report(bench: Bench, state: State, out: Path, pins: Sequence[str], missing: Sequence[str]) -> list[StepResult]:
    """Merges the records, judges them and draws the page. Each is a step of its own: one that fails loses no other."""
    records = [str(bench.steps / result.record) for result in state.results.values() if result.record]
    if missing:
        why = (f"missing_package: {', '.join(missing)}; remedy: python3 -m pip install {' '.join(missing)}, or merge "
               "steps/*.json of results.tar.gz elsewhere")
        return [StepResult(name, "failed_to_run", "error", why) for name in ("merge", "gate", "html")]
    if not records:
        return [
            StepResult(name, "skipped", "inconclusive", "no step left a record") for name in ("merge", "gate", "html")]
    merged = bench.work / "record.json"
    timing = "gate" if bench.device == "cuda" else "advisory"
    judging = ["--timing", timing, *pins]
    results = [_report(bench, "merge", ["merge", *records, "--latest", "--other-boards", "-o", str(merged)])]
    if results[0].verdict != "pass":
        return [
            *results,
            *(StepResult(name, "skipped", "inconclusive", "there is no merged record") for name in ("gate", "html"))]
    results.append(
        _report(bench, "gate", [
            "gate",
            str(merged), *judging, "--verdict",
            str(bench.work / "verdict.json"), "--summary",
            str(bench.work / "gate.md")]))
    results.append(_report(bench, "html", ["html", str(merged), *judging, "-o", str(bench.work / "report.html")]))
    for name in ("record.json", "report.html"):
        if (bench.work / name).is_file():
            _copy_small(bench.work / name, out)
    return results


def _report(bench: Bench, name: str, arguments: list[str]) -> StepResult:
    bench.log_of(name).unlink(missing_ok=True)
    ended = bench.run(name, [sys.executable, "-m", "twinbench_reports", *arguments], REPORT_LIMIT_S, REPORT_LIMIT_S)
    verdict = {0: "pass", 1: "fail", 3: "inconclusive"}.get(ended.code, "error") if ended.how == "exited" else "error"
    return StepResult(name, "done" if ended.how == "exited" else "failed_to_run",
                      verdict, ended.what or ("" if verdict == "pass" else _headline(bench, name)),
                      round(ended.seconds, 2), exit_code=ended.code)


def _headline(bench: Bench, name: str) -> str:
    """The gate says its verdict in its first line, the others their error in the last."""
    lines = [line for line in tail_of(bench.log_of(name), 1 << 20).splitlines() if line and not line.startswith("$ ")]
    return lines[0][:300] if name == "gate" and lines else last_line(bench.log_of(name))


def _copy_small(source: Path, out: Path) -> None:
    data = source.read_bytes()
    if len(data) <= LARGEST_FILE:
        write_whole(out / source.name, data)
    else:
        write_whole(out / f"{source.name}.gz", gzip.compress(data, 6))


def exit_code_of(steps: Sequence[StepResult], not_run: Sequence[str]) -> int:
    """1 a failure, else 2 a step that could not do its work, else 3 anything open, cut, or nothing passed, else 0."""
    verdicts = Counter(step.verdict for step in steps)
    if verdicts["fail"]:
        return FAIL
    if verdicts["error"]:
        return TOOL_ERROR
    measured = [step for step in steps if step.verdict == "pass" and step.record]
    return INCONCLUSIVE if verdicts["inconclusive"] or not_run or not measured else PASS


def summary_of(about: dict[str, Any], plan: Sequence[Step], state: State,
               report: Sequence[StepResult]) -> dict[str, Any]:
    """The summary as data."""
    done = [state.results[name] for name in ["environment", *(step.name for step in plan)] if name in state.results]
    not_run = [step.name for step in plan if step.name not in state.results]
    rows = [*done, *report]
    return {
        **about, "exit_code": exit_code_of(rows, not_run),
        "verdicts": dict(Counter(row.verdict for row in rows)),
        "not_run": not_run,
        "steps": [{
            key: value for key, value in vars(row).items() if value not in (None, "")} for row in rows]}


def summary_markdown(summary: dict[str, Any]) -> str:
    """One page: the verdict, what is wrong or open, then every group in a line."""
    word = {PASS: "pass", FAIL: "fail", TOOL_ERROR: "error", INCONCLUSIVE: "inconclusive"}[summary["exit_code"]]
    gpu = summary["gpu"].get("name") or summary["gpu"].get("status", "none")
    lines = [
        f"# GPU suite: {word}", "",
        f"revision {summary['revision'] or 'unknown'}, device {summary['device']}, GPU {gpu}, torch "
        f"{summary['torch']}, "
        f"{summary['seconds']:.0f} s in this call, {summary['utc']}", "",
        "| steps | pass | fail | error | inconclusive | skip | seconds |", "|---|---|---|---|---|---|---|"]
    groups: dict[str, list[dict[str, Any]]] = {}
    for step in summary["steps"]:
        groups.setdefault(step["name"].split(".")[0], []).append(step)
    for group, steps in groups.items():
        counts = Counter(step["verdict"] for step in steps)
        cells = " | ".join(str(counts[verdict] or "") for verdict in ("pass", "fail", "error", "inconclusive", "skip"))
        lines.append(f"| {group} | {cells} | {sum(step.get('seconds', 0) for step in steps):.0f} |")
    reasons: dict[tuple[str, str], list[str]] = {}
    for step in summary["steps"]:
        if step["verdict"] != "pass":
            reasons.setdefault((step["verdict"], step.get("reason", "")), []).append(step["name"])
    if reasons:
        lines += ["", "## Not passed", ""]
        for (verdict,
             reason), names in sorted(reasons.items(), key=lambda item:
                                      ("fail", "error", "inconclusive", "skip").index(item[0][0])):
            shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
            lines.append(f"- **{verdict}** {shown}: {' '.join(reason.split())[:400] or 'no reason given'}")
    if summary["not_run"]:
        lines += [
            "", f"Not run, {len(summary['not_run'])}: {', '.join(summary['not_run'])}. Call again with `--resume`."]
    return "\n".join(lines) + "\n"


def write_summary(out: Path, summary: dict[str, Any]) -> None:
    write_json(out / "summary.json", summary)
    write_whole(out / "summary.md", summary_markdown(summary))


def pack(bench: Bench, out: Path) -> str:
    """results.tar.gz: state, step records and the ends of their logs. Unpacked as a work folder, it can be resumed.

    Returns what had to be left out to stay below the limit, or "".
    """
    kept = sorted(path for path in bench.work.rglob("*")
                  if path.is_file() and path.name != "record.json" and not path.name.startswith("."))
    for leave_out in (set(), {".log"}, {".log", ".html"}):
        data = _archive(bench.work, [path for path in kept if path.suffix not in leave_out])
        if len(data) <= LARGEST_FILE:
            break
    write_whole(out / "results.tar.gz", data)
    if len(data) > LARGEST_FILE:
        return f"results.tar.gz has {len(data) >> 20} MiB, more than some machines send back"
    return f"left out of results.tar.gz for its size: {', '.join(sorted(leave_out))}" if leave_out else ""


def _archive(folder: Path, files: Sequence[Path]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=6) as archive:
        for path in files:
            data = path.read_bytes()
            if path.suffix == ".log" and len(data) > LOG_SHARE:
                data = b"... the beginning is left out ...\n" + data[-LOG_SHARE:]
            entry = tarfile.TarInfo(str(path.relative_to(folder)))
            entry.size, entry.mtime, entry.mode = len(data), int(path.stat().st_mtime), 0o644
            archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def pins_held(root: Path, device: str, plan: Sequence[Step]) -> list[str]:
    """What tells the gate its pins: all that there are, by which components are known, and which of them a run of this
    plan must have counted, so that it misses none that --only left out; nothing where this device has none of those."""
    file = root / "ci/counters.json"
    counted = "|".join(sorted(re.escape(step.component) for step in plan if step.group == "counters"))
    cells = f"^({counted})/[^/]+/{device}/"
    pinned = json.loads(file.read_text()) if file.is_file() else {}
    return ["--pins", str(file), "--filter", cells] if any(re.search(cells, cell) for cell in pinned) else []
