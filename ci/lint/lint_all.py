"""Runs every house rule over the tracked files and names each breach; exit 1 if there is one."""
import argparse
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from argument_structs import argument_breaches  # noqa: E402
from habits import (broken_comment_breaches, column_breaches, fast_math_breaches,  # noqa: E402
                    handed_on_breaches, processor_breaches, rounded_index_breaches, slowed_breaches,
                    word_breaches)
from layers import include_breaches, place_breaches  # noqa: E402
from option_tables import option_breaches  # noqa: E402
from type_names import type_name_breaches  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]

LONGEST_FILE = 500
SOURCE = re.compile(r"\.(h|cpp|cu|py|cmake)$")


def tracked_files(root: Path) -> list[str]:
    command = ["git", "-C", str(root), "ls-files", "-co", "--exclude-standard"]
    listed = subprocess.run(command, capture_output=True, text=True)
    if listed.returncode == 0 and listed.stdout:
        return [line for line in listed.stdout.splitlines() if (root / line).is_file()]
    return [str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()]


def text_breaches(path: str, text: str) -> list[str]:
    if not SOURCE.search(path):
        return []
    breaches = []
    lines = text.splitlines()
    if len(lines) > LONGEST_FILE:
        breaches.append(f"{path}: {len(lines)} lines; split it by purpose (at most {LONGEST_FILE})")
    first = lines[0] if lines else ""
    comment = r'#|"""|r"""' if path.endswith((".py", ".cmake")) else r"//|/\*"
    if not re.match(comment, first) and path.rsplit("/", 1)[-1] != "__init__.py":
        breaches.append(f"{path}:1: the first line must be a comment that says what the file is for")
    if path.endswith(".py") or path.endswith(".cmake"):
        return breaches
    is_test = path.endswith("_test.cpp") or "/selftest/" in path or "/fuzz/" in path or path.endswith("_fuzz.cpp")
    for number, line in enumerate(lines, 1):
        code = line.split("//")[0]
        # _exit is how a forked child leaves without running its parent's destructors.
        leaves = re.search(r"(?<![\w_.>])(std::)?(exit|abort|quick_exit)\s*\(", code)
        if leaves and not is_test and not path.endswith("main.cpp"):
            breaches.append(f"{path}:{number}: only main exits; throw twinbench::Error")
        if "random_device" in code:
            breaches.append(f"{path}:{number}: unreplayable randomness; derive the seed")
        if re.search(r"\b(TODO|FIXME|XXX)\b", line):
            breaches.append(f"{path}:{number}: unfinished mark")
        if "cudaDeviceSynchronize" in code and not path.startswith("harness/device/cuda/"):
            breaches.append(f"{path}:{number}: device-wide synchronisation outside harness/device/cuda")
        if re.match(r"\s*//\s*(TEST|TEST_F|TEST_P)\(", line):
            breaches.append(f"{path}:{number}: commented-out test")
        if re.search(r"\bDISABLED_\w|^\s*#\s*if\s+(0|false)\b", code):
            breaches.append(f"{path}:{number}: disabled code; delete it, or let it run")
    return breaches


# What a component's folder may hold in each layer, and what it must hold. A kernel family that needs more files names
# them by role: a verb or noun before the role, as in backward_kernel.h or product.h.
ROLES = {
    "src": (r"spec\.cpp|(spec|goldens)\.json", ["spec.cpp"], []),
    "baselines": (r"baseline\.cpp|library\.cpp", ["baseline.cpp"], []),
    "optimized": (r"cpu\.cpp|cuda\.cpp|\w+\.h|\w+_(loader|test)\.cpp|pieces\.cpp", ["cpu.cpp"], ["cuda.cpp"]),
    "kernels": (r"math\.h|arguments\.h|(\w+_)?kernel\.h|(\w+_)?tile\.h|launch\.cu|(\w+_)?kernel_test\.cpp"
                r"|kernel_testing\.h", [],
                ["math.h", "arguments.h", "kernel.h", "launch.cu", "kernel_test.cpp"]),
}


