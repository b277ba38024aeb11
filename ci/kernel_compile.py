"""Compiles a kernel source once for whoever asks: the assembler's report, PTX and machine code, for sm_90 and sm_120.

What was compiled stays in build/kernel_compile/, under a key of the source, all that it includes, the flags and the
compiler: the budgets, the machine code's figures and the next run find it there. Entries unused for a week go.
"""
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "build" / "kernel_compile"
ARCHITECTURES = ("sm_90", "sm_120")
FLAGS = ["-std=c++20", "--fmad=false", "-O3", "-diag-suppress=20012", f"-I{ROOT}", "-Xptxas=-v"]
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
WEEK_S = 7 * 24 * 3600


class CompileError(Exception):
    pass


def included(source: Path) -> list[Path]:
    """The source and every file of ours that it includes, however deep; those of the toolkit belong to the compiler."""
    found, open_files = [], [source.resolve()]
    while open_files:
        file = open_files.pop()
        found.append(file)
        for name in INCLUDE.findall(file.read_text()):
            candidates = [path.resolve() for path in (file.parent / name, ROOT / name) if path.is_file()]
            if candidates and candidates[0] not in found and candidates[0] not in open_files:
                open_files.append(candidates[0])
    return sorted(found)


def key_of(compiler: str, source: Path, extra: list[str]) -> str:
    flags = [flag.replace(str(ROOT), "") for flag in FLAGS]
    digest = hashlib.sha256(repr((compiler, flags, extra, ARCHITECTURES)).encode())
    for file in included(source):
        digest.update(f"{file.relative_to(ROOT) if file.is_relative_to(ROOT) else file}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:32]


class Compiled:
    """One source's results, in a folder."""

    def __init__(self, folder: Path):
        self.report = (folder / "report.txt").read_text()
        self.ptx = [path.read_text() for path in sorted(folder.glob("*.ptx"))]
        self.cubins = {name: folder / f"{name}.cubin" for name in ARCHITECTURES}


def build(nvcc: str, source: Path, extra: list[str], to: Path) -> None:
    targets = [f"-gencode=arch=compute_{name[3:]},code={name}" for name in ARCHITECTURES]
    with tempfile.TemporaryDirectory(dir=to.parent) as folder:
        command = [nvcc, *FLAGS, *extra, *targets, "--threads", "2", "--keep", "--keep-dir", folder, "-c", str(source),
                   "-o", f"{folder}/kernel.o"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise CompileError(f"{source} does not compile:\n{done.stdout}{done.stderr}")
        whole = Path(folder) / "whole"
        whole.mkdir()
        (whole / "report.txt").write_text(done.stdout + done.stderr)
        for path in Path(folder).glob("*.ptx"):
            path.rename(whole / path.name)
        for name in ARCHITECTURES:
            cubins = list(Path(folder).glob(f"*{name[3:]}.cubin"))
            if len(cubins) != 1:
                raise CompileError(f"{source}: nvcc kept {len(cubins)} machine codes for {name}, not one")
            cubins[0].rename(whole / f"{name}.cubin")
        whole.rename(to)


def compiled(nvcc: str, compiler: str, source: Path, extra: list[str] = []) -> Compiled:
    """The source's results, compiled now unless they are kept. Two that ask at once share one compilation."""
    KEPT.mkdir(parents=True, exist_ok=True)
    folder = KEPT / key_of(compiler, source, extra)
    with open(KEPT / f"{folder.name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            build(nvcc, source, extra, folder)
        os.utime(folder)
    return Compiled(folder)


def forget_unused() -> None:
    """Removes what nobody asked for during a week."""
    for folder in KEPT.iterdir() if KEPT.exists() else ():
        if folder.is_dir() and time.time() - folder.stat().st_mtime > WEEK_S:
            shutil.rmtree(folder, ignore_errors=True)
            folder.with_suffix(".lock").unlink(missing_ok=True)
