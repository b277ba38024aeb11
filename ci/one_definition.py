#!/usr/bin/env python3
"""No inline function of the CUDA path has one linker name and two bodies.

The adapters and launchers are compiled twice into one program, for a card and for the host (TWINBENCH_SIMT). Of inline
functions of one name the linker keeps one: what calls a stream, a launcher or the runtime of its own form must lie in
the inline namespace TWINBENCH_FORM (kernels/common/stream.h), else a card's pass runs the host's code, or the reverse.
Compares what the functions of one name refer to in the objects of both forms. Needs the CUDA build; no GPU.
Exit 0 none, 1 found, 2 usage or tool error.
"""
import argparse
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FORMS = {"card": ("twinbench_optimized_cuda", "twinbench_kernels"),
         "host": ("twinbench_optimized_simt", "twinbench_kernels_simt")}
SECTION = re.compile(r"^RELOCATION RECORDS FOR \[\.text(?:\.\w+)*?\.(_Z\w+)\]:")
OF_A_FORM = re.compile(r"HostStream|CUstream|simt_form|cuda_form|4simt|4cuda|^cuda[A-Z]")
LEAST = 100  # functions that both forms have: fewer, and the wrong objects were read


def references(text: str) -> dict[str, set[str]]:
    """Function with a section of its own -> symbols of one form that it refers to, from `objdump -r`."""
    found: dict[str, set[str]] = {}
    symbols: set[str] | None = None
    for line in text.splitlines():
        if line.startswith("RELOCATION RECORDS"):
            section = SECTION.match(line)
            symbols = found.setdefault(section[1], set()) if section and "twinbench" in section[1] else None
        elif symbols is not None and line[:1] == "0":
            name = re.split(r"[-+]0x|[.](?:isra|constprop|part|cold)", line.split()[2])[0]
            if OF_A_FORM.search(name):
                symbols.add(name)
    return found


def of_objects(files: Iterable[Path]) -> dict[str, set[str]]:
    all_of_them: dict[str, set[str]] = defaultdict(set)
    for file in files:
        listing = subprocess.run(["objdump", "-r", str(file)], capture_output=True, text=True, check=True)
        for name, symbols in references(listing.stdout).items():
            all_of_them[name] |= symbols
    return all_of_them


def two_bodies(card: dict[str, set[str]], host: dict[str, set[str]]) -> dict[str, list[str]]:
    """Functions of both -> what only one of them refers to."""
    return {name: sorted(card[name] ^ host[name]) for name in sorted(card.keys() & host.keys())
            if card[name] != host[name]}


def main() -> int:
    parser = argparse.ArgumentParser(prog="ci/one_definition.py", description=__doc__, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build/cuda-compile", help="default: %(default)s")
    build = parser.parse_args().build
    try:
        card, host = (of_objects(file for target in targets for file in build.glob(f"*/CMakeFiles/{target}.dir/**/*.o"))
                      for targets in FORMS.values())
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"ci/one_definition.py: objdump: {error}", file=sys.stderr)
        return 2
    both = card.keys() & host.keys()
    if len(both) < LEAST:
        print(f"ci/one_definition.py: missing_file: {len(both)} functions in the objects of both forms below {build}; "
              "remedy: cmake --build --preset cuda-compile", file=sys.stderr)
        return 2
    found = two_bodies(card, host)
    names = subprocess.run(["c++filt"], input="\n".join(found), capture_output=True, text=True, check=True).stdout
    for name, symbols in zip(names.splitlines(), found.values(), strict=True):
        print(f"{name} has two bodies: only one of them calls {', '.join(symbols[:3])}; remedy: put it into "
              "TWINBENCH_FORM (kernels/common/stream.h)")
    print(f"{len(both)} functions in both forms, {len(found)} with two bodies")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
