"""Argument structs of kernels can be filled by name only: {.rows = ..., .sums = ...}. Their first member is the guard
kernels::DesignatedOnly, with which a positional list does not compile; without it two pointers of one type could change
places without a word."""
import re
from collections import Counter
from collections.abc import Mapping

ARGUMENTS_FILE = re.compile(r"kernels/.*\barguments\.h$")
GUARD = "DesignatedOnly"


def without_comments(text: str) -> str:
    """The same lines, so that numbers stay true."""
    return re.sub(r"//[^\n]*|/\*.*?\*/", lambda found: re.sub(r"[^\n]", " ", found[0]), text, flags=re.DOTALL)


def unguarded(text: str) -> list[tuple[int, str]]:
    """(line, name) of every struct that holds two pointers to one type and does not begin with the guard."""
    text = without_comments(text)
    found = []
    for match in re.finditer(r"\bstruct\s+(\w+)[^;{}]*\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}\s*;", text):
        members = [member.strip() for member in re.sub(r"\{[^{}]*\}", ";", match[2]).split(";") if member.strip()]
        pointers: Counter[str] = Counter()
        for member in members:
            declared = re.match(r"(?:const\s+)?([\w:<>]+)\s*\*", member)
            if declared and "(" not in member:
                pointers[declared[1]] += member.split("=")[0].count("*") + member.count(", *")
        if max(pointers.values(), default=0) >= 2 and not re.match(rf"(?:\w+::)*{GUARD}\b", members[0]):
            found.append((text.count("\n", 0, match.start()) + 1, match[1]))
    return found


def argument_breaches(sources: Mapping[str, str]) -> list[str]:
    """`sources`: the files of the tree and their texts."""
    return [f"{path}:{line}: {name} can be filled by position; its first member must be kernels::{GUARD} designated = "
            f"kernels::{GUARD}()" for path, text in sources.items() if ARGUMENTS_FILE.match(path)
            for line, name in unguarded(text)]
