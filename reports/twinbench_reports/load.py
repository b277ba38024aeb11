"""Reads a record, refuses what it does not understand, and names the file, the place and the remedy."""

from __future__ import annotations

import functools
import hashlib
import json
import math
import re
import stat
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jsonschema import Draft7Validator
from jsonschema.exceptions import ValidationError, best_match

try:
    import jsonschema_rs
except ImportError:  # a machine without network may have only the slower one
    jsonschema_rs = None

from twinbench_reports.errors import ReportError
from twinbench_reports.text import plain

MAJOR = 1
MOST_BYTES = 150_000_000  # a record of 88 components has a few million
MOST_DIGITS = 30
MOST_DEPTH = 64
_HALF = re.compile("[\ud800-\udfff]")
_REWRITE = "write it again with `twinbench`, or read it with the twinbench-report of the revision that wrote it"


@dataclass(frozen=True)
class Record:
    """A validated record. `block` is its "twinbench" object; `sha256` is of the bytes that were read; `path` is to be
    shown, not opened."""

    path: str
    sha256: str
    root: dict[str, Any]

    @property
    def name(self) -> str:
        """The file's name without its folders, so that a report does not depend on where it was made."""
        return " + ".join(Path(part).name for part in self.path.split(" + "))

    @property
    def block(self) -> dict[str, Any]:
        return self.root["twinbench"]

    @property
    def provenance(self) -> dict[str, Any]:
        return self.block["provenance"]


@functools.cache
def schema_text() -> str:
    """The text of record.v1.schema.json, installed or in a source tree."""
    here = Path(__file__).resolve().parent
    for folder in (here / "schema", here.parent / "schema"):
        candidate = folder / "record.v1.schema.json"
        if candidate.is_file():
            return candidate.read_text(encoding="utf-8")
    raise ReportError("record.v1.schema.json is not installed",
                      remedy="install the package again: pip install ./reports")


@functools.cache
def _validator() -> Draft7Validator:
    return Draft7Validator(json.loads(schema_text()))


@functools.cache
def _quick_validator() -> Any:
    return jsonschema_rs.Draft7Validator(json.loads(schema_text()))


def _keeps_schema(root: Any) -> bool:
    """Whether it is known already that nothing is wrong: fifty times sooner than by asking what is."""
    return jsonschema_rs is not None and _quick_validator().is_valid(root)


def parse_json(text: str | bytes, file: str) -> Any:
    """Strict JSON: NaN and Infinity, which Python would take, are refused; so are a key given twice, half a character
    and deep nesting. Texts come out plain (text.py), so that nothing that prints them has to think of it."""

    def refuse(token: str) -> None:
        raise ReportError(f"{token} is not JSON", file=file, remedy="write null, with the reason beside it")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) != len(pairs):
            names = [key for key, _ in pairs]
            twice = next(key for key in names if names.count(key) > 1)
            raise ReportError(f"the key {twice!r} is there twice", file=file, remedy="keep one of them")
        return result

    def finite(token: str) -> float:
        value = float(token)
        if not math.isfinite(value):
            raise ReportError(f"{token[:40]} is beyond every number", file=file, remedy="write null, with the reason")
        return value

    def whole(token: str) -> int:
        if len(token) > MOST_DIGITS:
            raise ReportError(f"a whole number of {len(token)} digits", file=file, remedy="write null, with the reason")
        return int(token)

    try:
        value = json.loads(text, parse_constant=refuse, object_pairs_hook=unique, parse_float=finite, parse_int=whole)
        return _cleaned(value, file, 0)
    except json.JSONDecodeError as error:
        raise ReportError(f"not JSON: {error.msg}", file=file, path=f"line {error.lineno} column {error.colno}",
                          remedy="the file is cut off or not a record; run the engine again") from error
    except (UnicodeDecodeError, RecursionError) as error:
        raise ReportError(f"not JSON: {error}", file=file, remedy="give a record written by `twinbench`") from error