def inventory_breaches(root: Path, files: list[str]) -> list[str]:
    """<top>/<pipeline>/<component>/<role>: every file has a role, every listed component has its files."""
    listed = {}
    for line in (root / "src/components.def").read_text().splitlines():
        match = re.match(r"TWINBENCH_COMPONENT\((\w+), (\w+), (kernel|composite|host), (library|plain)\)", line)
        if match:
            listed[(match[1], match[2])] = (match[3], match[4])
    present = set(files)
    breaches = []
    for (pipeline, name), (kind, variants) in listed.items():
        for top, (_, always, of_kernels) in ROLES.items():
            needed = always + (of_kernels if kind == "kernel" or (kind == "composite" and top == "optimized") else [])
            needed = needed + (["library.cpp"] if top == "baselines" and variants == "library" else [])
            breaches += [f"{top}/{pipeline}/{name}/{role} is missing: {pipeline}.{name} is listed in src/components.def"
                         for role in needed if f"{top}/{pipeline}/{name}/{role}" not in present]
    pipelines = {pipeline for pipeline, _ in listed}
    for path in files:
        top, pipeline, *rest = path.split("/") if path.count("/") >= 2 else (None, None)
        if top not in ROLES or pipeline not in pipelines:
            continue
        if rest[0] == "common":
            continue
        if len(rest) == 1 or (pipeline, rest[0]) not in listed:
            breaches.append(f"{path}: belongs to no component of src/components.def; a component's files lie in "
                            f"{top}/{pipeline}/<component>/, what two need in {top}/{pipeline}/common/")
        elif len(rest) > 2 or not re.fullmatch(ROLES[top][0], rest[1]):
            breaches.append(f"{path}: '{'/'.join(rest[1:])}' is no role of {top}/; there are: {ROLES[top][0]}")
    return breaches


def breaches_by_rule(root: Path) -> tuple[int, dict[str, list[str]]]:
    """How many files there are, and what each rule says of them."""
    files = tracked_files(root)
    texts = {path: (root / path).read_text(errors="replace") for path in files}
    sources = {path: text for path, text in texts.items() if SOURCE.search(path)}
    found: dict[str, list[str]] = {
        "includes": [breach for path, text in texts.items() for breach in include_breaches(path, text)],
        "places": [breach for path, text in texts.items() for breach in place_breaches(path, text)],
        "text": [breach for path, text in sources.items() for breach in text_breaches(path, text)],
        "inventory": inventory_breaches(root, files),
        "columns": [breach for path, text in sources.items() for breach in column_breaches(path, text)],
        "comments": [breach for path, text in sources.items() for breach in broken_comment_breaches(path, text)],
        "words": [breach for path, text in texts.items() for breach in word_breaches(path, text)],
        "argument structs": argument_breaches(sources),
        "type names": type_name_breaches(sources),
        "options": option_breaches(texts),
        "fast_math": [breach for path, text in sources.items() for breach in fast_math_breaches(path, text)],
        "slowed": [breach for path, text in sources.items() for breach in slowed_breaches(path, text)],
        "rounded index": [breach for path, text in sources.items() for breach in rounded_index_breaches(path, text)],
        "processor": [breach for path, text in sources.items() for breach in processor_breaches(path, text)],
        "handed on": [breach for path, text in sources.items() for breach in handed_on_breaches(path, text)],
    }
    return len(files), found


def main(root: Path = ROOT) -> int:
    count, found = breaches_by_rule(root)
    refused = [breach for breaches in found.values() for breach in breaches]
    print("\n".join(refused) if refused else f"lint: {count} files, no breach")
    return 1 if refused else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT, help="a checkout, else this one")
    folder = parser.parse_args().folder.resolve()
    if not (folder / "src/components.def").is_file():
        parser.error(f"{folder}: not a checkout: it has no src/components.def")
    sys.exit(main(folder))
