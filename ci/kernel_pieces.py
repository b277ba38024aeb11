"""Pieces of a kernel's machine code that are executed equally often, and the accesses of memory that say how often.

A piece is all straight code that control flow cannot tell apart: each part is executed whenever the others are, in the
same loops. Its anchors are what the host run counts (harness/model/executions.h does the rest): warps, barriers,
tensor-core products, and accesses of memory by source line, in words of 4 bytes. A piece without an anchor is executed
as often as the nearest one before it that has any, so a loop that touches no memory counts as one round.
"""
import functools
import re
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from kernel_listing import Instruction, by_kind

ACCESSES = {"LDG": "load", "LD": "load", "LDGSTS": "load", "STG": "store", "ST": "store", "ATOMG": "atomic",
            "ATOM": "atomic", "RED": "atomic", "REDG": "atomic", "LDS": "shared load", "LDSM": "shared load",
            "STS": "shared store", "ATOMS": "shared atomic"}
# The SIMT layer's own lines say nothing of the kernel (as harness/simt/counting/source_place.cpp has it).
LAYER = ("harness/simt/", "kernels/common/simt", "kernels/common/cuda_")
SHARED_HELPERS = ("kernels/common/", "src/")
LONGEST_TEXT = 40  # of a source line: enough to find it again where lines were added above it

Place = tuple  # what is counted there, then file and line of the kernel, and of the helper that it goes through


class Block(NamedTuple):
    code: list[Instruction]
    next: list[int]
    may_end: bool


def jumps_of(code: list[Instruction], at: int) -> tuple[list[str], bool]:
    """Labels that an instruction may jump to, and whether the next one may follow."""
    instruction = code[at]
    conditional = bool(instruction.guard or re.match(r"!?U?P\d", instruction.operands))
    if instruction.base == "BRA":
        # Lanes that have diverged go another way to the same end; those that have not stay.
        return ([], True) if ".DIV" in instruction.operation else (instruction.targets, conditional)
    if instruction.base in ("BRX", "BRXU", "JMP", "JMX"):
        return instruction.targets, bool(instruction.guard)
    if instruction.base == "BSYNC":  # to where the last BSSY on this register said
        register = instruction.operands.split(",")[0].strip()
        for before in reversed(code[:at]):
            if before.base == "BSSY" and before.operands.split(",")[0].strip() == register:
                return before.targets, bool(instruction.guard)
        return [], True
    if instruction.base in ("EXIT", "RET"):
        return [], bool(instruction.guard)
    return [], True


def blocks_of(code: list[Instruction]) -> list[Block]:
    """The basic blocks that can be reached, the first one first; what diverged lanes and slow paths of divisions and
    roots are sent to is taken as never reached."""
    jumps = [jumps_of(code, i) for i in range(len(code))]
    ends = ("BRA", "BRX", "BRXU", "JMP", "JMX", "BSYNC", "EXIT", "RET")
    targeted = {label for labels, _ in jumps for label in labels}
    starts = [i for i, instruction in enumerate(code)
              if i == 0 or code[i - 1].base in ends or targeted & set(instruction.labels)]
    number = {start: block for block, start in enumerate(starts)}
    of_label = {label: number[start] for start in starts for label in code[start].labels}
    slices = [code[start:end] for start, end in zip(starts, starts[1:] + [len(code)])]
    calls = {block for block, piece in enumerate(slices) if any(row.base == "CALL" for row in piece)}
    following: list[list[int]] = []
    for start, piece in zip(starts, slices):
        last = start + len(piece) - 1
        labels, falls = jumps[last]
        following.append(sorted({of_label[label] for label in labels if label in of_label} |
                                ({number[last + 1]} if falls and last + 1 < len(code) else set())))
    following = [[to for to in ways if to not in calls] or ways for ways in following]
    order = postorder(following, 0)[::-1] if slices else []
    renamed = {block: place for place, block in enumerate(order)}
    return [Block(slices[block], [renamed[to] for to in following[block]],
                  slices[block][-1].base in ("EXIT", "RET") or not following[block]) for block in order]


def postorder(following: list[list[int]], first: int) -> list[int]:
    order, seen, open_blocks = [], {first}, [(first, iter(following[first]))]
    while open_blocks:
        block, ways = open_blocks[-1]
        for to in ways:
            if to not in seen:
                seen.add(to)
                open_blocks.append((to, iter(following[to])))
                break
        else:
            order.append(block)
            open_blocks.pop()
    return order


def dominators(following: list[list[int]], first: int) -> list[int]:
    """By block the bits of those that every way from the first one to it passes; 0 where there is no way."""
    order = postorder(following, first)[::-1]
    before = defaultdict(list)
    for block in order:
        for to in following[block]:
            before[to].append(block)
    found = [0] * len(following)
    found[first] = 1 << first
    changed = True
    while changed:
        changed = False
        for block in order[1:]:
            common = -1
            for other in before[block]:
                common &= found[other] or -1
            if (common | 1 << block) != found[block]:
                found[block], changed = common | 1 << block, True
    return found


