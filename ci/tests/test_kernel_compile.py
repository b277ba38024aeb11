"""A kernel source is compiled once for whoever asks, and anew whenever something it is made of has changed."""
import stat
import sys
import threading
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import kernel_compile  # noqa: E402

# Stands for nvcc: notes that it was called, and keeps what nvcc keeps.
COMPILER = """#!/usr/bin/env bash
set -e
while [ $# -gt 0 ]; do case $1 in --keep-dir) folder=$2 ;; -c) source=$2 ;; esac; shift; done
echo called >> "$(dirname "$0")/calls"
sleep 0.2
grep -q broken "$source" && { echo "error: broken"; exit 1; }
echo "report of $(cat "$source")"
for a in 90 120; do echo "ptx $a" > "$folder/k.compute_$a.ptx"; echo "code $a" > "$folder/k.compute_$a.cubin"; done
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setattr(kernel_compile, "KEPT", tmp_path / "kept")
    monkeypatch.setattr(kernel_compile, "ROOT", tmp_path)
    nvcc = tmp_path / "nvcc"
    nvcc.write_text(COMPILER)
    nvcc.chmod(nvcc.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels/deep.h").write_text("int deep;\n")
    (tmp_path / "kernels/near.h").write_text('#include "kernels/deep.h"\n')
    (tmp_path / "kernels/launch.cu").write_text('#include "near.h"\n#include <cuda.h>\n')
    return tmp_path


def compiled(place, compiler="13.0", extra=()):
    return kernel_compile.compiled(str(place / "nvcc"), compiler, place / "kernels/launch.cu", list(extra))


def calls(place):
    return len((place / "calls").read_text().split())


def test_the_second_who_asks_gets_what_the_first_compiled(place):
    first, second = compiled(place), compiled(place)
    assert calls(place) == 1
    assert first.report == second.report and "report of" in first.report and len(first.ptx) == 2
    assert first.cubins["sm_120"].read_text() == "code 120\n" and first.cubins["sm_90"].read_text() == "code 90\n"


@pytest.mark.parametrize("change", [
    lambda place: (place / "kernels/deep.h").write_text("int deeper;\n"),
    lambda place: (place / "kernels/launch.cu").write_text('#include "near.h"\nint more;\n'), ])
def test_a_changed_source_or_header_however_deep_is_compiled_anew(place, change):
    compiled(place)
    change(place)
    compiled(place)
    assert calls(place) == 2


def test_other_flags_and_another_compiler_are_other_results(place):
    compiled(place)
    compiled(place, extra=["-DBLOCK=128"])
    compiled(place, compiler="13.1")
    assert calls(place) == 3


def test_two_at_once_share_one_compilation(place):
    both = [threading.Thread(target=compiled, args=(place, )) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert calls(place) == 1


def test_what_does_not_compile_is_named_and_never_kept(place):
    (place / "kernels/launch.cu").write_text("broken\n")
    for _ in range(2):
        with pytest.raises(kernel_compile.CompileError, match="launch.cu does not compile"):
            compiled(place)
    assert calls(place) == 2 and not [path for path in (place / "kept").iterdir() if path.is_dir()]


def test_what_nobody_asked_for_in_a_week_goes(place):
    import os
    import time
    compiled(place)
    old = time.time() - kernel_compile.WEEK_S - 10
    for folder in (place / "kept").iterdir():
        os.utime(folder, (old, old))
    kernel_compile.forget_unused()
    assert not list((place / "kept").iterdir())
