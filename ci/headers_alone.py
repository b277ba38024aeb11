#!/usr/bin/env python3
"""Compiles every header of the C++ folders by itself (syntax only), with the include paths of the build.

A header that includes one of the large libraries' headers, by itself or through another, is compiled after a
precompiled copy of it: it would read the same text anyway. What has compiled is remembered by the content of the header
and of all it includes from this project, so that a second run compiles what changed.
Usage: ci/headers_alone.py BUILD_FOLDER [HEADER...]
Exit 0 each compiles, 1 one does not, 2 usage or tool error."""
import concurrent.futures
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("src", "kernels", "baselines", "optimized", "harness", "scenarios")
LARGE = ("ATen/core/Tensor.h", "torch/csrc/autograd/custom_function.h", "nlohmann/json.hpp")
# Only nvcc reads it; kernels/common/simt.h includes it there and the host's form elsewhere.
DEVICE_ONLY = {"kernels/common/simt_device.h", "kernels/common/cuda_launch.h"}


class ToolError(Exception):
    pass


def build_options(build: Path) -> list[str]:
    """Every include path and definition of the build's C++ commands, each once."""
    file = build / "compile_commands.json"
    if not file.is_file():
        raise ToolError(f"missing_file: {file}; remedy: cmake --preset cpu")
    found: dict[str, None] = {}
    for command in json.loads(file.read_text()):
        words = shlex.split(command["command"])
        for word, following in zip(words, [*words[1:], ""]):
            if word == "-isystem":
                found[f"-isystem{following}"] = None
            elif word.startswith(("-I", "-D")) and len(word) > 2:
                found[word] = None
    # The build's own folder first and system folders last, as the compiler orders them.
    return sorted(found, key=lambda option: option.startswith("-isystem"))


@lru_cache(maxsize=None)
def includes_of(path: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What a header includes, itself and through others: files of the project, and which of the large headers."""
    seen, waiting, large = {path}, [path], set()
    while waiting:
        text = (ROOT / waiting.pop()).read_text()
        for target in re.findall(r'^\s*#\s*include\s+["<]([^">]+)[">]', text, re.MULTILINE):
            if target in LARGE:
                large.add(target)
            if target not in seen and target.split("/")[0] in FOLDERS and (ROOT / target).is_file():
                seen.add(target)
                waiting.append(target)
    return tuple(sorted(seen)), tuple(sorted(large))


def precompiled(compiler: list[str], folder: Path, key: str, large: tuple[str, ...]) -> list[str]:
    """Options that read these headers precompiled; made once for each compiler and set of options."""
    if not large:
        return []
    name = folder / f"large_{hashlib.sha256((key + ' '.join(large)).encode()).hexdigest()[:16]}.h"
    if not Path(f"{name}.gch").is_file():
        name.write_text("".join(f"#include <{header}>\n" for header in large))
        done = subprocess.run([*compiler, "-x", "c++-header", str(name), "-o", f"{name}.gch"], capture_output=True,
                              text=True)
        if done.returncode != 0:
            raise ToolError(f"{', '.join(large)}: does not compile:\n{done.stderr}")
    return ["-include", str(name)]


def compile_alone(header: str, compiler: list[str], options: list[str]) -> str:
    """What the compiler says of it; empty: nothing."""
    command = [*compiler, *options, "-fsyntax-only", "-x", "c++", "-"]
    done = subprocess.run(command, input=f'#include "{header}"\n', text=True, capture_output=True, cwd=ROOT)
    return "" if done.returncode == 0 else done.stderr


def check(build: Path, headers: list[str]) -> dict[str, str]:
    """Header -> why it does not compile alone, for those that do not."""
    compiler = [os.environ.get("CXX", "g++"), "-std=c++20", "-w", "-fopenmp", f"-I{ROOT}", *build_options(build)]
    version = subprocess.run([compiler[0], "--version"], capture_output=True, text=True, check=True).stdout
    key = hashlib.sha256("\n".join([version, *compiler]).encode()).hexdigest()
    folder = build / "headers_alone"
    folder.mkdir(parents=True, exist_ok=True)
    stamps = {}
    for header in headers:
        content = hashlib.sha256(key.encode())
        for file in includes_of(header)[0]:
            content.update(file.encode() + b"\0" + (ROOT / file).read_bytes())
        stamp = folder / content.hexdigest()
        if not stamp.exists():
            stamps[header] = stamp
    options = {large: precompiled(compiler, folder, key, large)
               for large in sorted({includes_of(header)[1] for header in stamps})}
    broken = {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        said_of = pool.map(lambda header: compile_alone(header, compiler, options[includes_of(header)[1]]), stamps)
        for header, said in zip(stamps, said_of):
            if said:
                broken[header] = said
            else:
                stamps[header].touch()
    print(f"headers: {len(headers)} headers, {len(stamps)} compiled anew, {len(broken)} do not compile alone")
    return broken


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-co", "--exclude-standard", "*.h"],
                            capture_output=True, text=True).stdout.split()
    headers = arguments[1:] or [path for path in listed if path.split("/")[0] in FOLDERS and path not in DEVICE_ONLY
                                and (ROOT / path).is_file()]
    try:
        broken = check(Path(arguments[0]).resolve(), headers)
    except ToolError as error:
        print(f"headers_alone: {error}", file=sys.stderr)
        return 2
    for header, said in broken.items():
        first = [line for line in said.splitlines() if "error:" in line][:3]
        print(f"{header}: does not compile alone; include what it uses\n  " + "\n  ".join(first))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
