"""Whole records of a history, compressed, each under the checksum of its bytes: the site's pages are made of them."""

from __future__ import annotations

import gzip
import hashlib
import os
import tempfile
from pathlib import Path

from twinbench_reports.errors import ReportError
from twinbench_reports.load import Record, check_record, parse_json, read_bytes, unpacked

_REMEDY = "keep the record again: twinbench-report keep RECORD --to DIR"


def put_once(target: Path, data: bytes) -> bool:
    """Whether the file is new. It appears whole or not at all, and is never written over."""
    if target.exists():
        return False
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("wb", dir=target.parent, prefix=".part-") as part:
            part.write(data)
            part.flush()
            os.fsync(part.fileno())
            os.link(part.name, target)  # refuses to replace, where a rename would not
    except FileExistsError:
        return False
    except OSError as error:
        raise ReportError(f"cannot be written: {error.strerror}", file=str(target),
                          remedy="check the folder's permissions and space") from error
    return True


def keep_record(folder: Path, data: bytes) -> Path:
    """Keeps the bytes of a record that has been checked; a second time changes nothing."""
    target = kept_at(folder, hashlib.sha256(data).hexdigest())
    put_once(target, gzip.compress(data, 6, mtime=0))
    return target


def kept_at(folder: Path, sha256: str) -> Path:
    """Where the record of that checksum lies, if it does."""
    return folder / "records" / f"{sha256}.json.gz"


def kept_record(folder: Path, sha256: str) -> Record:
    """The record, its bytes held against the checksum in its name, and against the schema: whoever can write into the
    folder can also choose the name."""
    path = kept_at(folder, sha256)
    try:
        data = unpacked(read_bytes(path), str(path))
    except ReportError as error:
        raise ReportError(error.problem, file=str(path), remedy=_REMEDY) from error
    if hashlib.sha256(data).hexdigest() != sha256:
        raise ReportError("it is not what its name says", file=str(path), remedy=_REMEDY)
    root = parse_json(data, str(path))
    check_record(root, str(path))
    return Record(f"{sha256[:12]}.json", sha256, root)
