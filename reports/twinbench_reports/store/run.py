"""One kept run: when, what revision, which machine, and one value for each series. What the folder's files hold."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from twinbench_reports.errors import ReportError

FORMAT = "twinbench-run 1"
_VERDICTS = ("", "pass", "fail", "inconclusive")
_REMEDY = "keep the run again from the file it came from"


@dataclass(frozen=True)
class Run:
    """`points`: seconds by series. Times of two machines are never compared, so `machine` is part of every series.

    A Twinbench run has more: its verdict, the sha256 of its record, speedups as (ratio, lower, upper) by twin, and
    counts by proof. Files of an earlier program lack them.
    """

    utc: str
    revision: str
    machine: str
    source: str  # twinbench, google_benchmark, nvbench, pytest_benchmark
    points: Mapping[str, float]
    verdict: str = ""
    record: str = ""
    ratios: Mapping[str, Sequence[float]] = field(default_factory=dict)
    counts: Mapping[str, float] = field(default_factory=dict)

    def text(self) -> str:
        """The file: the same run gives the same bytes."""
        root = {"format": FORMAT, "utc": self.utc, "revision": self.revision, "machine": self.machine,
                "source": self.source, "points": dict(sorted(self.points.items()))}
        root |= {key: value for key, value in (
            ("verdict", self.verdict), ("record", self.record), ("ratios", dict(sorted(self.ratios.items()))),
            ("counts", dict(sorted(self.counts.items())))) if value}
        return json.dumps(root, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n"

    @property
    def file_name(self) -> str:
        """By time, revision and content, so that two writers never mean the same name by two runs."""
        stamp = "".join(character for character in self.utc if character.isalnum())[:20]
        revision = "".join(character for character in self.revision[:12] if character.isalnum()) or "unknown"
        return f"{stamp}-{revision}-{hashlib.sha256(self.text().encode()).hexdigest()[:12]}.json"

    @property
    def folder_name(self) -> str:
        """The machine's."""
        return hashlib.sha256(self.machine.encode()).hexdigest()[:12]


def run_of(root: Any, file: str) -> Run:
    """The run that a file of the folder holds; a file that was cut off or is of a newer format is refused by name."""
    if not isinstance(root, dict) or not str(root.get("format", "")).startswith("twinbench-run "):
        raise ReportError("it is no kept run", file=file, remedy="keep it with `twinbench-report keep`")
    if root["format"] != FORMAT:
        raise ReportError(f"{root['format']!r}, and this program reads {FORMAT!r}", file=file,
                          remedy="read it with the twinbench-report that wrote it, or a newer one")
    words = [root.get(key) for key in ("utc", "revision", "machine", "source")]
    points = root.get("points")
    if not all(isinstance(word, str) for word in words) or not isinstance(points, dict):
        raise ReportError("a field is missing or of another kind", file=file, remedy=_REMEDY)
    for name, value in points.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
            raise ReportError(f"{name!r} is no positive number", file=file, path="points", remedy=_REMEDY)
    facts = {"verdict": root.get("verdict", ""), "record": root.get("record", ""), "ratios": root.get("ratios", {}),
             "counts": root.get("counts", {})}
    if not (facts["verdict"] in _VERDICTS and isinstance(facts["record"], str)
            and re.fullmatch("(?:[0-9a-f]{64})?", facts["record"]) and _are(facts["ratios"], _is_triple)
            and _are(facts["counts"], _is_number)):
        raise ReportError("verdict, record, ratios or counts are of another kind", file=file, remedy=_REMEDY)
    return Run(*words, points, **facts)


def _are(values: Any, check: Callable[[Any], bool]) -> bool:
    return isinstance(values, dict) and all(map(check, values.values()))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < math.inf


def _is_triple(value: Any) -> bool:
    return (isinstance(value, list) and len(value) == 3 and all(map(_is_number, value))
            and 0 < value[1] <= value[0] <= value[2])
