"""Baselines that are slow by what no count sees are found in their machine code, and honest ones are not."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import baseline_code  # noqa: E402

HONEST = """
#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>
float compute(const float* x, int n, std::string& text, std::mutex& guard) {
  std::lock_guard lock(guard);
  std::vector<float> y(x, x + n);
  std::sort(y.begin(), y.end());
  if (n > 1000) throw "too many";
  text = std::to_string(y.front());
  return std::sin(y.front()) + std::pow(y.back(), 1.5f) + std::exp(y[0]) / std::sqrt(y.back());
}
"""


def compiled(folder, source):
    (folder / "one.cpp").write_text(source)
    subprocess.run(["c++", "-std=c++20", "-O2", "-c", "one.cpp", "-o", "one.o"], cwd=folder, check=True)
    return baseline_code.findings([folder / "one.o"])


def test_honest_code_holds_nothing_of_it(tmp_path):
    assert compiled(tmp_path, HONEST) == []


@pytest.mark.parametrize("include, statement, says", [
    ("<cpuid.h>", "unsigned a, b, c, d; __cpuid(0, a, b, c, d); sum += a;", "`cpuid`"),
    ("<immintrin.h>", "for (int i = 0; i < 96; ++i) _mm_pause();", "`pause`"),
    ("<malloc.h>", "mallopt(M_MMAP_THRESHOLD, 0);", "`mallopt`"),
    ("<immintrin.h>", "_mm_clflush(&sum);", "`clflush`"),
    ("<immintrin.h>", "_mm_mfence();", "`mfence`"),
    ("<x86intrin.h>", "while (__rdtsc() % 64) {}", "`rdtsc`"),
    ("<thread>", "std::this_thread::sleep_for(std::chrono::microseconds(50));", "`nanosleep`"),
    ("<sched.h>", "sched_yield();", "`sched_yield`"),
    ("<unistd.h>", "sum += getppid();", "`getppid`"),
    ("<sys/mman.h>", "madvise(&sum, 8, MADV_DONTNEED);", "`madvise`"),
    ("<cmath>", 'asm volatile("fsin");', "`fsin`"),
    ("<cmath>", 'asm volatile("rep; nop");', "`pause`"),
    ("<thread>", "std::thread([&] { sum += 1; }).join();", "`std::thread::_M_start_thread"),
    ("<condition_variable>", "static std::condition_variable once; once.notify_one();", "condition_variable"),
    ("<random>", "sum += std::random_device()();", "`std::random_device"),
    ("<vector>", "static std::vector<unsigned> next(1 << 24); sum += next[n];", "holds `compute("),
    ("<vector>", "static unsigned at = 1; sum += at *= 3;", "holds `compute("),
    ("<vector>", "static thread_local unsigned at = 1; sum += at *= 3;", "holds `compute("),
    ("<filesystem>", 'sum += std::filesystem::exists("/tmp");', "`std::filesystem::status")])
def test_each_way_to_wait_is_found(tmp_path, include, statement, says):
    source = f"#include {include}\n" + HONEST.replace("  std::sort", f"  double sum = 0; {statement}\n  std::sort")
    found = compiled(tmp_path, source)
    assert any(says in line for line in found), found


@pytest.mark.parametrize("name, is_needed", [
    ("at::_ops::add_Tensor::call(at::Tensor const&, at::Tensor const&, c10::Scalar const&)", True),
    ("long const* at::TensorBase::const_data_ptr<long, 0>() const", True),
    ("std::basic_ostream<char, std::char_traits<char> >& std::__ostream_insert<char, std::char_traits<char> >"
     "(std::basic_ostream<char, std::char_traits<char> >&, char const*, long)", True),
    ("c10::operator<<(std::ostream&, c10::DeviceType)", True),
    ("vtable for c10::Error", True),
    ("operator new(unsigned long)", True),
    ("twinbench::fp64_of(at::Tensor const&)", True),
    ("c10::SetCPUAllocator(twinbench::Slow*, unsigned char)", False),
    ("at::addGlobalCallback(at::RecordFunctionCallback)", False),
    ("std::basic_ostream<char, std::char_traits<char> >& std::operator<< <std::char_traits<char> >("
     "std::basic_ostream<char, std::char_traits<char> >&, char const*)", True),
    ("std::terminate()", True),  # of what is noexcept, with sanitizers
    ("at::internal::set_thread_num(int)", False),
    ("torch::Library::_def(c10::FunctionSchema&&, c10::OperatorName*)", False),
    ("c10::Dispatcher::singleton()", False),
    ("vtable for c10::Allocator", False),
    ("at::_ops::add_Tensor::redispatch(c10::DispatchKeySet, at::Tensor const&)", False),
    ("std::vector<int>& other::wait<std::vector<at::_ops::add_Tensor::call> >(int)", False)])
def test_of_libraries_in_cpp_what_is_listed_alone_is_called(name, is_needed):
    assert (baseline_code.foreign_calls(f"one.o:\n                 U {name}\n") == []) == is_needed


def test_the_objects_of_this_build_hold_none_and_nothing_to_look_at_is_an_error(tmp_path, capsys):
    objects = Path(os.environ["TWINBENCH_PROGRAM"]).parents[1] / "src/CMakeFiles/twinbench_baseline.dir"
    assert baseline_code.main([str(objects)]) == 0, capsys.readouterr().out
    assert len(list(objects.rglob("*.o"))) >= 5
    assert baseline_code.main([str(tmp_path)]) == 2
    (tmp_path / "no.o").write_text("no object file")
    assert baseline_code.main([str(tmp_path)]) == 2