def loops_around(blocks: list[Block], dominate: list[int]) -> list[int]:
    """By block the bits of the first blocks of the loops that it is in."""
    before = defaultdict(list)
    for block, row in enumerate(blocks):
        for to in row.next:
            before[to].append(block)
    inside = [0] * len(blocks)
    for block, row in enumerate(blocks):
        for head in row.next:
            if not dominate[block] >> head & 1:
                continue
            body, open_blocks = {head}, [block]
            while open_blocks:
                if (now := open_blocks.pop()) not in body:
                    body.add(now)
                    open_blocks += before[now]
            for now in body:
                inside[now] |= 1 << head
    return inside


def equal_blocks(blocks: list[Block]) -> tuple[list[int], list[int]]:
    """By block the first of those that are executed equally often, and the nearest other one before it that is in no
    loop that it is not in; itself for the first of all."""
    count = len(blocks)
    dominate = dominators([row.next for row in blocks], 0)
    inside = loops_around(blocks, dominate)
    backwards: list[list[int]] = [[] for _ in range(count + 1)]
    for block, row in enumerate(blocks):
        for to in row.next:
            backwards[to].append(block)
        if row.may_end:
            backwards[count].append(block)
    after = dominators(backwards, count)
    first, nearest = list(range(count)), list(range(count))
    for block in range(count):
        chain = sorted((other for other in range(count) if other != block and dominate[block] >> other & 1),
                       key=lambda other: dominate[other].bit_count())
        for other in chain:
            if after[other] >> block & 1 and inside[other] == inside[block]:
                first[block] = first[other]
                break
        else:
            nearest[block] = next((first[other] for other in reversed(chain) if not inside[other] & ~inside[block]), 0)
    return first, nearest


def place_of(instruction: Instruction) -> Place | None:
    """What is counted of an instruction, and where: as the host run names the place of an access."""
    if instruction.guard in ("!PT", "!UPT"):
        return None  # padding
    if instruction.base == "HMMA":
        return ("products",)
    if instruction.base == "BAR":
        return ("barriers",)
    if instruction.base not in ACCESSES:
        return None
    frames = [frame for frame in instruction.frames
              if frame[0].startswith(("kernels/", "src/", "harness/")) and not frame[0].startswith(LAYER)]
    if not frames:
        return None
    own = next((frame for frame in frames if not frame[0].startswith(SHARED_HELPERS)), frames[0])
    return (ACCESSES[instruction.base], *own, *(() if own == frames[0] else frames[0]))


def words_of(instruction: Instruction) -> float:
    """Words of 4 bytes that a lane moves; 1 for what is no access."""
    operation = instruction.operation
    if instruction.base == "LDSM":
        return int(operation.rsplit(".", 1)[1]) if operation[-1].isdigit() and not operation.endswith("88") else 1
    for pattern, words in ((r"\.128\b", 4), (r"\.F?64\b", 2), (r"\.[US]16\b", 0.5), (r"\.[US]8\b", 0.25)):
        if instruction.base in ACCESSES and re.search(pattern, operation):
            return words
    return 1


def pieces_of(code: list[Instruction]) -> list[dict]:
    """instructions, fma and special ones of each piece, `within` (the piece before it, where that is not the first),
    `at` (place -> words) and `if`: the same of accesses that a condition may leave out, which are no equals of the
    others."""
    blocks = blocks_of(code)
    first, nearest = equal_blocks(blocks)
    anchors: dict[int, dict[str, dict[Place, float]]] = defaultdict(lambda: {"at": {}, "if": {}})
    if blocks:
        anchors[0]["at"][("warps",)] = 1
    for block, row in enumerate(blocks):
        for instruction in row.code:
            if (place := place_of(instruction)) is not None:
                found = anchors[first[block]]["if" if instruction.guard else "at"]
                found[place] = found.get(place, 0) + words_of(instruction)
    known = {block: piece for piece, block in enumerate(sorted(anchors))}

    def owner(block: int) -> int:
        while first[block] not in known:
            block = nearest[first[block]]
        return first[block]

    code_of: dict[int, list[Instruction]] = defaultdict(list)
    for block, row in enumerate(blocks):
        code_of[owner(block)] += row.code
    pieces = []
    for block, piece in known.items():
        kinds = by_kind(code_of[block])
        row = {kind: kinds[kind] for kind in ("instructions", "fma", "special") if kind in kinds}
        if within := known[owner(nearest[block])]:
            row["within"] = within
        pieces.append(row | {key: places for key, places in anchors[block].items() if places})
    return pieces


@functools.cache
def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.is_file() else []


def text_of(root: Path, file: str, line: int) -> str:
    lines = lines_of(root / file)
    return lines[line - 1].strip()[:LONGEST_TEXT] if 0 < line <= len(lines) else ""


def with_numbered_places(architectures: dict[str, dict], root: Path) -> dict[str, object]:
    """Figures by architecture, with one list of places for all: [kind], or [kind, file, line, text] once or twice."""
    pieces = [piece for figures in architectures.values() for piece in figures["pieces"]]
    places = sorted({place for piece in pieces for key in ("at", "if") for place in piece.get(key, {})})
    number = {place: i for i, place in enumerate(places)}
    for piece in pieces:
        for key in {"at", "if"} & piece.keys():
            piece[key] = [[number[place], words] for place, words in sorted(piece[key].items())]
    rows = [[place[0], *(value for at in range(1, len(place), 2)
                         for value in (*place[at:at + 2], text_of(root, *place[at:at + 2])))] for place in places]
    return {"places": rows, **architectures}
