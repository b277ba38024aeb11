#!/usr/bin/env python3
"""The kernels as the build compiles them: the assembler's report, PTX and machine code, for sm_90 and sm_120.

As a program it stands before the build's nvcc (kernels/CMakeLists.txt): runs the command it is given and leaves what
the assembler reports on each kernel beside the object. As a module it builds the kernels in the preset cuda-compile and
reads the objects. So a kernel is compiled once, for the program and for every check on what the compiler made of it.
"""
import fcntl
import functools
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "harness" / "simt"))
from compare_with_hand_written import find_disassembler  # noqa: E402

ARCHITECTURES = ("sm_90", "sm_120")
FLAGS = ("-std=c++20", "--fmad=false", "-O3", "-lineinfo", "-diag-suppress=20012", f"-I{ROOT}", "-Xptxas=-v")
# Lines of the assembler's report; anything else that nvcc says is for whoever builds.
REPORT = re.compile(r"^ptxas (info|\.)|^\s+\d+ bytes (stack frame|gmem)|^\s*$")


class CompileError(Exception):
    pass


def reader() -> str:
    found = find_disassembler()
    if found is None:
        raise CompileError("no cuobjdump on PATH, in CUDA_HOME/bin or in the venv's Triton")
    return found


def read(*arguments: str, tool: str = "cuobjdump", folder: Path | None = None) -> str:
    program = reader() if tool == "cuobjdump" else str(Path(reader()).with_name(tool))
    path = f"{Path(program).parent}{os.pathsep}{os.environ['PATH']}"  # it calls nvdisasm beside it
    done = subprocess.run([program, *arguments], capture_output=True, text=True, cwd=folder,
                          env={**os.environ, "PATH": path})
    if done.returncode != 0:
        raise CompileError(f"{program} {' '.join(arguments)}\n{done.stdout}{done.stderr}")
    return done.stdout


class Compiled:
    """What came of one source. PTX is that of the newest architecture; the older one's is not kept by the build."""

    def __init__(self, compiled_object: Path, report: str):
        self.report = report
        self._object = str(compiled_object)

    @functools.cached_property
    def ptx(self) -> str:
        return read("-ptx", self._object)

    def machine_code(self, architecture: str) -> str:
        """With the source lines of each instruction, inlined calls included."""
        with tempfile.TemporaryDirectory() as folder:
            read("-xelf", f".{architecture}.", os.path.abspath(self._object), folder=Path(folder))
            return "".join(read("-gi", "-c", str(image), tool="nvdisasm") for image in sorted(Path(folder).iterdir()))


def report_of(compiled_object: Path) -> Path:
    return compiled_object.with_name(compiled_object.name + ".report")


def launch(command: list[str]) -> int:
    """Runs a compiler's command line; the assembler's report goes beside the object, the rest where it would go."""
    if command[-1:] in ([], ["-o"]):
        sys.stderr.write("kernel_compile: give a compiler's command line\n")
        return 2
    try:
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, errors="replace")
    except OSError as error:
        sys.stderr.write(f"kernel_compile: {command[0]}: {error.strerror}\n")
        return 2
    lines = done.stderr.splitlines(keepends=True)
    report = [line for line in lines if done.returncode == 0 and REPORT.search(line)]
    sys.stderr.write("".join(line for line in lines if line not in report))
    if "-o" in command and done.returncode == 0:
        report_of(Path(command[command.index("-o") + 1])).write_text("".join(report))
    return done.returncode


def kernels(build: Path | None = None) -> dict[Path, Compiled]:
    """Source -> what came of it, for every kernel of the project. Brings the build up to date first; who asks while
    another does waits."""
    preset = "cuda-compile"
    build = build or ROOT / "build" / preset
    build.mkdir(parents=True, exist_ok=True)
    with open(build / "kernels.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        steps = [["cmake", "--build", str(build), "--target", "twinbench_kernels", "-j", "2"]]
        if not (build / "CMakeCache.txt").exists():
            steps.insert(0, ["cmake", "--preset", preset])
        for step in steps:
            done = subprocess.run(step, capture_output=True, text=True, cwd=ROOT)
            if done.returncode != 0:
                raise CompileError(f"{' '.join(step)}\n{done.stdout}{done.stderr}")
    objects = build / "kernels" / "CMakeFiles" / "twinbench_kernels.dir"
    found = {}
    for source in sorted((ROOT / "kernels").rglob("*.cu")):
        place = objects / f"{source.relative_to(ROOT / 'kernels')}.o"
        if not report_of(place).exists():
            raise CompileError(f"no {report_of(place)}: remove {build} and build it again")
        found[source] = Compiled(place, report_of(place).read_text())
    return found


def alone(nvcc: str, source: Path, extra: list[str] = []) -> Compiled:
    """A source that is none of the project's, compiled now with the build's flags."""
    targets = ["-gencode=arch=compute_90,code=sm_90", "-gencode=arch=compute_120,code=[sm_120,compute_120]"]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "kernel.o"
        command = [nvcc, *FLAGS, *extra, *targets, "-c", str(source), "-o", str(place)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise CompileError(f"{source} does not compile:\n{done.stdout}{done.stderr}")
        result = Compiled(place, done.stderr)
        result.ptx  # while there is an object to read
        return result


if __name__ == "__main__":
    sys.exit(launch(sys.argv[1:]))
