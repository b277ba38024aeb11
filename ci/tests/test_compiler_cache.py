"""What a command line must look like for the compiler cache to serve other checkouts and the other preset: no folder of
this checkout outside of the paths that the cache makes relative, and in the CUDA build the CPU build's own line for
every object but the few that know CUDA."""
import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ["TWINBENCH_PROGRAM"]).parents[1]
REWRITTEN = ("-I", "-isystem", "-include", "-o", "-c")  # options whose path ccache makes relative to its base folder
OF_THE_CHECKOUT = ("harness/record/source_folder.cpp",)  # says where the sources are; compiles in no time
KNOW_CUDA = ("src/registry.cpp", "optimized/common/operators.cpp")  # compiled in both presets, not alike


def commands_of(build: Path) -> dict[str, list[str]]:
    """Object file -> words of its command."""
    lines = [shlex.split(entry["command"]) for entry in json.loads((build / "compile_commands.json").read_text())]
    return {words[words.index("-o") + 1]: words for words in lines}


def fixed_words(words: list[str], root: Path) -> list[str]:
    """Words that hold the checkout's folder and that the cache takes as they are."""
    free = {index for index, word in enumerate(words) for option in REWRITTEN
            if word.startswith(option + "/") or words[index - 1] == option}
    return [word for index, word in enumerate(words) if index not in free and str(root) in word]


def source_of(words: list[str]) -> str:
    return str(Path(words[words.index("-c") + 1]))


def differing(one: Path, other: Path) -> list[str]:
    """Sources whose objects both builds have, compiled by different command lines."""
    ours, theirs = commands_of(one), commands_of(other)
    folder = lambda words, build: [word.replace(str(build), "BUILD") for word in words]
    return sorted({os.path.relpath(source_of(ours[name]), ROOT) for name in ours.keys() & theirs.keys()
                   if folder(ours[name], one) != folder(theirs[name], other)})


def test_no_object_depends_on_the_checkouts_folder():
    found = {source: fixed for words in commands_of(BUILD).values() if (fixed := fixed_words(words, ROOT))
             and (source := os.path.relpath(source_of(words), ROOT)) not in OF_THE_CHECKOUT}
    assert not found


def test_the_launcher_tells_the_cache_what_to_leave_out():
    rules = (BUILD / "CMakeFiles/rules.ninja").read_text() + (BUILD / "build.ninja").read_text()
    if "ccache" not in rules:
        pytest.skip("no ccache on this machine")
    for setting in (f"CCACHE_BASEDIR={ROOT}", "CCACHE_NOHASHDIR=1", "CCACHE_COMPILERCHECK=content",
                    "CCACHE_INODECACHE=1"):
        assert setting in rules


@pytest.mark.parametrize("word, seen", [
    (f'-DPLACE="{ROOT}"', True), (f"-fdebug-prefix-map={ROOT}=.", True), (f"-isystem={ROOT}/include", True),
    (f"-I{ROOT}", False), (f"-I{ROOT}/build", False), ("-DPLACE=1", False)])
def test_a_planted_folder_is_seen(word, seen):
    words = ["g++", word, "-isystem", f"{ROOT}/.venv/include", "-include", f"{ROOT}/x.hxx",
             "-o", "x.o", "-c", f"{ROOT}/x.cpp"]
    assert bool(fixed_words(words, ROOT)) == seen


def write_commands(build: Path, **objects: str) -> Path:
    build.mkdir()
    (build / "compile_commands.json").write_text(json.dumps(
        [{"command": f"g++ {more} -o {name}.o -c {ROOT}/{name}.cpp".replace("BUILD", str(build))}
         for name, more in objects.items()]))
    return build


def test_a_planted_difference_between_builds_is_seen(tmp_path):
    one = write_commands(tmp_path / "one", alike="-IBUILD/generated", other="-DWITH=1", alone="-DWITH=1")
    other = write_commands(tmp_path / "two", alike="-IBUILD/generated", other="")
    assert differing(one, other) == ["other.cpp"]


@pytest.mark.skipif("TWINBENCH_WITH_CUDA:BOOL=ON" not in (BUILD / "CMakeCache.txt").read_text(),
                    reason="a build without CUDA")
def test_only_what_knows_cuda_is_compiled_for_it(tmp_path):
    done = subprocess.run(["cmake", "--preset", "cpu", "-B", str(tmp_path)], cwd=ROOT, capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == 0, done.stderr
    assert differing(BUILD, tmp_path) == sorted(KNOW_CUDA)
    added = {source_of(commands_of(BUILD)[name]) for name in commands_of(BUILD).keys() - commands_of(tmp_path).keys()}
    ours = re.compile(r"^(kernels/.*\.cu|harness/sanitizer_probe/.*|harness/device/cuda/.*|optimized/.*/cuda\.cpp)$")
    assert [source for source in sorted(added) if not ours.match(os.path.relpath(source, ROOT))] == []
