"""Writes files: whole under their name, or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

from twinbench_reports.errors import ReportError


def write_file(path: Path, content: str | bytes) -> None:
    """Replaces a file by the content, at once and only when all of it is on the disk. A link is followed, permissions
    are kept; what is no regular file (a device, a FIFO, a folder) is refused."""
    target = Path(os.path.realpath(path))
    data = content.encode() if isinstance(content, str) else content
    try:
        make_folder(target.parent)
        mode = target.stat().st_mode if target.exists() else None
        if mode is not None and not stat.S_ISREG(mode):
            raise ReportError("it is no regular file, and is not replaced", file=str(path),
                              remedy="name a file, or a name that is free")
        name = target.parent / f"{target.name[:100]}.partial-{secrets.token_hex(8)}"
        try:
            with os.fdopen(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
                file.write(data)
                os.fchmod(file.fileno(), 0o644 if mode is None else stat.S_IMODE(mode))
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, target)
        except BaseException:  # an interruption too: nothing is left behind
            name.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ReportError(f"cannot be written: {error.strerror or error}", file=str(path),
                          remedy="name another file, or make room") from error


def append_file(path: Path, text: str) -> None:
    """Adds to the end of a file that others write to as well, as $GITHUB_STEP_SUMMARY."""
    make_folder(path.parent)
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise ReportError(f"cannot be written: {error.strerror or error}", file=str(path),
                          remedy="name another file, or make room") from error


def make_folder(folder: Path) -> None:
    """Makes the folder and those above it, where they are missing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ReportError(f"cannot be made: {error.strerror or error}", file=str(folder),
                          remedy="name another folder") from error
