#!/usr/bin/env python3
"""Holds every kernel to its pinned registers, spills, stack, shared memory and occupancy, for sm_90 and sm_120.

Reads what the assembler reported on the kernels of the CUDA build (kernel_compile.py), or what an earlier run stored
(--report), and compares with ci/kernel_budgets.json. More of anything, or fewer warps on a multiprocessor, fails
and is named: kernel, architecture, field, old -> new. --pin writes the file anew. Needs no GPU.
Exit 0 pass, 1 a budget is exceeded, 2 usage or tool error, 3 nothing measured or another compiler than the pinned one.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import kernel_compile
import kernel_occupancy

ROOT = kernel_compile.ROOT
sys.path.insert(0, str(ROOT / "reports"))
from twinbench_reports.errors import ReportError  # noqa: E402
from twinbench_reports.files import write_file  # noqa: E402

BUDGETS = ROOT / "ci" / "kernel_budgets.json"
ARCHITECTURES = kernel_compile.ARCHITECTURES
MOST_SHARED_BYTES = 99 * 1024  # what one block may have on sm_120; sm_90 has more
FIELDS = ("registers", "spill_store_bytes", "spill_load_bytes", "stack_bytes", "shared_bytes")  # the assembler's
MORE_IS_WORSE = (*FIELDS, "dynamic_shared_bytes")

ENTRY = re.compile(r"Compiling entry function '(\S+)' for '(sm_\d+)\w*'")
PROPERTIES = re.compile(r"Function properties for (\S+)")
SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")
SHARED = re.compile(r"(\d+)(?:\+(\d+))? bytes smem")
LAUNCH = re.compile(r"twinbench launch: (\S+) threads (\d+) dynamic (\d+)")


class ToolError(Exception):
    pass


def parse_report(text: str) -> dict[str, dict[str, dict[str, int]]]:
    """Mangled kernel name -> architecture -> fields, from the report of ptxas, device functions left out."""
    launches = {name: (int(threads), int(dynamic)) for name, threads, dynamic in LAUNCH.findall(text)}
    found: dict[str, dict[str, dict[str, int]]] = {}
    kernel = architecture = properties_of = None
    values: dict[str, int] = {}
    for line in text.splitlines():
        if match := ENTRY.search(line):
            kernel, architecture = match.groups()
            values = {}
        elif match := PROPERTIES.search(line):
            properties_of = match.group(1)
        elif (match := SPILLS.search(line)) and properties_of == kernel and kernel is not None:
            values.update(zip(("stack_bytes", "spill_store_bytes", "spill_load_bytes"), map(int, match.groups())))
        elif (match := USED.search(line)) and kernel is not None:
            values["registers"] = int(match.group(1))
            shared = SHARED.search(line)
            values["shared_bytes"] = sum(int(part or 0) for part in shared.groups()) if shared else 0
            missing = [field for field in FIELDS if field not in values]
            if missing:
                raise ToolError(f"the compiler's report on {kernel} lacks {', '.join(missing)}")
            if kernel not in launches:
                raise ToolError(f"the report does not say how {kernel} is launched")
            threads, dynamic = launches[kernel]
            found.setdefault(kernel, {})[architecture] = {
                **{field: values[field] for field in FIELDS}, "threads": threads, "dynamic_shared_bytes": dynamic}
            kernel = None
    return found


def add_occupancy(measured: dict[str, dict[str, dict[str, int]]]) -> None:
    """Adds warps_per_sm, and most_warps_per_sm that the chip can hold. A block too large for any shared memory: 0."""
    places = [(values, (architecture, values["registers"], values["shared_bytes"], values["dynamic_shared_bytes"],
                        values["threads"]))
              for architectures in measured.values() for architecture, values in architectures.items()]
    for (values, _), (_, warps, most) in zip(places, kernel_occupancy.occupancy([row for _, row in places])):
        values["warps_per_sm"], values["most_warps_per_sm"] = warps, most


def readable(names: list[str]) -> dict[str, str]:
    """Mangled -> short name: the kernel's own type for kernels of the SIMT layer, the function's name for others."""
    demangled = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True).stdout.splitlines()
    if len(demangled) != len(names):
        raise ToolError("c++filt failed; it comes with binutils")
    short = {}
    for name, text in zip(names, demangled):
        text = text.removeprefix("void ")
        layer = re.match(r"twinbench::kernels::simt::run<(.*)>\(.*\)$", text)
        # The first template argument, which may itself hold commas inside angle brackets.
        if layer:
            depth, end = 0, 0
            for end, letter in enumerate(layer.group(1) + ","):
                depth += letter == "<"
                depth -= letter == ">"
                if letter == "," and depth == 0:
                    break
            text = layer.group(1)[:end]
        short[name] = text.replace("twinbench::", "")
    repeated = {text for text in short.values() if list(short.values()).count(text) > 1}
    return {name: f"{text} [{name}]" if text in repeated else text for name, text in short.items()}


def find_nvcc() -> str:
    for folder in (os.environ.get("CUDA_HOME", ""), "/usr/local/cuda"):
        if folder and (Path(folder) / "bin" / "nvcc").exists():
            return str(Path(folder) / "bin" / "nvcc")
    found = shutil.which("nvcc")
    if found is None:
        raise ToolError("no nvcc on PATH or in CUDA_HOME; ci/setup installs one, or give --report")
    return found


def compiler_version(nvcc: str) -> str:
    text = subprocess.run([nvcc, "--version"], capture_output=True, text=True).stdout
    match = re.search(r"V(\d+\.\d+\.\d+)", text)
    return match.group(1) if match else "unknown"


def launch_lines(ptx: dict[str, tuple[int, bool]], sources: list[Path], kernels: Path) -> str:
    """The part of the report that says how each kernel is launched."""
    demangled = subprocess.run(["c++filt"], input="\n".join(ptx), capture_output=True, text=True).stdout.splitlines()
    types = {name: kernel_occupancy.kernel_type(text) for name, text in zip(ptx, demangled)}
    dynamic = [name for name, (_, is_dynamic) in ptx.items() if is_dynamic]
    sizes = kernel_occupancy.dynamic_shared_bytes([types[name] for name in dynamic], kernels)
    threads_of_type = {types[name]: threads for name, (threads, _) in ptx.items() if types[name]}
    kernel_occupancy.check_launch_sites(sources, kernels, threads_of_type)
    return "".join(f"twinbench launch: {name} threads {threads} dynamic {sizes[types[name]] if is_dynamic else 0}\n"
                   for name, (threads, is_dynamic) in ptx.items())


def report_on(compiled: dict[Path, kernel_compile.Compiled], kernels: Path = ROOT / "kernels") -> str:
    """The concatenated reports on all sources, for all architectures, and how each kernel is launched."""
    report, ptx = "", {}
    for results in compiled.values():
        report += results.report
        ptx |= kernel_occupancy.launches_in_ptx(results.ptx)
    return report + launch_lines(ptx, list(compiled), kernels)


def compare(pinned: dict, measured: dict) -> tuple[list[str], list[str]]:
    """(failures, notes). Both maps: kernel -> architecture -> field -> value."""
    failures, notes = [], []
    for kernel, architectures in sorted(measured.items()):
        for architecture, values in sorted(architectures.items()):
            where = f"{kernel} {architecture}"
            shared = values["shared_bytes"] + values["dynamic_shared_bytes"]
            if shared > MOST_SHARED_BYTES:
                failures.append(
                    f"{where} shared_bytes + dynamic_shared_bytes {shared} > {MOST_SHARED_BYTES}, all sm_120 has")
            old = pinned.get(kernel, {}).get(architecture)
            if old is None:
                failures.append(f"{where} is not pinned; look at its figures, then run ci/kernel_budgets.py --pin")
                continue
            for field in (*MORE_IS_WORSE, "threads", "warps_per_sm"):
                was, now = old.get(field), values[field]
                worse = (was is None or (now > was if field in MORE_IS_WORSE else now < was)
                         or (field == "threads" and now != was))
                if worse:
                    failures.append(f"{where} {field} {'not pinned' if was is None else was} -> {now}")
                elif now != was:
                    notes.append(f"{where} {field} {was} -> {now}: better; --pin keeps it")
    for kernel, architectures in sorted(pinned.items()):
        for architecture in sorted(architectures):
            if architecture not in measured.get(kernel, {}):
                failures.append(f"{kernel} {architecture} is pinned but was not compiled; --pin if it is gone for good")
    return failures, notes


def read_pins(path: Path) -> dict:
    """A key that stands twice would count once, as the last says: ValueError."""
    def unique(pairs: list[tuple[str, object]]) -> dict:
        names = [name for name, _ in pairs]
        twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
        if twice:
            raise ValueError(f"{path}: the key {twice[0]} appears twice; keep one, or write the file anew with --pin")
        return dict(pairs)

    return json.loads(path.read_text(), object_pairs_hook=unique)


def run(options: argparse.Namespace) -> int:
    if options.report:
        text, compiler = "".join(Path(path).read_text() for path in options.report), options.compiler
    else:
        compiler = compiler_version(find_nvcc())
        text = report_on(kernel_compile.kernels(options.build))
    by_name = parse_report(text)
    if not by_name:
        print("kernel budgets: no kernel was compiled, so nothing was measured", file=sys.stderr)
        return 3
    names = readable(list(by_name))
    measured = {names[name]: values for name, values in by_name.items()}
    if options.store:
        write_file(options.store, text)
    add_occupancy(measured)

    if options.pin:
        too_large, _ = compare(measured, measured)
        if too_large:
            print("\n".join(too_large), file=sys.stderr)
            return 1
        text = json.dumps({"compiler": compiler, "kernels": measured}, indent=2, sort_keys=True)
        write_file(options.budgets, text + "\n")
        print(f"pinned {len(measured)} kernels in {options.budgets}")
        return 0

    if not options.budgets.exists():
        print(f"kernel budgets: no {options.budgets}; ci/kernel_budgets.py --pin writes it", file=sys.stderr)
        return 2
    budgets = read_pins(options.budgets)
    failures, notes = compare(budgets["kernels"], measured)
    for line in notes:
        print(f"note: {line}")
    for line in failures:
        print(f"FAIL: {line}")
    print(f"kernel budgets: {len(measured)} kernels for {len(ARCHITECTURES)} architectures, {len(failures)} failures")
    if compiler is not None and compiler != budgets["compiler"]:
        print(f"compiled by nvcc {compiler}, pinned with {budgets['compiler']}: not comparable")
        return 3
    return 1 if failures else 0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pin", action="store_true", help="write the measured figures as the new budgets")
    parser.add_argument("--report", action="append", metavar="FILE", help="what --store wrote, instead of compiling")
    parser.add_argument("--store", type=Path, metavar="FILE", help="keep the compiler's report")
    parser.add_argument("--compiler", help="with --report: the version of nvcc that wrote it, such as 13.0.88")
    parser.add_argument("--budgets", type=Path, default=BUDGETS, metavar="FILE")
    parser.add_argument("--build", type=Path, metavar="FOLDER", help="of the CUDA build; else build/cuda-compile")
    try:
        return run(parser.parse_args(arguments))
    except (ToolError, ReportError, kernel_compile.CompileError, kernel_occupancy.LaunchError, OSError,
            ValueError) as error:
        print(f"kernel budgets: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
