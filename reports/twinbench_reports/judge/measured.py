"""What every judged cell of parity must show: the comparison with the oracle and the checks that each cell has. A skip
counts only with a reason that a check gives (harness/parity); without them nothing was measured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from twinbench_reports.cells import Cell, Row, parse_cell
from twinbench_reports.judge.findings import Finding
from twinbench_reports.judge.reproduce import reproduce_cell

# Checks that check_cell adds to every cell, of baselines those that parity_options leaves.
OF_EVERY = ("determinism", "input_mutation", "late", "global_state", "outlives")
OF_CANDIDATES = ("oracle", *OF_EVERY, "guard_bands", "non_contiguous", "threads", "instances")
# And where the case is not degenerate.
_WITH_CONTENTS = {"baseline": ("sensitivity", "precision"), "optimized": ("vacuity", "stale", "sensitivity")}
OF_BATCHES = ("batch_invariance", "poisoned_neighbour")  # of candidates, in a case of several items
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")  # ci/gpu_suite adds what they said of a cell
_LIBRARY_LIMIT = "LibTorch's own way on a card: "
ORACLE_SKIPS = (_LIBRARY_LIMIT, "close decisions move sums over items far: ")
SKIPS = (
    "large case: the smaller ones show this", "not this case's turn", "no run has the bits of another: ",
    "no floating input belongs to single items", "refuses NaN: ", "refuses strided inputs: ", "input '",
    "another seed gives the same inputs", "with other inputs: ", "with every input changed: ",
    "looked at once a pass, in the first small case", "only fp32 has a next lower precision",
    "no output is compared within a tolerance", "bf16 has all of its ", "states are stored in bf16",
    "the component declares no cost", "the case's inputs lie on a kink by design", "custom gradient: ",
    "a device's kernels do not use the host's threads", "the case is itself the other setting of every relation",
    "no worked example is given in ", "no draw of ", "an output is not finite with these inputs: ")


def judge_measured(block: dict[str, Any]) -> Iterator[Finding]:
    """Findings for cells that passed without having been compared, and for rows of one case that compared different
    numbers of elements. Cells that fail or crash say so themselves."""
    cells: dict[str, list[Row]] = {}
    for row in block["parity"]:
        cells.setdefault(row["cell"], []).append(row)
    components = {component["id"]: component for component in block["components"]}
    for name, rows in cells.items():
        if any(row["check"] == "left_out" for row in rows):
            rows = [row for row in rows if row["check"] not in TOOLS]
        verdicts = {row["verdict"] for row in rows}
        if "pass" in verdicts and not verdicts & {"fail", "error"}:
            yield from _cell(name, rows, components)
    yield from _elements(block["parity"])


def _cell(name: str, rows: list[Row], components: dict[str, Row]) -> Iterator[Finding]:
    command = reproduce_cell("parity", name)
    present = {row["check"] for row in rows}
    cell = parse_cell(name)
    is_library_on_card = (cell.variant, cell.device) == ("library", "cuda")
    of_oracle = tuple(skip for skip in ORACLE_SKIPS if is_library_on_card or skip != _LIBRARY_LIMIT)
    for row in rows:
        known = of_oracle if row["check"] == "oracle" else SKIPS
        if row["verdict"] != "skip" or row["check"] in TOOLS:
            continue
        if row["reason"] and not row["reason"].startswith(known):
            yield Finding("inconclusive", "parity", f"{name} [{row['check']}]",
                          f"skipped for a reason that no check gives: {row['reason']}", command)
    if is_library_on_card and any(
            row["check"] == "oracle" and row["reason"].startswith(_LIBRARY_LIMIT) for row in rows):
        return  # its answer is another than the specified one: it is only timed
    absent = [check for check in demanded(cell, components.get(cell.component)) if check not in present]
    if absent and present != {"specimen"}:  # a documented mistake is shown once, and nothing else holds of it
        yield Finding("missing", "parity", name, f"passed without {', '.join(absent)}: what they show was not measured",
                      command)


def demanded(cell: Cell, component: Row | None) -> list[str]:
    """The checks that a cell had to have. Of a held-out case only what all cases of the component have is known. Older
    records do not say what a component declares, nor how many items a case has."""
    is_baseline = cell.variant == "baseline"
    found = list(OF_EVERY if is_baseline else OF_CANDIDATES)
    if not component:
        return found
    declared = component.get("checks", ())
    by_hand = (cell.variant, cell.device) == ("baseline", "cpu")  # derivatives and costs need no card
    of_all = ("relation",) if is_baseline else ("relation", "carried")
    found += [check for check in of_all if check in declared]
    case = next((case for case in component["cases"] if case["name"] == cell.case), None)
    if not case:
        return found
    if not case["degenerate"]:
        found += _WITH_CONTENTS["baseline" if is_baseline else "optimized"] + (("cost",) if by_hand else ())
    if case["pass"] == "backward" and by_hand:
        found.append("gradient")
    if case.get("items", 0) > 1 and not is_baseline:
        found += OF_BATCHES
    if case["pass"] == "forward" and "invariant" in declared:
        found.append("invariant")
    if case is component["cases"][0]:  # for what is shown once of a component
        once = ("golden", "refusal") if cell.dtype == component["dtypes"][0] else ("golden",)
        found += [check for check in once if check in declared]
    return found


def _elements(rows: list[Row]) -> Iterator[Finding]:
    """All variants of a case compute the same outputs of the same inputs."""
    first: dict[tuple[str, ...], tuple[str, int]] = {}
    for row in rows:
        cell = parse_cell(row["cell"])
        for output in row["outputs"] if row["verdict"] == "pass" else ():
            key = (cell.component, *cell[2:], row["check"], str(row["seed"]), output["name"])
            other, elements = first.setdefault(key, (row["cell"], output["elements"]))
            if output["elements"] != elements:
                yield Finding("fail", "parity", f"{row['cell']} [{row['check']}]",
                              f"says pass, but {output['elements']:,} elements of {output['name']} were compared, and "
                              f"{elements:,} in {other}", reproduce_cell("parity", row["cell"]))


def judge_outputs_against(block: dict[str, Any], before: dict[str, Any]) -> Iterator[Finding]:
    """Findings for outputs judged by another class or over another number of elements than in the baseline record,
    where the case is the same."""
    sizes, earlier = _cases(block), _cases(before)
    old_rows = {(row["cell"], row["check"]): row for row in before["parity"]}
    for row in block["parity"]:
        old = old_rows.get((row["cell"], row["check"]))
        if old is None or "skip" in (row["verdict"], old["verdict"]):
            continue
        cell = parse_cell(row["cell"])
        case = (cell.component, cell.case)
        same = old["seed"] == row["seed"] and case in sizes and sizes[case] == earlier.get(case)
        outputs = {output["name"]: output for output in old["outputs"]}
        for output in row["outputs"]:
            was = outputs.get(output["name"], output)
            name, command = f"{row['cell']} [{row['check']}]", reproduce_cell("parity", row["cell"])
            if output["tolerance_class"] != was["tolerance_class"]:
                yield Finding("fail", "parity", name, f"the tolerance_class of {output['name']} is "
                              f"{output['tolerance_class']!r}, and {was['tolerance_class']!r} in the baseline record: "
                              "renew that on purpose", command)
            elif same and output["elements"] != was["elements"]:
                yield Finding("fail", "parity", name, f"{output['elements']:,} elements of {output['name']} were "
                              f"compared, and {was['elements']:,} in the baseline record, of the same case", command)


def _cases(block: dict[str, Any]) -> dict[tuple[str, str], Any]:
    return {(component["id"], case["name"]): (case["sizes"], case["options"])
            for component in block["components"] for case in component["cases"]}
