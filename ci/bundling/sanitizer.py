"""compute-sanitizer from PyPI, without its documentation, headers and 32-bit half.

Releases up to 13.4.57 lack TreeLauncherSubreaper, without which the program cannot start what it is to check."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

REQUIREMENTS = "ci/requirements-bundle.txt"
INSIDE = "nvidia/cu13/compute-sanitizer/"
LEFT_OUT = ("docs/", "include/", "x86/")
NEEDED = {
    "compute-sanitizer", "TreeLauncherSubreaper", "libsanitizer-collection.so", "libTreeLauncherTargetInjection.so"}


def add_sanitizer(root: Path, folder: Path) -> str:
    """Puts it into the folder and returns its version; else returns why it is left out."""
    cache = root / "build/bundle/wheels"
    pinned = [
        line.strip() for line in (root / REQUIREMENTS).read_text().splitlines()
        if line.strip() and not line.startswith("#")]
    name, version = pinned[0].split("==")
    pattern = f"{name.replace('-', '_')}-{version}-*.whl"
    if not list(cache.glob(pattern)):
        answer = subprocess.run([
            python_of(root), "-m", "pip", "download", "-q", "--no-deps", "--disable-pip-version-check", "-d",
            str(cache), pinned[0]], capture_output=True, text=True)
        if answer.returncode != 0:
            return (f"left out: {pinned[0]} could not be downloaded: "
                    f"{(answer.stderr.strip().splitlines() or ['no reason given'])[-1][:200]}")
    with zipfile.ZipFile(next(cache.glob(pattern))) as wheel:
        for entry in wheel.namelist():
            inside = entry.removeprefix(INSIDE)
            if inside == entry or inside.endswith("/") or inside.startswith(LEFT_OUT):
                continue
            target = folder / inside
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(wheel.read(entry))
            target.chmod(0o755)
        licence = next((entry for entry in wheel.namelist() if entry.lower().endswith("license.txt")), None)
        if licence:
            (folder / "License.txt").write_bytes(wheel.read(licence))
    lacking = NEEDED - {path.name for path in folder.iterdir()} if folder.is_dir() else NEEDED
    if lacking:
        raise RuntimeError(
            f"bad_file: {pinned[0]} lacks {', '.join(sorted(lacking))}; remedy: pin a complete release in "
            f"{REQUIREMENTS}"
        )
    return version


def python_of(root: Path) -> str:
    """The project's Python, which has pip; else the one that runs this."""
    venv = Path(os.environ.get("TWINBENCH_VENV") or root / ".venv") / "bin/python"
    return str(venv) if venv.exists() else sys.executable
