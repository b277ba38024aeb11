"""What must be equal before two records may be put together, or their times compared."""

from __future__ import annotations

from typing import Any

Provenance = dict[str, Any]

# A change here starts a new segment of a history: the times are of another build, not of another machine.
TOOLCHAIN = ("build_type", "compiler", "compiler_flags", "cxx_standard", "libtorch", "cuda_toolkit", "cuda_runtime",
             "driver", "cudnn")


def model(provenance: Provenance) -> dict[str, Any]:
    """The model of the machine: times of another model are never compared."""
    gpu = provenance["gpu"] or {}
    return {"cpu_model": provenance["cpu_model"], "cores": provenance["cores"], "threads": provenance["threads"],
            "cpu_flags_used": provenance["cpu_flags_used"], "gpu.name": gpu.get("name")}


def board(provenance: Provenance) -> dict[str, Any]:
    """The machine itself, as far as a record tells."""
    gpu = provenance["gpu"] or {}
    return model(provenance) | {"gpu.uuid_hash": gpu.get("uuid_hash")}


def toolchain(provenance: Provenance) -> dict[str, Any]:
    """What built and runs the code."""
    return {key: provenance[key] for key in TOOLCHAIN}


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """The keys of two of the above that differ, with both values."""
    return [f"{key}: {one[key]!r} and {other[key]!r}" for key in one if one[key] != other[key]]


def same_code(one: Provenance, other: Provenance) -> bool:
    """Whether both ran the same committed source: then a difference in time is the environment's."""
    return one["revision"] == other["revision"] and not one["dirty"] and not other["dirty"] and bool(one["revision"])


def label(provenance: Provenance) -> str:
    """The machine in a few words."""
    gpu = provenance["gpu"]
    cpu = f"{provenance['cpu_model']}, {provenance['threads']} of {provenance['cores']} cores"
    return f"{gpu['name']} · {cpu}" if gpu else cpu
