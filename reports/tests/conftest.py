"""Shared fixtures: records on disk, and the command line run in process."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from twinbench_reports.cli import main
from twinbench_reports.load import Record, load_record
from twinbench_reports.render.figures.drawing import Drawing


@pytest.fixture
def save(tmp_path: Path) -> Callable[..., Path]:
    """Writes a record and returns its path."""

    def write(root: dict[str, Any], name: str = "record.json") -> Path:
        path = tmp_path / name
        path.write_text(json.dumps(root), encoding="utf-8")
        return path

    return write


@pytest.fixture
def load(save: Callable[..., Path]) -> Callable[..., Record]:
    """Writes and reads a record."""
    return lambda root, name="record.json": load_record(save(root, name))


@pytest.fixture
def cli() -> Callable[..., int]:
    """Runs the command line; argparse's own exits are returned too."""

    def run(*arguments: object) -> int:
        try:
            return main([str(argument) for argument in arguments])
        except SystemExit as stop:
            return int(stop.code or 0)

    return run


@pytest.fixture(autouse=True)
def words_only(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures take nearly all of a page's time. Tests of words get an empty one; those marked `drawn`, and what fixtures
    of a whole module make, the real ones."""
    if not request.node.get_closest_marker("drawn"):
        monkeypatch.setattr(Drawing, "inline_svg", lambda drawing: f'<svg role="img" aria-label="{drawing.key}"></svg>')
