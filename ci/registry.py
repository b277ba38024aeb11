"""The registry's file, src/components.def, as scripts read it."""
import re
from pathlib import Path


def kinds_of(root: Path) -> dict[str, str]:
    """By component, in the file's order: `kernel`, `composite` or `host`."""
    listed = re.findall(r"^TWINBENCH_COMPONENT\((\w+), (\w+), (\w+),", (root / "src/components.def").read_text(),
                        re.MULTILINE)
    return {f"{pipeline}.{name}": kind for pipeline, name, kind in listed}
