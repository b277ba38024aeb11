"""The folder of kept runs: files are added and never changed, and the index over them can be made again at any time."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from twinbench_reports.errors import ReportError
from twinbench_reports.filters import chosen
from twinbench_reports.load import parse_json, read_bytes
from twinbench_reports.store.records import put_once
from twinbench_reports.store.run import Run, run_of

INDEX = "index.sqlite3"
_VERSION = 1  # of the index: another one is made anew
_TABLES = """
CREATE TABLE runs (id INTEGER PRIMARY KEY, file TEXT UNIQUE, utc TEXT, revision TEXT, machine TEXT, source TEXT);
CREATE TABLE series (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
CREATE TABLE points (run INTEGER, series INTEGER, seconds REAL, PRIMARY KEY (series, run)) WITHOUT ROWID;
"""
_WAIT_S = 60.0


@dataclass(frozen=True)
class Trend:
    """The times of one series on one machine, oldest first."""

    series: str
    machine: str
    runs: list[tuple[str, str]] = field(default_factory=list)  # utc, revision
    seconds: list[float] = field(default_factory=list)


class Store:
    """A folder of runs. Several may add at once; nothing in it is ever written over."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.refused: list[str] = []  # files that are no runs, and why: they stay where they are

    def add(self, run: Run) -> tuple[Path, bool]:
        """(its file, whether it is new). The file appears whole or not at all."""
        target = self.folder / "runs" / run.folder_name / run.file_name
        return target, put_once(target, run.text().encode())

    def runs(self) -> list[Run]:
        """Every run, by machine and time. What cannot be read is named in `refused`."""
        found = []
        for _, path in self._files():
            try:
                found.append(run_of(parse_json(read_bytes(path), str(path)), str(path)))
            except ReportError as error:
                self.refused.append(str(error))
        return sorted(found, key=lambda run: (run.machine, run.utc, run.file_name))

    def refresh(self) -> int:
        """Indexes what is new; how many runs the index holds. What cannot be read is named in `refused`."""
        if not self.folder.is_dir():
            raise ReportError("there is no such folder", file=str(self.folder),
                              remedy="keep a run in it first: twinbench-report keep RECORD --to DIR")
        with self._index() as index:
            known = {row[0] for row in index.execute("SELECT file FROM runs")}
            names = {name: number for number, name in index.execute("SELECT id, name FROM series")}
            last = index.execute("SELECT COALESCE(MAX(id), 0) FROM runs").fetchone()[0]
            runs, series, points = [], [], []
            for file, path in self._files():
                if file in known:
                    continue
                try:
                    run = run_of(parse_json(read_bytes(path), str(path)), str(path))
                except ReportError as error:
                    self.refused.append(str(error))
                    continue
                last += 1
                runs.append((last, file, run.utc, run.revision, run.machine, run.source))
                for name, seconds in run.points.items():
                    if name not in names:
                        names[name] = len(names) + 1
                        series.append((names[name], name))
                    points.append((last, names[name], seconds))
            index.executemany("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?)", runs)
            index.executemany("INSERT INTO series VALUES (?, ?)", series)
            index.executemany("INSERT INTO points VALUES (?, ?, ?)", points)
            return len(known) + len(runs)

    def trends(self, pattern: str) -> list[Trend]:
        """Every matching series of every machine, by name."""
        found: list[Trend] = []
        with self._index() as index:
            numbers = {name: number for number, name in index.execute("SELECT id, name FROM series ORDER BY name")}
            for name in chosen(pattern, numbers):
                for machine, utc, revision, seconds in index.execute(
                        "SELECT machine, utc, revision, seconds FROM points JOIN runs ON runs.id = run "
                        "WHERE series = ? ORDER BY machine, utc, file", (numbers[name],)):
                    if not found or (found[-1].series, found[-1].machine) != (name, machine):
                        found.append(Trend(name, machine))
                    found[-1].runs.append((utc, revision))
                    found[-1].seconds.append(seconds)
        return found

    def _files(self) -> Iterator[tuple[str, str]]:
        """(path below the folder, path) of every run, in the order of names: half-written ones have another name."""
        runs = self.folder / "runs"
        for machine in sorted(os.listdir(runs)) if runs.is_dir() else []:
            if not (runs / machine).is_dir():
                self.refused.append(f"{runs / machine}: it is no folder of a machine's runs: nobody reads it; remedy: "
                                    "move it elsewhere")
                continue
            for name in sorted(os.listdir(runs / machine)):
                if name.endswith(".json"):
                    yield f"{machine}/{name}", f"{runs}/{machine}/{name}"

    @contextlib.contextmanager
    def _index(self) -> Iterator[sqlite3.Connection]:
        """The index, for this process alone until it is left; made anew where it is broken or of another version."""
        path = self.folder / INDEX
        try:
            try:
                connection = _begun(path)
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError:
                path.unlink(missing_ok=True)  # it holds nothing that the files do not
                connection = _begun(path)
            with contextlib.closing(connection), connection:
                if connection.execute("PRAGMA user_version").fetchone()[0] != _VERSION:
                    for table in ("runs", "series", "points"):
                        connection.execute(f"DROP TABLE IF EXISTS {table}")
                    for statement in filter(str.strip, _TABLES.split(";")):
                        connection.execute(statement)
                    connection.execute(f"PRAGMA user_version = {_VERSION}")
                yield connection
        except sqlite3.Error as error:
            raise ReportError(f"the index cannot be used: {error}", file=str(path),
                              remedy="wait for the other program, or delete the index: it is made again") from error


def _begun(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_WAIT_S, isolation_level=None)
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.Error:
        connection.close()
        raise
    return connection
