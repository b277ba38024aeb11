"""What stands before nvcc: it leaves the assembler's report beside the object and hides nothing else that nvcc says."""
import stat
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import kernel_compile  # noqa: E402

REPORT = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'demo' for 'sm_90'
ptxas info    : Function properties for demo
    0 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 10 registers, used 0 barriers
ptxas info    : Compile time = 1.0 ms
"""
WARNING = "launch.cu(3): warning #177-D: variable was declared but never referenced\n"


@pytest.fixture
def nvcc(tmp_path):
    """A compiler that says what the file `says` holds and ends with the code in `code`."""
    program = tmp_path / "nvcc"
    program.write_text(f"#!/bin/sh\ncat {tmp_path}/says >&2\nexit $(cat {tmp_path}/code)\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)

    def run(says, code=0):
        (tmp_path / "says").write_text(says)
        (tmp_path / "code").write_text(str(code))
        return subprocess.run([sys.executable, kernel_compile.__file__, program, "-c", "launch.cu", "-o",
                               tmp_path / "launch.cu.o"], capture_output=True, text=True)

    run.report = tmp_path / "launch.cu.o.report"
    return run


def test_the_report_lies_beside_the_object_and_is_not_printed(nvcc):
    done = nvcc(REPORT)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert nvcc.report.read_text() == REPORT


def test_a_warning_is_printed_and_is_no_part_of_the_report(nvcc):
    done = nvcc(WARNING + REPORT)
    assert done.stderr == WARNING and nvcc.report.read_text() == REPORT


def test_all_is_printed_of_what_does_not_compile_and_its_code_is_kept(nvcc):
    done = nvcc(REPORT + "error: broken\n", 2)
    assert done.returncode == 2 and done.stderr == REPORT + "error: broken\n"


@pytest.mark.parametrize("command", [[], ["-o"], ["/no/such/compiler", "-c", "launch.cu"]])
def test_what_is_no_compilers_command_is_2(command):
    done = subprocess.run([sys.executable, kernel_compile.__file__, *command], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.startswith("kernel_compile: ")


def test_no_cuobjdump_is_an_error_that_says_where_it_was_looked_for(monkeypatch, tmp_path):
    monkeypatch.setattr(kernel_compile, "find_disassembler", lambda: None)
    with pytest.raises(kernel_compile.CompileError, match="no cuobjdump on PATH"):
        kernel_compile.Compiled(tmp_path / "kernel.o", "").machine_code("sm_90")


def test_an_object_without_a_report_is_an_error(monkeypatch, tmp_path):
    (tmp_path / "CMakeCache.txt").write_text("")
    monkeypatch.setattr(kernel_compile.subprocess, "run",
                        lambda *words, **more: subprocess.CompletedProcess(words, 0, "", ""))
    with pytest.raises(kernel_compile.CompileError, match="remove .* and build it again"):
        kernel_compile.kernels(tmp_path)


def test_a_build_that_fails_is_an_error_with_its_words(tmp_path):
    (tmp_path / "CMakeCache.txt").write_text("no build at all")
    with pytest.raises(kernel_compile.CompileError, match="--target twinbench_kernels"):
        kernel_compile.kernels(tmp_path)
