"""One definition a type: two of one qualified name in one program clash without a word from compiler or linker."""
import re

_COMMENT = re.compile(r"//[^\n]*")
# A namespace's beginning, a type's definition, a brace, or a literal in which braces mean nothing.
_TOKEN = re.compile(
    r"namespace\s+([\w:]*)\s*\{|\b(?:struct|class|enum(?: class)?)\s+(?:\[\[\w+\]\]\s*)?(\w+)(?:\s+final)?"
    r"\s*(?=[:{])(?!::)|[{}]|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'")
_SPECIALISATION = re.compile(r"template\s*<>\s*$")
_UNNAMED = "<unnamed>"
# Programs of their own, and a copy of the project's own namespaces for a second way to compile.
_APART = ("/testing/", "harness/fuzz/", "ci/")


def types_of(text: str) -> set[str]:
    """Qualified names of the types that a file defines in named namespaces: "twinbench::Tier"."""
    text = _COMMENT.sub("", text)
    found, open_braces = set(), []
    for token in _TOKEN.finditer(text):
        if token[0].startswith("namespace"):
            open_braces.append(token[1] or _UNNAMED)
        elif token[0] == "{":
            open_braces.append(None)
        elif token[0] == "}":
            if open_braces:
                open_braces.pop()
        elif token[2] and open_braces and None not in open_braces and _UNNAMED not in open_braces:
            if not _SPECIALISATION.search(text[max(0, token.start() - 80):token.start()]):
                found.add("::".join([*open_braces, token[2]]))
    return found


def type_name_breaches(texts: dict[str, str]) -> list[str]:
    defined: dict[str, list[str]] = {}
    for path, text in texts.items():
        if path.endswith((".h", ".cpp", ".cu")) and not any(part in path for part in _APART):
            for name in types_of(text):
                defined.setdefault(name, []).append(path)
    return [f"{sorted(paths)[1]}: {name} is defined in {sorted(paths)[0]} too; put one into an unnamed namespace, or "
            "give it another name" for name, paths in sorted(defined.items()) if len(paths) > 1]
