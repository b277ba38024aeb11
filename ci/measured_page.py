#!/usr/bin/env python3
"""Writes the tables of reports/measured.md from the records of real cards in reports/records/: times, the model held
against them, answers, sanitizers, counts, scenarios. Of several records of a thing the latest holds. --check: exit 1
where the page says something else.

Text outside the tables is the page's own. Exit 0 written or equal, 1 other, 2 usage or tool error.
"""
import argparse
import json
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "reports"), str(ROOT / "ci")]

from pages import table  # noqa: E402
from twinbench_reports.errors import ReportError  # noqa: E402
from twinbench_reports.load import load_record  # noqa: E402

PAGE = ROOT / "reports/measured.md"
RECORDS = ROOT / "reports/records"
MARK = re.compile(r"<!-- (\w+) -->\n.*?<!-- end -->", re.DOTALL)
Block = dict[str, Any]


def micro(seconds: float | None) -> str:
    return "–" if seconds is None else f"{1e6 * seconds:.3g}"


def ratio(row: Block | None) -> str:
    if not row or row["ratio"] is None:
        return "–"
    if row["lower"] is None:
        return f"({row['ratio']:.3g}, n={row['n']})"
    text = f"{row['ratio']:.3g} [{row['lower']:.3g}, {row['upper']:.3g}], n={row['n']}"
    return text if row["verdict"] in ("faster", "slower") else f"({text})"


def ceilings(times: Block) -> list[str]:
    rows = [[row["name"], f"{row['value']:.3g} {row['unit']}",
             f"{row['data_sheet']:.3g}" if row["data_sheet"] else "–", row["method"]] for row in times["ceilings"]
            if row["device"] == "cuda"]
    return table(["what", "measured", "data sheet", "how"], rows)


def speedups(times: Block) -> list[str]:
    cells = {row["cell"]: row for row in times["timings"]}
    found = {(row["component"], row["dtype"], row["case"], row["from"]): row for row in times["speedups"]}
    rows = []
    for cell, row in cells.items():
        component, variant, device, dtype, case = cell.split("/")
        if variant != "optimized" or row["median_s"] is None:
            continue
        of = [cells.get(f"{component}/{other}/{device}/{dtype}/{case}", {}).get("median_s")
              for other in ("baseline", "library")]
        rows.append([f"{component} {dtype} {case}", *map(micro, of), micro(row["median_s"]),
                     *(ratio(found.get((component, dtype, case, other))) for other in ("baseline", "library"))])
    return table(["twin", "baseline, µs", "library, µs", "optimized, µs", "over baseline", "over library"], rows)


def model(times: Block, modelled: Block) -> list[str]:
    expected = {row["cell"].replace("/simt/", "/cuda/"): row for row in modelled["modelled"]
                if times["session"]["device"]["name"] in row["device_names"]}
    rows = []
    for row in times["timings"]:
        busy = (row.get("in_place") or {}).get("busy_s")
        if row["cell"] in expected and busy:
            own = expected[row["cell"]]
            component, _, _, dtype, case = row["cell"].split("/")
            rows.append((busy / own["seconds"], [f"{component} {dtype} {case}", micro(busy), micro(own["seconds"]),
                                                 f"{busy / own['seconds']:.2f}", micro(own["floor_s"]),
                                                 own["limiter"].replace("energy_flow::", "")]))
    rows.sort(key=lambda one: -one[0])
    return table(["optimized cell", "kernels, measured, µs", "*modelled*, µs", "measured / modelled", "*floor*, µs",
                  "limited by, by the model"], [row for _, row in rows])


def answers(records: list[Block]) -> list[str]:
    """A cell's checks are those of the last call that judged it: a program that was mended is judged anew."""
    of_cell: dict[str, Block] = {}
    for record in records:
        judged: dict[str, Counter[str]] = defaultdict(Counter)
        for row in record["parity"]:
            if row["check"] != "left_out":
                judged[row["cell"]][row["verdict"]] += 1
        of_cell |= judged
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for cell, verdicts in of_cell.items():
        component, variant = cell.split("/")[:2]
        counts[component].update({f"{variant} {verdict}": count for verdict, count in verdicts.items()})
        counts[component][f"{variant} cells"] += 1
    rows = []
    for name, count in sorted(counts.items()):
        row = [name]
        for variant in ("optimized", "library", "baseline"):
            bad = count[f"{variant} fail"] + count[f"{variant} error"]
            row += [f"{count[f'{variant} pass']} in {count[f'{variant} cells']}" if count[f"{variant} cells"] else "–",
                    str(bad) if count[f"{variant} cells"] else "–"]
        rows.append(row)
    return table(["component", "optimized: checks passed, in cells", "not passed", "library", "not passed", "baseline",
                  "not passed"], rows)


