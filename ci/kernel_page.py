#!/usr/bin/env python3
"""The page of the CUDA path without a card, reports/kernels.md: parity on simt, every kernel's accesses as first pinned
and now, modelled times beside floors, planted bugs, machine code beside hand-written, and what only a card will tell.

usage: ci/kernel_page.py [--parity RECORD ...] [--machine-code FILE] [--launches FILE] [--write FILE]
RECORD: of `twinbench parity --device simt --out RECORD`; --machine-code: what
harness/simt/compare_with_hand_written.py printed; --launches: what `twinbench kernels --timed --json` printed.
The rest comes from ci/kernel_counts.json with its history in git, and from ci/kernel_proofs.json."""
import argparse
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "ci"))

from pages import give, table  # noqa: E402

PINS = "ci/kernel_counts.json"
CARDS = ("H200", "RTX 5090")
Cells = dict[str, dict[str, Any]]


def git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def first_pins() -> Iterator[Cells]:
    """The cells of every version of the pins, the oldest first."""
    for revision in git("log", "--reverse", "--format=%H", "--", PINS).split():
        yield json.loads(git("show", f"{revision}:{PINS}"))["cells"]


def kernels_of(cells: Cells) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for cell, rows in cells.items():
        for name in rows:
            if "::" in name:
                found.setdefault(name, []).append(cell)
    return found


def requests(row: dict[str, Any]) -> int:
    return sum(row.get(kind, {}).get("requests", 0) for kind in ("loads", "stores", "shared"))


def as_first_pinned(versions: Iterable[Cells], now: Cells) -> dict[str, tuple[str, dict[str, Any], dict[str, Any]]]:
    """Kernel -> its cell with the most accesses among those that its first pins hold too, counts then, counts now."""
    kernels, found = kernels_of(now), {}
    for then in versions:
        for name, cells in kernels.items():
            common = [cell for cell in cells if name in then.get(cell, {})]
            if name in found or not common:
                continue
            cell = max(common, key=lambda one: requests(now[one][name]))
            found[name] = (cell, then[cell][name], now[cell][name])
    for name, cells in kernels.items():  # of a version that is not committed yet
        cell = max(cells, key=lambda one: requests(now[one][name]))
        found.setdefault(name, (cell, now[cell][name], now[cell][name]))
    return found


def factor(row: dict[str, Any], kind: str) -> str:
    counted, unit = row.get(kind), "wavefronts" if kind == "shared" else "sectors"
    return f"{counted[unit] / counted['ideal']:.2f}" if counted and counted.get("ideal") else "-"


def lanes(row: dict[str, Any]) -> str:
    both = [row[kind] for kind in ("loads", "stores") if kind in row]
    asked = sum(kind["requests"] for kind in both)
    return f"{sum(kind['lanes'] for kind in both) / asked:.0f}" if asked else "-"


def change(then: str, now: str) -> str:
    return now if then == now else f"{then} -> {now}"


def counted(versions: Iterable[Cells], now: Cells) -> list[str]:
    rows = []
    for name, (cell, before, after) in sorted(as_first_pinned(versions, now).items()):
        both = [change(factor(before, kind), factor(after, kind)) for kind in ("loads", "stores", "shared")]
        rows.append([f"`{name}`", cell.replace("/optimized/simt", ""), *both, change(lanes(before), lanes(after))])
    return table(["kernel", "cell", "loads", "stores", "shared", "lanes"], rows)


