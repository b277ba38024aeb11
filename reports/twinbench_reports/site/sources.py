"""The files that make up a component in a source tree: whatever lies in a folder of its name."""

from __future__ import annotations

from pathlib import Path

_LAYERS = ("src", "baselines", "optimized", "kernels")


def source_files(root: Path | None, component: str) -> list[str]:
    """Paths below the root, layer by layer; none without a tree."""
    if root is None:
        return []
    pipeline, _, name = component.partition(".")
    if not pipeline.isidentifier() or not name.isidentifier():
        return []
    return [path.relative_to(root).as_posix() for layer in _LAYERS
            for path in sorted((root / layer / pipeline / name).rglob("*")) if path.is_file()]
