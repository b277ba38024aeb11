"""Lays out the files of a bundle, as they will lie when it is unpacked, and its manifest."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

from bundling.programs import copy_libraries, copy_program, foreign_run_paths, needed_libraries, newest_version
from bundling.sanitizer import add_sanitizer
from suite.plan import UNIT_TESTS

DATA = ("ci/gpu_suite", "ci/counters.json", "ci/documented.json", "ci/kernel_budgets.json", "ci/kernel_counts.json",
        "ci/kernel_sass.json", "data/default.efds", "data/default.efds.valid")
# Claims, for the report; the kernels' lines, by whose text the model finds what of their machine code was counted.
MANY = ("ci/cards/*.json", "scenarios/**/*.yaml", "src/*/*/spec.json", "kernels/**/*.h")
IGNORED = shutil.ignore_patterns("__pycache__", "*.pyc", "*.egg-info")
README = """# Twinbench {revision}, packed for a machine with a GPU

Needs Linux x86-64, glibc {glibc}, Python 3.11 with torch {torch} (and jsonschema, jinja2, matplotlib,
numpy for the report).

    ./gpu_suite --out results                  # 9 minutes; the most valuable first
    ./gpu_suite --out results --resume         # goes on where the last call stopped
    ./gpu_suite --help

Results: results/summary.md, report.html, record.json, results.tar.gz. `--work DIR` keeps the folder of single steps
elsewhere.
"""


def stage(root: Path, build: Path, folder: Path, programs: list[str], revision: str, *,
          with_sanitizer: bool) -> dict[str, Any]:
    """Fills the folder, which is not there yet; returns the manifest it wrote."""
    missing = [str(file) for file in [*(build / "bin" / name for name in programs), root / "data/default.efds"]
               if not file.is_file()]
    if missing:
        raise RuntimeError(f"missing_file: {', '.join(missing)}; remedy: run without --no-build")
    folder.mkdir(parents=True)
    torch = torch_package(root)
    wheel_folders = [torch / "lib", *sorted((torch.parent / "nvidia").glob("*/lib"))]
    for name in programs:
        copy_libraries(needed_libraries(build / "bin" / name, wheel_folders), folder / "lib")
        copy_program(build / "bin" / name, folder / "bin" / name)
    operators = build / "lib/libtwinbench_ops.so"  # for the second timer
    if operators.is_file():
        copy_libraries(needed_libraries(operators, wheel_folders), folder / "lib")
        copy_program(operators, folder / "lib" / operators.name)
    ours = [path for part in ("bin", "lib") for path in sorted((folder / part).glob("*"))]
    if foreign := foreign_run_paths(ours):
        raise RuntimeError(f"internal: run paths that leave the bundle: {'; '.join(foreign)}")
    copy_tree(root / "reports/twinbench_reports", folder / "reports/twinbench_reports")
    copy_tree(root / "reports/schema", folder / "reports/schema")
    copy_tree(root / "ci/suite", folder / "ci/suite")
    for name in (*DATA, *(str(path.relative_to(root)) for many in MANY for path in sorted(root.glob(many)))):
        if (root / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, folder / name)
    (folder / "gpu_suite").symlink_to("ci/gpu_suite")
    sanitizer = add_sanitizer(root, folder / "sanitizer") if with_sanitizer else "left out: --no-sanitizer"
    needs = {
        "torch": torch_version(torch),
        "glibc": newest_version(ours, "GLIBC"),
        "libstdc++": newest_version(ours, "GLIBCXX"),
        "python": "3.11",
        "packages": ["torch", "jsonschema", "jinja2", "matplotlib", "numpy"]}
    (folder / "README.md").write_text(README.format(revision=revision, glibc=needs["glibc"], torch=needs["torch"]))
    manifest = {
        "schema": 1,
        "revision": revision,
        "needs": needs,
        "sanitizer": sanitizer,
        "unit_tests": [name for name in UNIT_TESTS if name in programs],
        "carried_libraries": sorted(path.name for path in (folder / "lib").glob("*")),
        "files": checksums(folder)}
    (folder / "MANIFEST.json").write_text(json.dumps(manifest, indent=1) + "\n")
    return manifest


def copy_tree(source: Path, target: Path) -> None:
    shutil.copytree(source, target, ignore=IGNORED)


def checksums(folder: Path) -> dict[str, str]:
    """sha256 of every file but the manifest, by its name in the bundle."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink()}


def torch_package(root: Path) -> Path:
    """The torch package that the build links: of $TWINBENCH_VENV or .venv."""
    venv = Path(os.environ.get("TWINBENCH_VENV") or root / ".venv")
    found = sorted(venv.glob("lib/python3*/site-packages/torch"))
    if len(found) != 1:
        raise RuntimeError(f"missing_package: torch: {len(found)} below {venv}; remedy: run ci/setup")
    return found[0]


def torch_version(torch: Path) -> str:
    """Release and CUDA build, such as 2.11.0+cu130, from its version file."""
    line = next(line for line in (torch / "version.py").read_text().splitlines() if line.startswith("__version__"))
    return line.split("=", 1)[1].strip().strip("'\"")