def modelled(now: Cells) -> list[str]:
    """Of each component, dtype and pass the cell with the longest floor: the documents' sizes."""
    largest: dict[tuple[str, str, str], tuple[float, str]] = {}
    for cell, rows in now.items():
        pin = rows.get(f"modelled {CARDS[0]}", {})
        if "microseconds" not in pin:
            continue
        component, _, _, dtype, case = cell.split("/")
        floor = float(pin["microseconds"]) * float(pin["floor_share"])
        group = (component, dtype, "backward" if case.startswith("backward") else "forward")
        largest[group] = max(largest.get(group, (-1.0, "")), (floor, cell))
    lines = []
    for _, cell in sorted(largest.values(), key=lambda one: one[1]):
        for card in CARDS:
            pin = now[cell].get(f"modelled {card}", {})
            if "microseconds" not in pin:
                continue
            time, share = float(pin["microseconds"]), float(pin["floor_share"])
            lines.append([cell.replace("/optimized/simt", ""), card, f"{time * share:.2f}", f"{time:.2f}",
                          f"{100 * share:.0f} %", pin["limiter"]])
    return table(["cell", "card", "floor us", "modelled us", "floor / modelled", "limited by"], lines)


def asked(figures: list[dict[str, Any]], now: Cells) -> list[str]:
    """The figures that were asked of a cell's floor over its modelled time, and why one is missed."""
    lines = []
    for one in figures:
        shares = [float(now[one["cell"]][f"modelled {card}"]["floor_share"]) for card in CARDS]
        missed = [card for card, share in zip(CARDS, shares) if round(share, 2) < one["at_least"]]
        why = one["why"] if missed else "-"
        lines.append([one["what"], one["cell"].replace("/optimized/simt", ""), f"{100 * one['at_least']:.0f} %",
                      *(f"{100 * share:.0f} %" for share in shares), ", ".join(missed) or "none", why])
    return table(["figure", "cell", "asked", *CARDS, "missed on", "why"], lines)


STREAMS = 0.5  # share of a launch's time from which on it is its bytes that take it
ASKED_OF_STREAMS = 0.85


def streams(cells: list[dict[str, Any]], why: dict[str, str]) -> list[str]:
    """Of each kernel that streams, the launch with the most bytes: what moving them takes, over its modelled time."""
    found: dict[str, dict[str, tuple[float, float, str, str]]] = {}
    for cell in cells:
        for time in cell.get("modelled", []):
            for part in time.get("parts", []):
                moving = part["terms_microseconds"].get("memory bandwidth", 0)
                best = found.setdefault(part["name"], {})
                if "::" in part["name"] and moving > best.get(time["card"], (0,))[0]:
                    best[time["card"]] = (moving, part["microseconds"], part["limiter"], cell["cell"])
    lines = []
    for kernel, cards in sorted(found.items()):
        shares = [cards[card][0] / cards[card][1] for card in CARDS if card in cards]
        if len(shares) < len(CARDS) or max(shares) < STREAMS:
            continue
        least = min(range(len(CARDS)), key=lambda at: shares[at])
        missed = round(shares[least], 2) < ASKED_OF_STREAMS
        lines.append([f"`{kernel}`", cards[CARDS[0]][3].replace("/optimized/simt", ""),
                      *(f"{100 * share:.0f} %" for share in shares), cards[CARDS[least]][2],
                      why.get(kernel, "no reason written") if missed else "-"])
    return table(["kernel", "cell", *CARDS, "limited by", f"why below {100 * ASKED_OF_STREAMS:.0f} %"], lines)


