"""Programs made to run elsewhere: stripped, their run path inside the bundle, and every library that is neither torch's
nor the system's own carried along."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

# The target brings these itself: the C and C++ runtimes (with torch's own needs they are newer or as new), and the
# driver.
SYSTEM = re.compile(
    r"^(ld-linux.*|linux-vdso|libc|libm|libdl|librt|libpthread|libutil|libstdc\+\+|libgcc_s|libcuda|libnvidia.*)\.so")


def tool(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def copy_program(source: Path, target: Path) -> None:
    """A stripped copy that looks for its libraries in ../lib; torch's folders come from LD_LIBRARY_PATH."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target)
    tool("strip", str(target))
    tool("patchelf", "--set-rpath", "$ORIGIN/../lib", str(target))


def needed_libraries(program: Path, from_torch: list[Path]) -> dict[str, Path]:
    """Name -> file of every library the program loads that the target would lack, as this machine's loader finds it."""
    given = [folder.resolve() for folder in from_torch]
    found: dict[str, Path] = {}
    for line in tool("ldd", str(program)).splitlines():
        match = re.match(r"\s*(\S+) => (\S+|not found)", line)
        if not match or SYSTEM.match(match[1]):
            continue
        path = Path(match[2])
        if not path.is_file():
            raise RuntimeError(f"missing_file: {match[1]}, which {program.name} needs, is not on this machine")
        if not any(folder in path.resolve().parents for folder in given):
            found[match[1]] = path
    return found


def copy_libraries(libraries: dict[str, Path], folder: Path) -> None:
    for name, path in libraries.items():
        copy_program(path.resolve(), folder / name)


def newest_version(files: list[Path], prefix: str) -> str:
    """The newest GLIBC_x.y (or GLIBCXX_x.y.z) that any of the files asks for."""
    versions = {tuple(map(int, found.split("."))) for file in files
                for found in re.findall(rf"\b{prefix}_(\d+(?:\.\d+)+)", tool("readelf", "--version-info", str(file)))}
    return ".".join(map(str, max(versions))) if versions else ""


def foreign_run_paths(files: list[Path]) -> list[str]:
    """Files whose run path leaves the bundle: they would work here and nowhere else."""
    return [
        f"{file.name}: {path}" for file in files
        for path in tool("patchelf", "--print-rpath", str(file)).strip().split(":")
        if path and not path.startswith("$ORIGIN")]
