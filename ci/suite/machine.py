"""What this machine has: the torch wheel, its CUDA libraries, the report's packages, a GPU, and the bundle unharmed."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import platform
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from suite.errors import SuiteError

TORCH_RELEASE = "2.11.0"
# What the report package imports. jsonschema: every record is read through it; the others: the page and its figures.
REPORT_PACKAGES = ("jsonschema", "jinja2", "matplotlib", "numpy")
_GPU_FIELDS = ("name", "uuid", "driver_version", "memory.total", "pstate", "temperature.gpu", "power.limit",
               "clocks.sm", "clocks.max.sm", "compute_mode")
_FIND_TORCH = "import importlib.util as u; s = u.find_spec('torch'); print(s.origin if s else '')"


def torch_folder() -> Path:
    """The torch package of the Python that runs the suite, else of the first python3 on PATH."""
    spec = importlib.util.find_spec("torch")
    origin = spec.origin if spec else ""
    other = shutil.which("python3")
    if not origin and other:
        origin = subprocess.run([other, "-c", _FIND_TORCH], capture_output=True, text=True, timeout=60).stdout.strip()
    if not origin:
        raise SuiteError("missing_package", "torch", "not importable by this python3",
                         f"python3 -m pip install torch=={TORCH_RELEASE}")
    return Path(origin).resolve().parent


def torch_version(folder: Path) -> str:
    """Its version, from its own version file: importing torch takes seconds."""
    scope: dict[str, Any] = {}
    for line in (folder / "version.py").read_text().splitlines():
        if line.startswith("__version__"):
            exec(line, scope)  # noqa: S102 one assignment of the installed wheel
    version = str(scope.get("__version__", "unknown"))
    if version.split("+")[0] != TORCH_RELEASE:
        raise SuiteError(
            "version_mismatch", "torch", version,
            f"the programs are linked against {TORCH_RELEASE}: python3 -m pip install torch=={TORCH_RELEASE}")
    return version


def library_folders(root: Path, torch: Path) -> list[Path]:
    """Where the programs find LibTorch, the wheel's CUDA libraries, and the libraries the bundle carries."""
    wheel = sorted((torch.parent / "nvidia").glob("*/lib"))
    return [torch / "lib", *wheel, *([root / "lib"] if (root / "lib").is_dir() else [])]


def environment_of(root: Path, torch: Path, revision: str) -> dict[str, str]:
    """The environment of every program the suite starts."""
    variables = dict(os.environ)
    given = [variables["LD_LIBRARY_PATH"]] if variables.get("LD_LIBRARY_PATH") else []
    variables["LD_LIBRARY_PATH"] = os.pathsep.join([*map(str, library_folders(root, torch)), *given])
    variables["PYTHONPATH"] = os.pathsep.join([str(root / "reports"), *filter(None, [variables.get("PYTHONPATH")])])
    variables["PYTHONDONTWRITEBYTECODE"] = "1"
    if not {"TWINBENCH_WAIT_POLICY", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT"} & variables.keys():
        # the program's own default: it need not start again, which a sanitizer cannot follow
        variables["OMP_WAIT_POLICY"] = "PASSIVE"
    if revision:
        variables["TWINBENCH_REVISION"] = revision
    return variables


def missing_packages() -> list[str]:
    """Report packages this Python lacks."""
    return [name for name in REPORT_PACKAGES if importlib.util.find_spec(name) is None]


def manifest(root: Path) -> dict[str, Any]:
    """The bundle's manifest; empty in a checkout, which has none."""
    file = root / "MANIFEST.json"
    return json.loads(file.read_text()) if file.is_file() else {}


def check_bundle(root: Path, listed: Mapping[str, Any]) -> None:
    """Every file is there and unharmed, and glibc is new enough."""
    for name, checksum in listed.get("files", {}).items():
        path = root / name
        if not path.is_file():
            raise SuiteError("bad_bundle", name, "missing", "unpack the archive again")
        if hashlib.sha256(path.read_bytes()).hexdigest() != checksum:
            raise SuiteError("bad_bundle", name, "its checksum is not the manifest's", "unpack the archive again")
    needed, present = listed.get("needs", {}).get("glibc", ""), platform.libc_ver()[1]
    if needed and present and _numbers(present) < _numbers(needed):
        raise SuiteError("version_mismatch", "glibc", present,
                         f"the programs need {needed} or newer: build on this machine instead")


def gpu_status(log: Path) -> dict[str, str]:
    """What nvidia-smi says of the first GPU; {"status": why not} where it says nothing. Its whole answer goes to the
    log."""
    program = shutil.which("nvidia-smi")
    if not program:
        return {"status": "no nvidia-smi on PATH"}
    try:
        answer = subprocess.run([program, f"--query-gpu={','.join(_GPU_FIELDS)}", "--format=csv,noheader,nounits"],
                                capture_output=True, text=True, timeout=30)
        log.write_text(answer.stdout + answer.stderr
                       + subprocess.run([program, "-q"], capture_output=True, text=True, timeout=30).stdout)
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"status": f"nvidia-smi: {error}"}
    values = [value.strip() for value in (answer.stdout.splitlines() or [""])[0].split(",")]
    if answer.returncode != 0 or len(values) != len(_GPU_FIELDS):
        return {"status": f"nvidia-smi ended with {answer.returncode}: {(answer.stdout + answer.stderr).strip()[:200]}"}
    return dict(zip(_GPU_FIELDS, values, strict=True))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
