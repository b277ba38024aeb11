"""How kernels are launched, and the occupancy that follows: block size from the PTX, dynamic shared memory from the
kernel's own header, theoretical occupancy from CUDA's calculator (ci/occupancy.cpp). Needs g++, no GPU."""
import functools
import os
import re
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ENTRY = re.compile(r"\.entry (\S+?)\(.*?^\}", re.S | re.M)
MOST_THREADS = re.compile(r"\.maxntid (\d+)(?:, (\d+))?(?:, (\d+))?")


class LaunchError(Exception):
    pass


def launches_in_ptx(text: str) -> dict[str, tuple[int, bool]]:
    """Mangled kernel name -> (threads a block may have, whether it has dynamic shared memory)."""
    found = {}
    for match in ENTRY.finditer(text):
        bound = MOST_THREADS.search(match.group(0))
        if bound is None:
            raise LaunchError(f"{match.group(1)} has no launch bound: give it __launch_bounds__, its block size")
        threads = 1
        for part in bound.groups():
            threads *= int(part or 1)
        # The SIMT layer's one array of dynamic shared memory.
        found[match.group(1)] = (threads, "dynamic_storage" in match.group(0))
    return found


def kernel_type(demangled: str) -> str | None:
    """The kernel's type, where it is one of the SIMT layer."""
    match = re.match(r"(?:void )?twinbench::kernels::simt::run<([\w:]+)", demangled)
    return match.group(1) if match else None


def folder_of(type_name: str, kernels: Path) -> Path:
    """Where a kernel lies, which its namespace says; all of `kernels` where there is no such folder."""
    spaces = type_name.split("::")[1:-1]
    folder = kernels / "common" if spaces == ["kernels"] else kernels.joinpath(*spaces)
    return folder if spaces and folder.is_dir() else kernels


def header_of(type_name: str, kernels: Path) -> Path:
    short, folder = type_name.rsplit("::", 1)[-1], folder_of(type_name, kernels)
    for header in sorted(folder.rglob("*.h")):
        if re.search(rf"\bstruct {short}\b[^;]*\{{", header.read_text()):
            return header
    raise LaunchError(f"no header under {folder} defines {type_name}")


CONSTANT = re.compile(r"constexpr (?:int|unsigned|std::int64_t) (k\w+) = ([^;]+);")


def constants(paths: list[Path]) -> dict[str, int]:
    """Integer constants by bare name, of the last file that defines them, also in terms of later files' constants;
    those this cannot work out are left out."""
    values: dict[str, int] = {}
    waiting: dict[str, str] = {}
    for path in paths:
        for name, expression in CONSTANT.findall(path.read_text()):
            values.pop(name, None)
            try:
                values[name] = product_of(expression, values)
            except LaunchError:
                waiting[name] = expression
    for name, expression in waiting.items():
        try:
            values.setdefault(name, product_of(expression, values))
        except LaunchError:
            continue
    return values


def product_of(expression: str, values: dict[str, int]) -> int:
    """An integer expression, or dim3(x, y, z) as its number of threads."""
    text = re.sub(r"\b\w+::", "", expression).replace("/", "//").strip()
    text = re.sub(r"^dim3\((.*)\)$", lambda match: "*".join(f"({part})" for part in match[1].split(",")), text)
    names = set(re.findall(r"[A-Za-z_]\w*", text))
    if not re.fullmatch(r"[\w\s+*/()-]+", text) or not names <= values.keys():
        raise LaunchError(f"'{expression}' is no constant that this can work out")
    return int(eval(text, {"__builtins__": {}}, values))  # names, integers and + - * / only: checked above


def arguments_at(text: str, start: int) -> list[str]:
    """The arguments of the call whose opening parenthesis lies just before `start`."""
    arguments, depth, begin = [], 0, start
    for at in range(start, len(text)):
        if text[at] in "({":
            depth += 1
        elif text[at] in ")}":
            depth -= 1
        if (text[at] == "," and depth == 0) or depth < 0:
            arguments.append(" ".join(text[begin:at].split()))
            begin = at + 1
        if depth < 0:
            break
    return arguments


def check_launch_sites(sources: list[Path], kernels: Path, threads_of_type: dict[str, int]) -> None:
    """Every simt::launch starts blocks of as many threads as the kernel's launch bound, from which occupancy is
    worked out. `threads_of_type`: kernel's type -> launch bound. A source launches kernels of its own folder, its
    pipeline's, or shared ones."""
    for source in sources:
        text = source.read_text()
        near = list(dict.fromkeys([kernels / "common", source.parent.parent, source.parent]))
        seen = list(dict.fromkeys([kernels / "common", source.parent.parent / "common", source.parent]))
        values = constants([*(header for folder in seen for header in sorted(folder.glob("*.h"))), source])
        threads_of = {name.rsplit("::", 1)[-1]: threads for folder in near for name, threads in threads_of_type.items()
                      if folder_of(name, kernels) == folder}
        for match in re.finditer(r"simt::launch\(", text):
            kernel, _, block = arguments_at(text, match.end())[:3]
            threads = product_of(block, values)
            for name in names_of(kernel, text, match.start()):
                if threads_of.get(name) != threads:
                    raise LaunchError(f"{source.name} launches {name} with blocks of {threads} threads, its "
                                      f"kMaxThreads is {threads_of.get(name)}: make them equal")


