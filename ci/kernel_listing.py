"""Machine code of kernels, as nvdisasm -gi lists it: instructions, what kind each is, which source lines it is from."""
import re
from typing import NamedTuple

SECTION = re.compile(r"^\s*\.section\s+\.text\.([^,\s]+)")
OTHER_SECTION = re.compile(r"^\s*\.section\s")
SOURCE = re.compile(r'//## File "([^"]+)", line (\d+)(?:.* inlined at "([^"]+)", line (\d+))?')
LABEL = re.compile(r"^\s*(\.L_\w+):")
INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@(!?U?P\w+)\s+)?([A-Z][\w.]*)\s*([^;]*);")
SCHEDULING = re.compile(r"\s*\?\w+$")  # sm_120: how long to wait, printed behind the operands
KINDS = {
    "global_loads": ("LDG", "LD"), "global_stores": ("STG", "ST"), "global_atomics": ("ATOMG", "ATOM", "RED", "REDG"),
    "shared": ("LDS", "STS", "LDSM", "ATOMS"), "asynchronous_copies": ("LDGSTS",), "fma": ("FFMA", "FADD", "FMUL"),
    "special": ("MUFU",), "tensor": ("HMMA",), "shuffles": ("SHFL", "VOTE", "REDUX"), "barriers": ("BAR",)
}


class Instruction(NamedTuple):
    operation: str  # "LDG.E.128"
    operands: str = ""
    guard: str = ""  # "P0", "!UP1": executed by the lanes where it holds
    frames: tuple[tuple[str, int], ...] = ()  # file and line, the innermost of inlined calls first
    labels: tuple[str, ...] = ()  # that stand before it

    @property
    def base(self) -> str:
        return self.operation.split(".")[0]

    @property
    def targets(self) -> list[str]:
        return re.findall(r"\.L_\w+", self.operands)


def from_root(path: str) -> str:
    """From the repository's root on, however the compiler was told of it."""
    found = re.search(r"(?:.*/|^)((?:kernels|harness|src)/.*)", path)
    return found.group(1) if found else path


def parse(listing: str) -> dict[str, list[Instruction]]:
    """Mangled kernel name -> its instructions, by address."""
    functions: dict[str, list[Instruction]] = {}
    code: list[Instruction] | None = None
    frames: list[tuple[str, int]] = []
    labels: list[str] = []
    between = False  # lines of the source come as a group, innermost first, before the first instruction of theirs
    for line in listing.splitlines():
        if match := SECTION.match(line):
            code = functions.setdefault(match.group(1), [])
            frames, labels, between = [], [], False
        elif OTHER_SECTION.match(line):
            code = None
        elif match := SOURCE.search(line):
            if not between:
                frames, between = [], True
            file, number, outer, outer_number = match.groups()
            for frame in [(file, number)] + ([(outer, outer_number)] if outer else []):
                place = (from_root(frame[0]), int(frame[1]))
                if place not in frames[-1:]:
                    frames.append(place)
        elif match := LABEL.match(line):
            labels.append(match.group(1))
        elif code is not None and (match := INSTRUCTION.search(line)):
            guard, operation, operands = match.groups()
            code.append(Instruction(operation, SCHEDULING.sub("", operands.strip()), guard or "", tuple(frames),
                                    tuple(labels)))
            labels, between = [], False
    return functions


def by_kind(instructions: list[Instruction]) -> dict[str, int]:
    bases = [instruction.base for instruction in instructions if instruction.operation != "NOP"]
    counts = {kind: sum(base in names for base in bases) for kind, names in KINDS.items()}
    return {"instructions": len(bases), **{kind: count for kind, count in counts.items() if count}}