def parity(blocks: list[dict[str, Any]]) -> list[str]:
    """A line a component and dtype: how many checks passed, and the largest error as a share of the allowed one."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for block in blocks:
        for row in block["parity"]:
            component, _, device, dtype, _ = row["cell"].split("/", 4)
            if device == "simt":
                groups.setdefault((component, dtype), []).append(row)
    lines = []
    for (component, dtype), rows in sorted(groups.items()):
        verdicts = Counter(row["verdict"] for row in rows)
        ratios = [output["worst_ratio"] for row in rows for output in row["outputs"] if output["worst_ratio"]]
        cells = len({row["cell"] for row in rows})
        others = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items()) if verdict != "pass")
        lines.append([component, dtype, str(cells), str(verdicts["pass"]), others or "-",
                      f"{max(ratios):.2f}" if ratios else "-"])
    return table(["component", "dtype", "cells", "checks passed", "others", "worst error / allowed"], lines)


def reasons(rows: list[dict[str, Any]]) -> list[str]:
    counts = Counter((row["bound"], row["kernel"].rsplit("::", 1)[0]) for row in rows)
    bounds = sorted({bound for bound, _ in counts})
    return table(["kernels of", *bounds], [[where, *(str(counts[bound, where] or "") for bound in bounds)]
                                           for where in sorted({where for _, where in counts})])


def held(proofs: list[dict[str, Any]], what: str, by: str) -> list[str]:
    return table([what, by], [[one[what], ", ".join(f"`{name}`" for name in one["by"])] for one in proofs])


def page(pins: dict[str, Any], versions: Iterable[Cells], proofs: dict[str, Any], parity_blocks: list[dict[str, Any]],
         machine_code: str, revision: str, launches: list[dict[str, Any]]) -> str:
    lines = [
        "# The CUDA path without a card", "",
        f"`ci/kernel_page.py` writes this page (revision {revision}). No GPU took part: kernels ran on the host (on",
        "device `simt`), accesses are counted exactly; **every time here is modelled**, about 40 % to either side.", ""]
    if parity_blocks:
        took = sum(row["seconds"] or 0 for block in parity_blocks for row in block["parity"])
        lines += [
            "## Parity on simt", "",
            "Adapters, launches and kernels of the CUDA path against the oracle; forward, reverse and shuffled",
            f"thread order take turns. The checks' own times add up to {took:.0f} s.", "", *parity(parity_blocks)]
    lines += [
        "## Counted accesses, as first pinned and now", "",
        "32-byte sectors (loads, stores) and wavefronts (shared memory) over the fewest that would do; active lanes of",
        "32. One cell a kernel: of those that its first pins hold, the one with the most accesses.", "",
        *counted(versions, pins["cells"]),
        "Bounds (1.1 sectors, 1.25 wavefronts, 24 lanes, a block a multiprocessor) hold for every kernel at the",
        f"documents' sizes, or a reason is written beside the pin: {len(pins['reasons'])} lines, by bound:", "",
        *reasons(pins["reasons"]),
        "## Modelled times", "",
        "Of each component, dtype and pass the cell with the most to do. The limiter is its longest launch's.", "",
        *modelled(pins["cells"]),
        "### Figures that were asked", "", *asked(proofs["figures"], pins["cells"])]
    if launches:
        lines += [
            "### Kernels that stream", "",
            "Of each kernel whose bytes take half of its time or more, on either card, the launch with the most bytes:",
            f"the share of copy bandwidth it reaches; asked are {100 * ASKED_OF_STREAMS:.0f} %.", "",
            *streams(launches, proofs["streams"])]
    lines += [
        "## Planted bugs", "", *held(proofs["planted"], "bug", "caught by"),
        "## What only a GPU would show, tried on the host", "", *held(proofs["mended_by_reading"], "what", "held by")]
    found = re.findall(r"^(sm_\d+) +(\w+) +(resources|SASS instructions) +(\w+): (.*)$", machine_code, re.MULTILINE)
    if found:
        lines += ["## Machine code beside the hand-written form", "",
                  *table(["architecture", "kernel", "what", "", "ours"], [list(row) for row in found])]
    lines += ["## Unknown until more of a card is there", "", *(f"- {one}" for one in proofs["unknown"])]
    return "\n".join(lines).rstrip() + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parity", type=Path, nargs="*", default=[])
    parser.add_argument("--machine-code", type=Path)
    parser.add_argument("--launches", type=Path)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    text = page(json.loads((ROOT / PINS).read_text()), first_pins(),
                json.loads((ROOT / "ci/kernel_proofs.json").read_text()),
                [json.loads(record.read_text())["twinbench"] for record in options.parity],
                options.machine_code.read_text() if options.machine_code else "",
                git("rev-parse", "--short=12", "HEAD").strip(),
                json.loads(options.launches.read_text())["cells"] if options.launches else [])
    give(text, options.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
