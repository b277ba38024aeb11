"""Shared fixtures: records on disk, and the command line run in process."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import synthetic_history

from twinbench_reports.cli import main
from twinbench_reports.documents.load import load_documents, tree
from twinbench_reports.load import Record, load_record
from twinbench_reports.render.figures.drawing import Drawing
from twinbench_reports.site.build import build
from twinbench_reports.store.folder import Store
from twinbench_reports.store.run import Run


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
    """Figures take nearly all of a page's time. Tests of words get an empty one; those marked `drawn` the real ones,
    and so do fixtures of a whole module."""
    if not request.node.get_closest_marker("drawn"):
        monkeypatch.setattr(Drawing, "inline_svg", lambda drawing: f'<svg role="img" aria-label="{drawing.key}"></svg>')


@pytest.fixture(scope="session")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """15 runs of one machine, 3 of another, one of another program: three components, one of them slower later."""
    folder = tmp_path_factory.mktemp("history") / "kept"
    root = synthetic_history.of_components(synthetic_history.SLOWER, "energy_flow.energy_carrier", "sem.sinkhorn")
    synthetic_history.fill(folder, 15, root=root)
    synthetic_history.fill(folder, 3, root=root, cpu_model="AMD EPYC 7763")
    Store(folder).add(Run("2026-08-02T00:00:00Z", "", "bench-1, 2 cores", "google_benchmark", {"BM_Scan/1024": 1e-5}))
    return folder


@pytest.fixture(scope="session")
def site(history: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its site, with real figures."""
    out = tmp_path_factory.mktemp("site")
    build(history, out, documents=load_documents(tree()), tree=tree(), jobs=1)
    return out
