"""compute-sanitizer: which one, how it is called, and what its output means. A clean result counts only where the same
tool has reported the planted bug of sanitizer_probe on this machine."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

TOOLKIT = "/usr/local/cuda/bin/compute-sanitizer"
ERROR_CODE = 86  # of compute-sanitizer where it found something
# Words by which it says that it cannot work on this machine at all.
_REFUSALS = ("Device not supported", "device is not supported", "Unable to find injection library",
             "is not supported on this platform", "Insufficient privileges", "driver version is insufficient",
             "unsupported driver")
_BROKE = "Internal Sanitizer Error"
_NEVER_RAN = "terminated before first instrumented API call"
_SUMMARY = re.compile(r"^=+ (?:ERROR SUMMARY: (\d+) errors?\b(?! were not printed)"
                      r"|RACECHECK SUMMARY: (\d+) hazards? displayed)", re.MULTILINE)
_REPORT = re.compile(r"^=+ (?!COMPUTE-SANITIZER|ERROR SUMMARY|RACECHECK SUMMARY|\s|$)(.+)$", re.MULTILINE)
_UNINITIALISED = re.compile(r"^=+ Uninitialized \S+ memory read.*\n=+\s+at (.+)$", re.MULTILINE)
_OURS = "twinbench::"  # in the names of our kernels
# In each tool: the words its report of the planted bug must hold, so that another error does not count for it.
PLANTED = {
    "memcheck": r"Invalid __global__ (write|read)",
    "racecheck": r"(?i)race reported|hazard",
    "initcheck": r"Uninitialized __global__ memory read",
    "synccheck": r"Barrier error|[Dd]ivergent"}


@dataclass(frozen=True)
class Finding:
    """What one run of a tool showed. verdict: clean, found, refused (the tool cannot work here), broken (no
    summary)."""

    verdict: str
    reason: str = ""


def find_sanitizer(root: Path, path: str | None = None) -> tuple[str, str]:
    """(program, "") : the toolkit's on the path (else $PATH) or in /usr/local/cuda, else the bundle's; ("", reason)
    where there is none."""
    for candidate in (shutil.which("compute-sanitizer", path=path), TOOLKIT, str(root / "sanitizer/compute-sanitizer")):
        if candidate and Path(candidate).is_file():
            return candidate, ""
    return "", f"no compute-sanitizer: neither on PATH, nor {TOOLKIT}, nor in the bundle"


def sanitized(program: str, tool: str, command: Sequence[str]) -> list[str]:
    """The command under a tool. racecheck and synccheck look at our kernels only: libraries race on purpose. initcheck
    must see all, or every value another kernel wrote would look uninitialised, and name each reader."""
    flags = {
        "racecheck": ["--kernel-name", "kernel_substring=twinbench", "--print-limit", "20"],
        "synccheck": ["--kernel-name", "kernel_substring=twinbench", "--print-limit", "20"],
        "initcheck": ["--show-backtrace", "no", "--print-limit", "10000"]}.get(tool, ["--print-limit", "20"])
    return [program, "--tool", tool, "--error-exitcode", str(ERROR_CODE), *flags, *command]


def read_output(text: str, code: int, *, of_library_too: bool = True) -> Finding:
    """Judges the output and exit code of one run. No summary line is no clean result. Without `of_library_too` what
    LibTorch's kernels alone read uninitialised is no finding: they round tiles that nobody uses, and what TMA wrote is
    not seen by the tool."""
    for refusal in _REFUSALS:
        if refusal in text:
            return Finding("refused", f"compute-sanitizer: {refusal}")
    summaries = [int(match[1] or match[2]) for match in _SUMMARY.finditer(text)]
    first = _REPORT.search(text)
    what = first[1].strip()[:200] if first else ""
    if _BROKE in text:  # what it reports is its own end, not the program's
        return Finding("broken", f"compute-sanitizer: {_BROKE}: run its kernels by name, with --kernel-name")
    readers = _UNINITIALISED.findall(text)
    if not of_library_too and readers and len(readers) == sum(summaries) and not any(_OURS in one for one in readers):
        return Finding("clean", f"{len(readers)} uninitialised reads of LibTorch's own kernels, none of ours")
    if any(summaries) or code == ERROR_CODE:
        return Finding("found", f"{sum(summaries)} reported; first: {what}" if what else f"{sum(summaries)} reported")
    if _NEVER_RAN in text or not summaries:
        return Finding("broken", f"the tool gave no result (exit code {code}){': ' + what if what else ''}")
    return Finding("clean")


def probe_verdict(tool: str, planted: Finding, planted_text: str, clean: Finding) -> tuple[str, str]:
    """(verdict, reason) of a probe: the planted bug must be reported as what it is, its correct twin must not be."""
    if "refused" in (planted.verdict, clean.verdict):
        return "skip", planted.reason or clean.reason
    if planted.verdict == "found" and re.search(PLANTED[tool], planted_text):
        if clean.verdict == "clean":
            return "pass", ""
        return "inconclusive", f"{tool} also accuses the correct program: {clean.reason}"
    return "inconclusive", f"{tool} did not report the planted bug: {planted.reason or 'nothing found'}"