def sanitizers(checked: Block) -> list[str]:
    tools = ("memcheck", "racecheck", "initcheck", "synccheck")
    components = sorted({name.split()[0] for name in checked["sanitizers"]})
    rows = []
    for component in components:
        found = [checked["sanitizers"].get(f"{component} {tool}") for tool in tools]
        rows.append([component, *(one["verdict"] if one else "–" for one in found)])
    return table(["component", *tools], rows)


def counted(checked: Block) -> list[str]:
    rows = []
    for component, launches in sorted(checked["launches"].items()):
        sectors = checked["sectors"].get(component)
        fewer = "–"
        if sectors:
            fewer = "; ".join(f"{kernel.split('::')[-1]} {what} {card} of {host}"
                              for kernel, what, card, host in sectors["differ"]) or "none"
        rows.append([component, str(launches["compared"]), str(len(launches["other"])),
                     str(sectors["compared"]) if sectors else "–", fewer])
    return table(["component", "cells whose launches are held against simt's", "other", "sums of sectors",
                  "fewer on the card"], rows)


def scenarios(record: Block) -> list[str]:
    rows = []
    for one in record["scenarios"]:
        told = "; ".join(f"{row['name']}: {row['measured']:.4g}{' FAIL' if row['verdict'] == 'fail' else ''}"
                         for row in one["criteria"] if row["measured"] is not None)
        rows.append([one["name"], one["verdict"], told])
    return table(["scenario", "verdict", "measured"], rows)


def bits(found: Block) -> list[str]:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for cell, text in found["cells"].items():
        counts[cell.split("/")[3]][text.split(" ")[0]] += 1
    rows = [[dtype, *(str(count[kind]) for kind in ("same_bits", "close", "different"))]
            for dtype, count in sorted(counts.items())]
    return table(["dtype", "same bits", "within tolerance", "outside of it"], rows)


def all_of(pattern: str) -> list[Path]:
    found = sorted(RECORDS.glob(pattern))
    if not found:
        raise ReportError("no such record", file=f"reports/records/{pattern}", remedy="run ci/gpu_suite on a card")
    return found


def records_of(what: str) -> list[Block]:
    """The blocks of all such records, the latest last."""
    blocks = [load_record(path).block for path in all_of(f"h200/*_{what}_*.json.gz")]
    return sorted(blocks, key=lambda block: block["provenance"]["utc"])


def together(records: list[Block]) -> Block:
    """One block in which a twin's times are those of the last record that has them."""
    block = dict(records[-1])
    timings = {row["cell"]: row for record in records for row in record["timings"]}
    speedups = {(row["component"], row["dtype"], row["case"], row["from"]): row
                for record in records for row in record["speedups"]}
    return {**block, "timings": list(timings.values()), "speedups": list(speedups.values())}


def tables() -> dict[str, list[str]]:
    times = together(records_of("times"))
    of_bits, checked = (json.loads(all_of(f"h200/*_{what}_*.json")[-1].read_text()) for what in ("bits", "checked"))
    modelled = {"modelled": [row for record in records_of("modelled") for row in record["modelled"]]}
    return {"ceilings": ceilings(times), "speedups": speedups(times), "model": model(times, modelled),
            "answers": answers(records_of("parity")), "bits": bits(of_bits), "sanitizers": sanitizers(checked),
            "counted": counted(checked), "scenarios": scenarios(records_of("scenarios")[-1])}


def filled(text: str, made: dict[str, list[str]]) -> str:
    """The page with these tables in the places of its own."""
    places = MARK.findall(text)
    if sorted(places) != sorted(made):
        raise ReportError(f"it has places for {sorted(places)}, not for {sorted(made)}", file="reports/measured.md",
                          remedy="<!-- NAME --> and <!-- end --> stand around each table")
    return MARK.sub(lambda place: "\n".join([f"<!-- {place[1]} -->", *made[place[1]], "<!-- end -->"]), text)


def main() -> int:
    parser = argparse.ArgumentParser(prog="ci/measured_page.py", description=__doc__, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    try:
        before = PAGE.read_text()
        now = filled(before, tables())
    except (OSError, ReportError) as error:
        print(f"ci/measured_page.py: {error}", file=sys.stderr)
        return 2
    if check:
        if before != now:
            print("reports/measured.md is not what the records give; run ci/measured_page.py", file=sys.stderr)
        return int(before != now)
    PAGE.write_text(now)
    return 0


if __name__ == "__main__":
    sys.exit(main())
