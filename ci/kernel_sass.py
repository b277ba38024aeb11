#!/usr/bin/env python3
"""What the kernels' machine code does, for the model of their times: instructions by kind, loads in flight of one warp,
and by piece that is executed as a whole, beside the source lines that say how often (kernel_pieces.py).

Reads the machine code of the CUDA build's kernels (kernel_compile.py) with cuobjdump and nvdisasm beside it (the torch
wheel's Triton has both). Compares with ci/kernel_sass.json; --pin writes the file anew.
Needs no GPU. Exit 0 equal, 1 changed, 2 usage or tool error, 3 another compiler than the pinned one.
"""
import argparse
import json
import re
import sys
from pathlib import Path

import kernel_budgets
import kernel_compile
import kernel_listing
import kernel_pieces
from kernel_listing import KINDS, Instruction, by_kind

ROOT = kernel_budgets.ROOT
PINS = ROOT / "ci" / "kernel_sass.json"
REGISTER = re.compile(r"\bR(\d+)\b")
ENDS_BLOCK = ("BRA", "EXIT", "RET", "BRX", "JMP", "BSYNC", "CALL", "WARPSYNC", "BAR")


def width_of(operation: str) -> int:
    """Registers that a load fills."""
    return 4 if ".128" in operation else 2 if ".64" in operation else 1


def loads_in_flight(code: list[Instruction]) -> float:
    """How many global loads a warp issues, on average over the code as it stands, before it waits for one of them."""
    jumped_to = {label for row in code if row.base == "BRA" for label in row.targets}
    waited_for, loads, waits, open_loads = set(), 0, 0, 0
    for row in code:
        first, _, rest = row.operands.partition(",")
        is_store = row.base in ("STG", "ST", "STS", "RED", "REDG")
        needed = {int(number) for number in REGISTER.findall(row.operands if is_store else rest)}
        if open_loads and (needed & waited_for or row.base in ENDS_BLOCK or jumped_to & set(row.labels)):
            waited_for, open_loads, waits = set(), 0, waits + 1
        # Constant loads are those of the slow path of sine and cosine, from a table of their own.
        is_load = row.base in KINDS["global_loads"] and ".CONSTANT" not in row.operation
        if is_load and (target := REGISTER.search(first)):
            start = int(target.group(1))
            waited_for |= set(range(start, start + width_of(row.operation)))
            loads, open_loads = loads + 1, open_loads + 1
    return round(loads / max(1, waits + (open_loads > 0)), 1)


def copies_in_flight(code: list[Instruction]) -> float:
    """Asynchronous copies that a warp has under way: those of a group, times the groups a wait leaves and one."""
    bases = [row.base for row in code]
    left = [int(row.operands.split(",")[1], 16) for row in code
            if row.base == "DEPBAR" and row.operands.startswith("SB0")]
    return round(bases.count("LDGSTS") / max(1, bases.count("LDGDEPBAR")) * (1 + max(left, default=0)), 1)


def figures(code: list[Instruction]) -> dict[str, object]:
    found: dict[str, object] = by_kind(code)
    found["loads_in_flight"] = loads_in_flight(code)
    if "asynchronous_copies" in found:
        found["copies_in_flight"] = copies_in_flight(code)
    return {**found, "pieces": kernel_pieces.pieces_of(code)}


def parse(listing: str) -> dict[str, dict[str, object]]:
    """Mangled kernel name -> figures, from what nvdisasm -gi prints."""
    return {name: figures(code) for name, code in kernel_listing.parse(listing).items()}


def measure(build: Path | None) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, dict]] = {}
    for compiled in kernel_compile.kernels(build).values():
        for architecture in kernel_compile.ARCHITECTURES:
            for name, values in parse(compiled.machine_code(architecture)).items():
                found.setdefault(name, {})[architecture] = values
    names = kernel_budgets.readable(list(found))
    return {names[name]: kernel_pieces.with_numbered_places(values, ROOT) for name, values in sorted(found.items())}


def without_lines(row: dict | None) -> dict:
    """A kernel's figures without the numbers of lines, which move."""
    row = row or {}
    places = [[value for value in place if not isinstance(value, int)] for place in row.get("places", [])]
    return row | {"places": places}


def without_pieces(row: dict | None) -> dict:
    return {key: {name: value for name, value in values.items() if name != "pieces"}
            for key, values in (row or {}).items() if key != "places"}


def run(options: argparse.Namespace) -> int:
    compiler = kernel_budgets.compiler_version(kernel_budgets.find_nvcc())
    measured = measure(options.build)
    if options.pin:
        rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(values, separators=(',', ':'))}"
                          for name, values in sorted(measured.items()))
        text = f'{{\n "compiler": "{compiler}",\n "kernels": {{\n{rows}\n }}\n}}\n'
        kernel_budgets.write_file(options.pins, text)
        print(f"pinned {len(measured)} kernels in {options.pins}")
        return 0
    pinned = kernel_budgets.read_pins(options.pins)
    if compiler != pinned["compiler"]:
        print(f"compiled by nvcc {compiler}, pinned with {pinned['compiler']}: not comparable")
        return 3
    pins = pinned["kernels"]
    changed = [name for name in sorted(measured.keys() | pins.keys())
               if without_lines(measured.get(name)) != without_lines(pins.get(name))]
    for name in changed:
        old, new = without_pieces(pins.get(name)), without_pieces(measured.get(name))
        print(f"CHANGED: {name}: {f'{old} -> {new}' if old != new else 'its pieces, or their places'}; --pin keeps it")
    print(f"kernel machine code: {len(measured)} kernels, {len(changed)} changed")
    return 1 if changed else 0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pin", action="store_true", help="write what was read as the new pins")
    parser.add_argument("--build", type=Path, metavar="FOLDER", help="of the CUDA build; else build/cuda-compile")
    parser.add_argument("--pins", type=Path, default=PINS, metavar="FILE")
    try:
        return run(parser.parse_args(arguments))
    except (kernel_budgets.ToolError, kernel_budgets.ReportError, kernel_compile.CompileError, OSError,
            ValueError) as error:
        print(f"kernel machine code: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
