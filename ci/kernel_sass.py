#!/usr/bin/env python3
"""What the kernels' machine code does, for the model of their times: instructions by kind, loads in flight of one warp.

Reads the machine code of the CUDA build's kernels (kernel_compile.py) with cuobjdump (nvdisasm beside it; the torch
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

ROOT = kernel_budgets.ROOT
PINS = ROOT / "ci" / "kernel_sass.json"
FUNCTION = re.compile(r"^\s*Function : (\S+)")
INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)\s*([^;]*);")
SCHEDULING = re.compile(r"\s*\?\w+$")  # sm_120: how long to wait, printed behind the operands
LABEL = re.compile(r"^\s*\.L_")
REGISTER = re.compile(r"\bR(\d+)\b")
ENDS_BLOCK = ("BRA", "EXIT", "RET", "BRX", "JMP", "BSYNC", "CALL", "WARPSYNC", "BAR")
KINDS = {
    "global_loads": ("LDG", "LD"), "global_stores": ("STG", "ST"), "global_atomics": ("ATOMG", "ATOM", "RED", "REDG"),
    "shared": ("LDS", "STS", "LDSM", "ATOMS"), "asynchronous_copies": ("LDGSTS",), "fma": ("FFMA", "FADD", "FMUL"),
    "special": ("MUFU",), "tensor": ("HMMA",), "shuffles": ("SHFL", "VOTE", "REDUX"), "barriers": ("BAR",)
}


def width_of(operation: str) -> int:
    """Registers that a load fills."""
    return 4 if ".128" in operation else 2 if ".64" in operation else 1


def loads_in_flight(instructions: list[tuple[str, str]]) -> float:
    """How many global loads a warp issues, on average, before it waits for one of them."""
    waited_for, loads, waits, open_loads = set(), 0, 0, 0
    for operation, operands in instructions:
        base = operation.split(".")[0]
        first, _, rest = operands.partition(",")
        is_store = base in ("STG", "ST", "STS", "RED", "REDG")
        needed = {int(number) for number in REGISTER.findall(operands if is_store else rest)}
        if open_loads and (needed & waited_for or base in ENDS_BLOCK or base == "LABEL"):
            waited_for, open_loads, waits = set(), 0, waits + 1
        # Constant loads are those of the slow path of sine and cosine, from a table of their own.
        if base in KINDS["global_loads"] and ".CONSTANT" not in operation and (target := REGISTER.search(first)):
            start = int(target.group(1))
            waited_for |= set(range(start, start + width_of(operation)))
            loads, open_loads = loads + 1, open_loads + 1
    return round(loads / max(1, waits + (open_loads > 0)), 1)


def copies_in_flight(instructions: list[tuple[str, str]]) -> float:
    """Asynchronous copies that a warp has under way: those of a group, times the groups a wait leaves and one."""
    bases = [operation.split(".")[0] for operation, _ in instructions]
    left = [int(operands.split(",")[1], 16) for operation, operands in instructions
            if operation.startswith("DEPBAR") and operands.startswith("SB0")]
    return round(bases.count("LDGSTS") / max(1, bases.count("LDGDEPBAR")) * (1 + max(left, default=0)), 1)


def by_kind(instructions: list[tuple[str, str]]) -> dict[str, int]:
    bases = [operation.split(".")[0] for operation, _ in instructions if operation not in ("NOP", "LABEL")]
    counts = {kind: sum(base in names for base in bases) for kind, names in KINDS.items()}
    return {"instructions": len(bases), **{kind: count for kind, count in counts.items() if count}}


def straight_pieces(instructions: list[tuple[str, str]]) -> list[list[tuple[str, str]]]:
    """Code between jumps and their targets: each instruction of a piece is executed as often as any other."""
    pieces: list[list[tuple[str, str]]] = [[]]
    for operation, operands in instructions:
        pieces[-1].append((operation, operands))
        if operation == "LABEL" or operation.split(".")[0] in ("BRA", "EXIT", "RET", "BRX", "JMP", "CALL"):
            pieces.append([])
    return pieces


def figures(instructions: list[tuple[str, str]]) -> dict[str, object]:
    found: dict[str, object] = by_kind(instructions)
    found["loads_in_flight"] = loads_in_flight(instructions)
    if "asynchronous_copies" in found:
        found["copies_in_flight"] = copies_in_flight(instructions)
    pieces = [(piece, by_kind(piece)) for piece in straight_pieces(instructions)]
    for name, kind, without in (("with_products", "tensor", None), ("with_copies", "asynchronous_copies", "tensor")):
        those = [piece for piece, kinds in pieces if kind in kinds and without not in kinds]
        if those:
            found[name] = by_kind([row for piece in those for row in piece])
    return found


def parse(listing: str) -> dict[str, dict[str, int]]:
    """Mangled kernel name -> figures, from what cuobjdump -sass prints. Jumped-to addresses end straight code."""
    functions: dict[str, list[tuple[str, str, int]]] = {}
    name = None
    for line in listing.splitlines():
        if match := FUNCTION.search(line):
            name = match.group(1)
            functions[name] = []
        elif name and (match := INSTRUCTION.search(line)):
            address = int(re.search(r"/\*([0-9a-f]+)\*/", line).group(1), 16)
            functions[name].append((match.group(1), SCHEDULING.sub("", match.group(2).strip()), address))
    found = {}
    for name, rows in functions.items():
        targets = {int(operands.split()[-1].rstrip(")`(").lstrip("(`"), 16) for operation, operands, _ in rows
                   if operation.startswith("BRA") and re.search(r"0x[0-9a-f]+$", operands)}
        instructions = []
        for operation, operands, address in rows:
            if address in targets:
                instructions.append(("LABEL", ""))
            instructions.append((operation, operands))
        found[name] = figures(instructions)
    return found


def measure(build: Path | None) -> dict[str, dict[str, dict[str, int]]]:
    found: dict[str, dict[str, dict[str, int]]] = {}
    for compiled in kernel_compile.kernels(build).values():
        for architecture in kernel_compile.ARCHITECTURES:
            for name, values in parse(compiled.machine_code(architecture)).items():
                found.setdefault(name, {})[architecture] = values
    names = kernel_budgets.readable(list(found))
    return {names[name]: values for name, values in sorted(found.items())}


def run(options: argparse.Namespace) -> int:
    compiler = kernel_budgets.compiler_version(kernel_budgets.find_nvcc())
    measured = measure(options.build)
    if options.pin:
        rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(values)}" for name, values in sorted(measured.items()))
        text = f'{{\n "compiler": "{compiler}",\n "kernels": {{\n{rows}\n }}\n}}\n'
        kernel_budgets.write_file(options.pins, text)
        print(f"pinned {len(measured)} kernels in {options.pins}")
        return 0
    pinned = json.loads(options.pins.read_text())
    if compiler != pinned["compiler"]:
        print(f"compiled by nvcc {compiler}, pinned with {pinned['compiler']}: not comparable")
        return 3
    changed = [name for name in sorted(measured.keys() | pinned["kernels"].keys())
               if measured.get(name) != pinned["kernels"].get(name)]
    for name in changed:
        print(f"CHANGED: {name}: {pinned['kernels'].get(name)} -> {measured.get(name)}; --pin keeps it")
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
