#!/usr/bin/env python3
"""Shows that the SIMT layer costs nothing: as many instructions and registers as hand-written kernels.

Compiles harness/simt/cost/{layer,hand_written}.cu for sm_90 and sm_120 and compares, kernel by kernel, the registers,
spills and shared memory that the assembler reports, the PTX instructions, and the machine instructions where cuobjdump
(with nvdisasm beside it) is found: on PATH, in CUDA_HOME/bin, in the torch wheel's Triton, or named by --cuobjdump.
Exit 0 equal, 1 different, 2 no nvcc or a disassembler that cannot read its output.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COST = ROOT / "harness" / "simt" / "cost"
ARCHITECTURES = ("sm_90", "sm_120")
PAIRS = {"BlockSum": "hand_written_block_sum", "TiledTranspose": "hand_written_transpose",
         "Histogram": "hand_written_histogram", "TileProduct": "hand_written_tile_product",
         "MatrixLoad": "hand_written_matrix_load", "AsyncPass": "hand_written_async_pass"}
FLAGS = ["-std=c++20", "--fmad=false", "-O3", f"-I{ROOT}"]


def find_tool(name: str) -> str | None:
    for folder in [os.environ.get("CUDA_HOME", ""), "/usr/local/cuda"]:
        candidate = Path(folder) / "bin" / name
        if folder and candidate.exists():
            return str(candidate)
    return shutil.which(name)


def find_disassembler() -> str | None:
    """A toolkit's, or the one that comes with Triton, which the torch wheel installs."""
    venv = Path(os.environ.get("TWINBENCH_VENV", ROOT / ".venv"))
    shipped = sorted(venv.glob("lib/python3*/site-packages/triton/backends/nvidia/bin/cuobjdump"))
    return find_tool("cuobjdump") or (str(shipped[0]) if shipped else None)


def run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def resources(report: str) -> dict[str, str]:
    """Kernel name -> registers, barriers, shared memory, spills, from the report of ptxas."""
    found = {}
    for name, spills, used in re.findall(
            r"Function properties for (\S+)\n\s*(.*)\nptxas info\s*: Used (.*)", report):
        found[name] = f"{used.strip()}; {spills.strip()}"
    return found


def ptx_instructions(text: str) -> dict[str, int]:
    """Kernel name -> number of PTX instructions. Lines are instructions if they end in ';' and declare nothing."""
    found = {}
    for name, body in re.findall(r"\.entry (\w+)\(.*?^\{(.*?)^\}", text, re.S | re.M):
        lines = (line.strip() for line in body.splitlines())
        found[name] = sum(1 for line in lines if line.endswith(";") and not line.startswith("."))
    return found


def machine_instructions(listing: str) -> dict[str, int]:
    """Kernel name -> number of instructions in a cuobjdump listing, padding (NOP) left out."""
    found, name = {}, None
    for line in listing.splitlines():
        header = re.match(r"\s*Function : (\S+)", line)
        if header:
            name = header.group(1)
            found[name] = 0
        elif name and re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+\S", line) and not re.search(r"\*/\s+NOP\b", line):
            found[name] += 1
    return found


def compile_one(nvcc: str, cuobjdump: str | None, source: Path, architecture: str, folder: str) -> dict[str, dict]:
    cubin, ptx = f"{folder}/{source.stem}.{architecture}.cubin", f"{folder}/{source.stem}.{architecture}.ptx"
    used = resources(run([nvcc, *FLAGS, "-cubin", f"-arch={architecture}", "-Xptxas", "-v", str(source), "-o", cubin]))
    run([nvcc, *FLAGS, "-ptx", f"-arch={architecture}", str(source), "-o", ptx])
    counts = ptx_instructions(Path(ptx).read_text())
    machine = machine_instructions(run([cuobjdump, "-sass", cubin])) if cuobjdump else {}
    return {name: {"resources": used[name], "PTX instructions": counts[name], "SASS instructions": machine.get(name)}
            for name in used}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cuobjdump", default=find_disassembler(), help="cuobjdump to use, nvdisasm beside it")
    options = parser.parse_args()
    nvcc = find_tool("nvcc")
    if nvcc is None:
        print("no nvcc: nothing compared", file=sys.stderr)
        return 2
    if options.cuobjdump:
        os.environ["PATH"] = f"{Path(options.cuobjdump).parent}{os.pathsep}{os.environ['PATH']}"
    else:
        print("no cuobjdump: machine instructions not compared")
    different = 0
    with tempfile.TemporaryDirectory() as folder:
        for architecture in ARCHITECTURES:
            layer = compile_one(nvcc, options.cuobjdump, COST / "layer.cu", architecture, folder)
            plain = compile_one(nvcc, options.cuobjdump, COST / "hand_written.cu", architecture, folder)
            for kernel, twin in PAIRS.items():
                ours = next(value for name, value in layer.items() if f"{len(kernel)}{kernel}E" in name)
                if options.cuobjdump and not ours["SASS instructions"]:
                    print(f"{options.cuobjdump} finds no instruction of {kernel}: nothing compared", file=sys.stderr)
                    return 2
                for field, value in ours.items():
                    equal = value == plain[twin][field]
                    # PTX is the assembler's input and may order address arithmetic differently; what runs is SASS.
                    counts = field != "PTX instructions" or options.cuobjdump is None
                    different += counts and not equal
                    if value is None:
                        continue
                    word = "equal" if equal else "DIFFERENT" if counts else "differs"
                    print(f"{architecture:7} {kernel:15} {field:18} {word}: {value}"
                          + ("" if equal else f" | hand-written {plain[twin][field]}"))
    print(f"{different} differences")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
