"""Who may know whom: includes by layer, whatever way they are written; namespaces and factories by a file's place."""
import re

# Which top folder may include which. Baselines never see kernels: code that shares nothing can see the other's bugs.
MAY_INCLUDE = {
    "kernels": {"kernels"},
    "src": {"src"},
    "baselines": {"src", "baselines"},
    "optimized": {"src", "kernels", "optimized"},
    "harness": {"src", "harness"},
    "scenarios": {"src", "harness", "scenarios"},
}
# Torch-free headers of src/common that both sides of a comparison share, kernels included.
SHARED_WITH_KERNELS = {"src/common/philox.h", "src/common/host_device.h", "src/common/cpu_clones.h",
                       "src/common/error.h", "src/common/device_event.h"}
# The host executor of the SIMT layer and its tests run kernels by design; the CUDA timer has kernels of its own.
EXEMPT_PREFIXES = {("harness/simt/", "kernels"), ("harness/device/cuda/", "kernels/common"), ("harness/fuzz/", "src"),
                   ("kernels/", "harness/simt")}
COMPONENT_FILE = re.compile(r"(src|kernels|baselines|optimized)/(\w+)/(\w+)/")
CODE = (".h", ".cpp", ".cu")
# What else lies in the layers: lists, tables, build files, test data, the tools of a folder. Another suffix would be
# code that no rule reads.
SUFFIXES = {*CODE, ".def", ".json", ".yaml", ".txt", ".cmake", ".py", ".pt", ".md"}
GENERATED = {"fuzz_targets.def"}  # by CMake, and on the include path
# Every spelling of the directive: with blanks, as %:, as include_next or import, of a macro.
DIRECTIVE = re.compile(r"[ \t]*(?:#|%:|\?\?=)[ \t]*(include|include_next|import|embed)\b[ \t]*(.*)")
FACTORIES = {"spec.cpp": {"spec"}, "baseline.cpp": {"baseline"}, "library.cpp": {"library"}, "cpu.cpp": {"cpu"},
             "cuda.cpp": {"cuda", "simt"}}


# Whichever begins first: a comment, or a text that may look like one.
COMMENT_OR_TEXT = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.DOTALL)


def as_preprocessed(text: str) -> str:
    """Without comments; lines that a backslash or a comment joins are one, with a NUL for each end that is gone."""
    def blank(found: re.Match) -> str:
        token = found[0]
        return " " + "\0" * len(re.findall(r"[\n\0]", token)) if token.startswith("/") else token
    return COMMENT_OR_TEXT.sub(blank, re.sub(r"\\[ \t]*\n", lambda _: "\0", text))


def directives(text: str) -> list[tuple[int, str, str]]:
    """(line, word, argument) of every include."""
    found, number = [], 1
    for line in as_preprocessed(text).split("\n"):
        match = DIRECTIVE.match(line.replace("\0", ""))
        if match:
            found.append((number, match[1], match[2].strip()))
        number += 1 + line.count("\0")
    return found


def include_breaches(path: str, text: str) -> list[str]:
    top = path.split("/")[0]
    if top not in MAY_INCLUDE:
        return []
    suffix = "." + path.rsplit("/", 1)[-1].rpartition(".")[2]
    if suffix not in SUFFIXES:
        return [f"{path}: '{suffix}' is no suffix of {top}/, so that no rule reads it; code is .h, .cpp or .cu"]
    if suffix not in CODE:
        return []
    breaches = []
    for number, word, argument in directives(text):
        place = f"{path}:{number}"
        named = re.fullmatch(r'["<]([^">]+)[">]', argument)
        if word != "include" or not named:
            breaches.append(f"{place}: #{word} {argument}: say #include \"<path from the root>\" outright, no macro")
            continue
        target = named[1]
        folder = target.split("/")[0]
        quoted = argument.startswith('"')
        if quoted and (folder not in MAY_INCLUDE or {"..", "."} & set(target.split("/"))) and target not in GENERATED:
            breaches.append(f"{place}: includes \"{target}\"; give the path from the root of the repository")
            continue
        if not quoted and (folder in MAY_INCLUDE or ".." in target.split("/")):
            breaches.append(f"{place}: includes <{target}>; a file of this repository stands in quotes, from the root")
            if ".." in target.split("/"):
                continue
        mine, theirs = COMPONENT_FILE.match(path), COMPONENT_FILE.match(target)
        if mine and theirs and theirs[3] != "common" and mine.groups()[1:] != theirs.groups()[1:]:
            breaches.append(f"{place}: includes {target}, a file of another component; "
                            f"what two need lives in {theirs[1]}/common/ or {theirs[1]}/{theirs[2]}/common/")
        if top == "kernels" and folder in ("ATen", "torch", "c10"):
            breaches.append(f"{place}: kernels are torch-free but include <{target}>")
        if target.startswith(tuple(MAY_INCLUDE)) and "." + target.rpartition(".")[2] in (".cpp", ".cu"):
            breaches.append(f"{place}: includes {target}, which is compiled on its own; declare what is shared in a .h")
        if folder not in MAY_INCLUDE or folder in MAY_INCLUDE[top]:
            continue
        if top == "kernels" and target in SHARED_WITH_KERNELS:
            continue
        if any(path.startswith(prefix) and target.startswith(allowed) for prefix, allowed in EXEMPT_PREFIXES):
            continue
        breaches.append(f"{place}: {top}/ may not include {target}")
    return breaches


def place_breaches(path: str, text: str) -> list[str]:
    """A component's files are in its own namespace, and each makes what its role says: the list, the folder and the
    code name one component."""
    mine = COMPONENT_FILE.match(path)
    if not mine or not path.endswith(CODE) or mine[3] == "common":
        return []
    own = f"twinbench::{mine[2]}::{mine[3]}"
    role = path.rsplit("/", 1)[-1]
    allowed = {own} if role in FACTORIES else {own, "twinbench"}
    breaches = []
    opened = set()
    code = as_preprocessed(text)
    for found in re.finditer(r"\bnamespace\s+([\w:\s]+?)\s*\{", code):
        name = re.sub(r"\s", "", found[1])
        opened.add(name)
        if name not in allowed:
            number = 1 + len(re.findall(r"[\n\0]", code[:found.start()]))
            breaches.append(f"{path}:{number}: opens namespace {name}; a file of {mine[2]}.{mine[3]} is in {own}")
    for number, line in enumerate(text.splitlines(), 1):
        code = line.split("//")[0]
        for factory in re.findall(r"\bmake_(spec|baseline|library|cpu|cuda|simt)\b", code):
            if factory not in FACTORIES.get(role, set()):
                breaches.append(f"{path}:{number}: names make_{factory}, which only the registry calls: "
                                f"a variant that hands out another one's work is not what its folder says")
        if "##" in code:
            breaches.append(f"{path}:{number}: pastes names together, which no rule can read")
    if role in FACTORIES and own not in opened:
        breaches.append(f"{path}: does not open namespace {own}")
    return breaches
