"""Files that are whole or absent: written beside their name, synchronised, then renamed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def write_whole(path: Path, data: str | bytes) -> None:
    """Replaces the file at once: a reader, or a kill at any moment, sees the old content or the new."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    with beside.open("wb") as file:
        file.write(data.encode() if isinstance(data, str) else data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)


def write_json(path: Path, value: Any) -> None:
    """As write_whole; NaN is refused."""
    write_whole(path, json.dumps(value, indent=1, allow_nan=False) + "\n")


def tail_of(path: Path, size: int = 4096) -> str:
    """The last bytes of a log as text; empty where there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - size))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def last_line(path: Path) -> str:
    """The last line with a word in it: mostly the reason why a program ended."""
    lines = [line.strip() for line in tail_of(path).splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""
