"""Argument structs of kernels are filled by name: {.rows = ..., .sums = ...}. In a positional list two pointers of one
type can change places, and it still compiles."""
import re
from collections.abc import Iterable, Mapping

ARGUMENTS_FILE = re.compile(r"kernels/(\w+)/(?:(\w+)/)?\w*arguments\.h$")
SEARCHED = re.compile(r"(kernels|optimized|harness)/.*\.(h|cpp|cu)$")
# A list that begins with anything but `.` (a name) or `}` (empty: every member has its default).
_LIST = r"\{(?!\s*[.}])"


def without_comments_and_strings(text: str) -> str:
    """The same length and lines, so that positions stay true."""
    pattern = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"'
    return re.sub(pattern, lambda found: re.sub(r"[^\n]", " ", found[0]), text, flags=re.DOTALL)


def closing(text: str, opening: int) -> int:
    """Where the bracket that opens at `opening` closes."""
    depth = 0
    for position in range(opening, len(text)):
        depth += (text[position] in "{(") - (text[position] in "})")
        if depth == 0:
            return position
    return len(text)


def structs_of(text: str) -> set[str]:
    """Structs with two pointers or more: those that a positional list can fill wrongly without a word."""
    text = without_comments_and_strings(text)
    found = set()
    for match in re.finditer(r"\bstruct\s+(\w+)\s*(?:final\s*)?\{", text):
        members = text[match.end():closing(text, match.end() - 1)]
        if len(re.findall(r"\*\s*(?:const\s+)?\w+", re.sub(r"\{[^{}]*\}", "", members))) >= 2:
            found.add(match[1])
    return found


def declared(sources: Mapping[str, str]) -> dict[tuple[str, str], set[str]]:
    """(pipeline, component) -> its argument structs; ("", "") -> those of the common/ folders, which all may fill."""
    found: dict[tuple[str, str], set[str]] = {}
    for path, text in sources.items():
        match = ARGUMENTS_FILE.match(path)
        if match:
            shared = match[2] is None or match[2] == "common"
            found.setdefault(("", "") if shared else (match[1], match[2]), set()).update(structs_of(text))
    return found


def known_to(path: str, structs: Mapping[tuple[str, str], set[str]]) -> set[str]:
    """No component includes another one's file, so a name means its own folder's struct, or a shared one."""
    parts = path.split("/")
    mine = structs.get((parts[1], parts[2]), set()) if len(parts) > 3 else set()
    return mine | structs.get(("", ""), set())


def positional_lists(text: str, names: Iterable[str]) -> list[tuple[int, str]]:
    """(line, struct) of every positional list that fills one of these structs."""
    text = without_comments_and_strings(text)
    either = "|".join(map(re.escape, sorted(names)))
    if not either:
        return []
    found: dict[int, str] = {}

    def note(position: int, name: str) -> None:
        found.setdefault(text.count("\n", 0, position) + 1, name)

    struct = rf"(?<!struct )(?<!class )\b({either})"
    # Name{...}, Name variable{...}, Name variable = {...}; Name(...) with values, which C++20 takes as a list too.
    for match in re.finditer(rf"{struct}(?:\s+\w+)?\s*=?\s*{_LIST}", text):
        note(match.start(), match[1])
    for match in re.finditer(rf"{struct}\((?!\s*(?:\)|const\b|{either}))", text):
        note(match.start(), match[1])
    # variable = {...}, list.push_back({...}) and list.emplace_back(...), for variables declared here.
    for match in re.finditer(rf"{struct}(>?)&?\s+(\w+)\s*[;={{]", text):
        name, variable = match[1], re.escape(match[3])
        filled = rf"\b{variable}(?:\[[^\]]*\])?\s*=\s*{_LIST}"
        if match[2]:
            filled += rf"|\b{variable}\.(?:push_back\(\s*{_LIST}|emplace_back\(\s*[^\s)])"
        for use in re.finditer(filled, text):
            note(use.start(), name)
    # return {...} in a function that returns one.
    for match in re.finditer(rf"{struct}\s+\w+\([^;{{}}]*\)\s*(?:const\s*)?\{{", text):
        body = match.end() - 1
        for use in re.finditer(rf"\breturn\s*{_LIST}", text[body:closing(text, body)]):
            note(body + use.start(), match[1])
    # A nameless list where a component's launcher takes its arguments; simt::launch and launch_on_host take named types.
    for match in re.finditer(rf"\blaunch_(?!on_host\b)\w+\(\s*{_LIST}", text):
        note(match.start(), "a launcher's arguments")
    return sorted(found.items())


def argument_breaches(sources: Mapping[str, str]) -> list[str]:
    """`sources`: every file of the tree and its text."""
    structs = declared(sources)
    return [f"{path}:{line}: {name} filled by position; name the members, {{.member = value, ...}}"
            for path, text in sources.items() if SEARCHED.match(path)
            for line, name in positional_lists(text, known_to(path, structs))]