def names_of(kernel: str, text: str, at: int) -> list[str]:
    """The kernels that the launch at `at` may start: its own, or those that its function gives to the lambda around
    it, `const auto start = [&](auto kernel) { ... };`, by the lambda's name."""
    if kernel.endswith("{}"):
        return [kernel.removesuffix("{}").rsplit("::", 1)[-1]]
    around = list(re.finditer(r"const auto (\w+) = \[&\](?:<class \w+>)?\(\w+ (\w+)\)", text[:at]))
    if not around or around[-1][2] != kernel:
        raise LaunchError(f"'{kernel}' is launched, which is neither a kernel nor what a lambda around it is given")
    body = text[at:]
    given = re.findall(rf"\b{around[-1][1]}\(([\w:]+)\{{\}}\)", body[:(body + "\n}\n").index("\n}\n")])
    if not given:
        raise LaunchError(f"no kernel is given to {around[-1][1]}(), which launches '{kernel}'")
    return [name.rsplit("::", 1)[-1] for name in given]


def build(source: str, flags: list[str], folder: str) -> Path:
    """A small program in that folder. `source` is C++ text."""
    path, program = Path(folder) / "program.cpp", Path(folder) / "program"
    path.write_text(source)
    done = subprocess.run(["g++", "-std=c++20", "-O1", *flags, str(path), "-o", str(program)], capture_output=True,
                          text=True)
    if done.returncode != 0:
        raise LaunchError(done.stderr.strip())
    return program


def printed_by(program: Path, given: str = "") -> str:
    ran = subprocess.run([str(program)], input=given, capture_output=True, text=True)
    if ran.returncode != 0:
        raise LaunchError(ran.stderr.strip())
    return ran.stdout


def dynamic_shared_bytes(types: list[str], kernels: Path = ROOT / "kernels") -> dict[str, int]:
    """Type -> bytes at the documents' sizes, as the kernel's header computes them."""
    if not types:
        return {}
    headers = sorted({str(header_of(name, kernels).resolve()) for name in types})
    # A split kernel may define the sizes in a later header of the same folder.
    headers += sorted(str(path.resolve()) for header in headers for path in Path(header).parent.glob("*_kernel.h"))
    lines = [f'#include "{header}"' for header in dict.fromkeys(headers)] + ["#include <iostream>", "int main() {"]
    lines += [f"  std::cout << {name}::documented_shared_bytes() << '\\n';" for name in types] + ["}"]
    try:
        with tempfile.TemporaryDirectory() as folder:
            flags = [f"-I{kernels.resolve().parent}", f"-I{ROOT}"]
            printed = printed_by(build("\n".join(lines) + "\n", flags, folder))
    except LaunchError as error:
        raise LaunchError("a kernel with dynamic shared memory states documented_shared_bytes() (see kernels/common/"
                          f"simt.h); of {', '.join(types)} one does not:\n{error}") from None
    return dict(zip(types, map(int, printed.split())))


def cuda_include() -> str:
    """The folder with cuda_occupancy.h: a toolkit's, or the CUDA wheel's beside torch."""
    venv = Path(os.environ.get("TWINBENCH_VENV", ROOT / ".venv"))
    folders = [Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "include", Path("/usr/local/cuda/include"),
               *sorted(venv.glob("lib/python3*/site-packages/nvidia/cu13/include"))]
    for folder in folders:
        if (folder / "cuda_occupancy.h").exists():
            return str(folder)
    raise LaunchError(f"no cuda_occupancy.h in {', '.join(map(str, folders))}; ci/setup installs it with torch")


@functools.cache
def calculator() -> tuple[Path, tempfile.TemporaryDirectory]:
    """CUDA's calculator as a program, compiled once a process, and the folder that goes with the process."""
    folder = tempfile.TemporaryDirectory()
    source = (ROOT / "ci" / "occupancy.cpp").read_text()
    return build(source, ["-isystem", cuda_include()], folder.name), folder


def occupancy(rows: list[tuple[str, int, int, int, int]]) -> list[tuple[int, int, int]]:
    """(architecture, registers, static bytes, dynamic bytes, threads) -> (blocks, warps, most warps) an SM can hold."""
    if not rows:
        return []
    given = "".join(" ".join(map(str, row)) + "\n" for row in rows)
    return [tuple(map(int, line.split())) for line in printed_by(calculator()[0], given).splitlines()]
