"""Two revisions as built trees: git worktrees in a cache folder, built one after the other with the compiler cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from comparing.side import Side
from twinbench_reports.errors import ReportError

KEPT = 8  # worktrees; the longest unused go first
WORKING_TREE = "."
PRESET = "cpu"


def git(root: Path, *arguments: str) -> str:
    """What git prints, or an error with what it complains of."""
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True)
    if done.returncode:
        raise ReportError(f"git {' '.join(arguments)}: {done.stderr.strip()}", remedy="check the revision's name")
    return done.stdout.strip()


def resolve(root: Path, name: str) -> str:
    """The commit of a revision; "." is the working tree with its changes to tracked files, as a commit of its own."""
    if name == WORKING_TREE:
        stored = git(root, "stash", "create")
        return stored or git(root, "rev-parse", "--verify", "HEAD^{commit}")
    return git(root, "rev-parse", "--verify", "--end-of-options", f"{name}^{{commit}}")


def same_source(root: Path, base: str, head: str) -> bool:
    """Do both commits hold the same files?"""
    return git(root, "rev-parse", f"{base}^{{tree}}") == git(root, "rev-parse", f"{head}^{{tree}}")


def cache_folder() -> Path:
    """$TWINBENCH_COMPARE_CACHE, or twinbench/compare in the user's cache folder."""
    named = os.environ.get("TWINBENCH_COMPARE_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(named) if named else Path(base) / "twinbench" / "compare"


def checkout(root: Path, commit: str, cache: Path) -> Path:
    """The worktree of a commit. Every path has one length, so that no argument or string differs in size."""
    folder = cache / commit[:12]
    if not (folder / ".git").exists():
        cache.mkdir(parents=True, exist_ok=True)
        git(root, "worktree", "prune")
        git(root, "worktree", "add", "--detach", "--force", str(folder), commit)
    os.utime(folder)
    return folder


def forget_old(root: Path, cache: Path, keep: Sequence[Path]) -> None:
    """Removes the longest unused worktrees beyond KEPT."""
    folders = sorted((path for path in cache.iterdir() if (path / ".git").is_file()), key=lambda path:
                     -path.stat().st_mtime)
    for folder in folders[KEPT:]:
        if folder not in keep:
            subprocess.run(["git", "-C", str(root), "worktree", "remove", "--force", str(folder)], capture_output=True)
            shutil.rmtree(folder, ignore_errors=True)


def build(root: Path, folder: Path, name: str, say: Callable[[str], None], jobs: int) -> Side:
    """Configures and builds the program in a worktree with this checkout's Python environment."""
    venv = Path(os.environ.get("TWINBENCH_VENV") or root / ".venv").resolve()
    if not (venv / "bin" / "python").exists():
        raise ReportError("there is no Python environment with LibTorch", file=str(venv),
                          remedy="run ci/setup first, or set TWINBENCH_VENV")
    start, log = time.monotonic(), folder / "compare_build.log"
    environment = os.environ | {"TWINBENCH_VENV": str(venv)}
    with log.open("w") as file:
        for command in (["cmake", "--preset", PRESET],
                        ["cmake", "--build", "--preset", PRESET, "--target", "twinbench", "--parallel", str(jobs)]):
            if subprocess.run(command, cwd=folder, env=environment, stdout=file, stderr=subprocess.STDOUT).returncode:
                file.flush()
                raise ReportError(f"{name} ({folder.name}) does not build: {log.read_text()[-1500:]}", file=str(log),
                                  remedy="build the revision by hand in that folder")
    say(f"{name}: {folder.name} built in {time.monotonic() - start:.0f} s")
    return Side(name, folder, folder / "build" / PRESET / "bin" / "twinbench")
