"""The archive: the same bytes for the same files, in a form that any Python and tar unpack."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

LARGEST = 60_000_000  # bytes


def write_archive(folder: Path, out: Path) -> int:
    """Writes folder/ as a .tar.xz in one step; returns its size. Owner, order and times are fixed."""
    out.parent.mkdir(parents=True, exist_ok=True)
    beside = out.with_name(f".{out.name}.{os.getpid()}.partial")
    with tarfile.open(beside, "w:xz", preset=6) as archive:
        for path in [folder, *sorted(folder.rglob("*"))]:
            entry = archive.gettarinfo(path, arcname=str(path.relative_to(folder.parent)))
            entry.uid = entry.gid = entry.mtime = 0
            entry.uname = entry.gname = ""
            if entry.isfile():
                with path.open("rb") as file:
                    archive.addfile(entry, file)
            else:
                archive.addfile(entry)
    beside.replace(out)
    return out.stat().st_size