def _cleaned(value: Any, file: str, depth: int) -> Any:
    if isinstance(value, str):
        if not value.isprintable() and _HALF.search(value):
            raise ReportError(f"{value[:80]!a} holds half a character (a lone surrogate)", file=file,
                              remedy="write UTF-8")
        return plain(value)
    if depth > MOST_DEPTH:
        raise ReportError(f"nested more than {MOST_DEPTH} deep", file=file, remedy="give a file written by `twinbench`")
    if isinstance(value, dict):
        return {_cleaned(key, file, depth): _cleaned(item, file, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_cleaned(item, file, depth + 1) for item in value]
    return value


def read_bytes(path: str | Path) -> bytes:
    """The bytes of a file, or a ReportError that says why not."""
    try:
        status = Path(path).stat()
        size = status.st_size
        if not stat.S_ISREG(status.st_mode):  # a FIFO is waited for, a device read without end
            raise ReportError("it is no regular file", file=str(path), remedy="give a file")
        if size > MOST_BYTES:
            raise ReportError(f"it has {size:,} bytes, and at most {MOST_BYTES:,} are read", file=str(path),
                              remedy="split the record with --filter or --shard, and give the parts")
        return Path(path).read_bytes()
    except OSError as error:
        raise ReportError(f"cannot be read: {error.strerror or error}", file=str(path),
                          remedy="check the path; `twinbench bench --out FILE` writes records") from error


def unpacked(data: bytes, file: str) -> bytes:
    """What gzip had packed, as records of cards are kept; other bytes as they are. Never more than MOST_BYTES."""
    if not data.startswith(b"\x1f\x8b"):
        return data
    stream = zlib.decompressobj(wbits=31)
    try:
        text = stream.decompress(data, MOST_BYTES + 1)
    except zlib.error as error:
        raise ReportError(f"not what gzip packs: {error}", file=file, remedy="copy the file again") from error
    if len(text) > MOST_BYTES:
        raise ReportError(f"unpacked it has more than {MOST_BYTES:,} bytes", file=file,
                          remedy="split the record with --filter or --shard, and give the parts")
    if not stream.eof:
        raise ReportError("gzip's file is cut off", file=file, remedy="copy the file again")
    if stream.unused_data:
        raise ReportError(f"{len(stream.unused_data):,} bytes follow what gzip packed", file=file,
                          remedy="copy the file again: a record is packed in one piece")
    return text


def load_record(path: str | Path) -> Record:
    """Reads and validates one record, also one that gzip has packed."""
    data = unpacked(read_bytes(path), str(path))
    root = parse_json(data, str(path))
    check_record(root, str(path))
    return Record(plain(str(path)), hashlib.sha256(data).hexdigest(), root)


def check_record(root: Any, file: str) -> None:
    """Raises a ReportError where the value is not a record of a version that this package reads."""
    block = root.get("twinbench") if isinstance(root, dict) else None
    if not isinstance(block, dict):
        raise ReportError('it has no "twinbench" object', file=file, path="$",
                          remedy="give a record written by `twinbench`, not a plain Google Benchmark file")
    _check_version(block.get("schema_version"), file)
    errors = [] if _keeps_schema(root) else list(_validator().iter_errors(root))
    if errors:
        worst: ValidationError = best_match(errors)
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        raise ReportError(f"breaks the record schema: {_short(worst.message)}{more}", file=file,
                          path=worst.json_path, remedy=_REWRITE)


def _check_version(version: Any, file: str) -> None:
    path = "$.twinbench.schema_version"
    try:
        major, _minor = (int(part) for part in str(version).split("."))
    except ValueError:
        raise ReportError(f"the schema version {version!r} is not major.minor", file=file, path=path,
                          remedy=_REWRITE) from None
    if major > MAJOR:
        raise ReportError(f"the record has schema version {version}; this package reads {MAJOR}.x", file=file,
                          path=path, remedy="update twinbench-reports to the revision that wrote the record")
    if major < MAJOR:
        raise ReportError(f"schema version {version} was never published", file=file, path=path, remedy=_REWRITE)


def _short(message: str, limit: int = 300) -> str:
    return message if len(message) <= limit else message[: limit - 60] + " ... " + message[-50:]
