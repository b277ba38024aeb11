"""Reads ci/documented.json and the claims of every src/<pipeline>/<component>/spec.json, and refuses what is wrong."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twinbench_reports.documents.arithmetic import recompute
from twinbench_reports.errors import ReportError
from twinbench_reports.load import parse_json, read_bytes

VERDICTS = ("ok", "roughly", "wrong", "inconsistent", "infeasible", "unproven")
# One way of measuring a claim. Without a name it is of the component that the claim stands with.
MEASURE = re.compile(r"(?P<kind>speedup|modelled|proof (?P<counter>\w+(?:\.\w+)*))(?: of (?P<component>\w+\.\w+))?"
                     r"|scenario of (?P<scenario>\w+ \w+)|arithmetic: (?P<arithmetic>.+)|nothing: (?P<reason>.+)")
_TEXTS = ("row", "document", "place", "text", "figure", "recomputed", "verdict", "instead")


@dataclass(frozen=True)
class Claim:
    """One row of the claims ledger."""

    row: str  # trainer2 7
    component: str  # the one it stands with, or empty
    scenario: str  # or the scenario, by its source: energy_flow SC21
    document: str
    place: str
    text: str
    figure: str
    ratio: float | None
    recomputed: str
    verdict: str
    instead: str  # what is measured instead
    measures: tuple[str, ...]

    @property
    def word(self) -> str:
        """The verdict without its reason."""
        return self.verdict.partition(":")[0]

    @property
    def order(self) -> tuple[str, int]:
        pipeline, number = self.row.split(" ")
        return pipeline, int(number)


@dataclass(frozen=True)
class Documents:
    """The components and scenarios that are documented, how the documents' items map to them, and every claim."""

    components: list[dict[str, Any]]
    scenarios: list[dict[str, Any]]
    trace: list[dict[str, Any]]
    claims: list[Claim]
    built: frozenset[str]  # ids of the components that the tree has
    built_scenarios: frozenset[str]  # sources of its scenario files: energy_flow SC21

    def whole(self, component: str) -> str:
        """The component that stands alone of which this one is a part, or itself."""
        return next((row["part_of"] for row in self.components if row["component"] == component and "part_of" in row),
                    component)

    def scenario_name(self, source: str) -> str:
        return next((row["name"] for row in self.scenarios if row["source"] == source), "")


def tree() -> Path | None:
    """The source tree or bundle that this package lies in."""
    root = Path(__file__).resolve().parents[3]
    return root if (root / "ci/documented.json").is_file() else None


def load_documents(root: Path) -> Documents:
    """All of it. A claim stands with its component in spec.json once that is built, before that in documented.json."""
    file = root / "ci/documented.json"
    data = _parsed(file)
    for key in ("components", "scenarios", "trace", "claims"):
        if not isinstance(data, dict) or not isinstance(data.get(key), list):
            raise ReportError(f"it has no list {key!r}", file=str(file), remedy="give the root of a source tree")
    claims = [_claim(row, str(file), row.get("component", ""), row.get("scenario", "")) for row in data["claims"]]
    built = set()
    for spec in sorted(root.glob("src/*/*/spec.json")):
        component = f"{spec.parent.parent.name}.{spec.parent.name}"
        built.add(component)
        claims += [_claim(row, str(spec), component, "") for row in _parsed(spec).get("claims", []) if "row" in row]
    claims.sort(key=lambda claim: claim.order)
    for one, other in zip(claims, claims[1:]):
        if one.row == other.row:
            raise ReportError(f"the claim {one.row!r} is there twice", file=str(file),
                              remedy="keep the one in the spec.json of its component")
    scenarios = {found[1] for file in sorted(root.glob("scenarios/*/*.yaml"))
                 if (found := re.search(r"^source: *(\w+ \w+) *$", file.read_text(encoding="utf-8"), re.M))}
    return Documents(data["components"], data["scenarios"], data["trace"], claims, frozenset(built),
                     frozenset(scenarios))


def _parsed(file: Path) -> Any:
    return parse_json(read_bytes(file), str(file))


def _claim(row: dict[str, Any], file: str, component: str, scenario: str) -> Claim:
    def refuse(what: str, remedy: str) -> None:
        raise ReportError(what, file=file, path=f"claims: {row.get('row')}", remedy=remedy)

    for key in _TEXTS:
        if not isinstance(row.get(key), str) or not (row[key] or key == "figure"):
            refuse(f"it has no text {key!r}", f"a row of the ledger has {', '.join(_TEXTS)} and measures")
    if not re.fullmatch(r"\w+ \d+", row["row"]):
        refuse(f"{row['row']!r} is no row", "write the pipeline and the number of the row: 'trainer2 7'")
    if bool(component) == bool(scenario):
        refuse("it stands with no component and no scenario, or with both", "give one of the two")
    if row["verdict"].partition(":")[0] not in VERDICTS:
        refuse(f"the verdict {row['verdict']!r} begins with no known word", f"begin with one of {', '.join(VERDICTS)}")
    measures = row.get("measures")
    if not isinstance(measures, list) or not measures:
        refuse("nothing says what measures it", "give measures; 'nothing: why' where nothing does")
    for measure in measures:
        found = MEASURE.fullmatch(measure) if isinstance(measure, str) else None
        if not found:
            refuse(f"{measure!r} is no way to measure", "see MEASURE in reports/twinbench_reports/documents/load.py")
        if found["kind"] and not (component or found["component"]):
            refuse(f"{measure!r} names no component", "add 'of <component>'")
        if found["arithmetic"]:
            recompute(found["arithmetic"])
    return Claim(component=component, scenario=scenario, ratio=row.get("ratio"), measures=tuple(measures),
                 **{key: row[key] for key in _TEXTS})
