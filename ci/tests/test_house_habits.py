"""Each house habit's check fires on a planted breach and is silent on what only looks like one."""
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "ci"), str(ROOT / "ci/lint")]
import argument_structs  # noqa: E402
import habits  # noqa: E402
import headers_alone  # noqa: E402
import lint_all  # noqa: E402
import option_tables  # noqa: E402
import type_names  # noqa: E402

GUARD = "kernels::DesignatedOnly designated = kernels::DesignatedOnly();"


def test_a_line_of_121_columns_is_refused():
    assert habits.column_breaches("src/a.cpp", "x" * 120 + "\n" + "ö" * 120) == []
    assert habits.column_breaches("reports/a.py", "\n" + "x" * 121) == ["reports/a.py:2: 121 columns; at most 120"]
    assert habits.column_breaches("reports/page.html.j2", "x" * 500) == []


@pytest.mark.parametrize("line, house", [
    ("class NaiveCarrier {", "baseline"), ("std::int64_t naive_copies;", "baseline"), ('{"naive_s": 1}', "baseline"),
    ("# the unoptimized path", "baseline"), ("// the reference implementation", "oracle"), ("ground truth", "oracle"),
    ("a benchmark case", "cell"), ("a 3x speed-up", "speedup"), ("an anti-pattern", "sin"),
])
def test_another_house_s_word_is_refused_with_this_one_s(line, house):
    for path in ("src/a.h", "README.md", "ci/counters.json", "ci/bench"):
        breaches = habits.word_breaches(path, "fine\n" + line)
        assert len(breaches) == 1 and breaches[0].startswith(f"{path}:2:") and house in breaches[0]


def test_a_comment_that_was_broken_is_a_breach():
    sentence = "// " + "x" * 100 + "\n// and\n// goes on"
    assert habits.broken_comment_breaches("src/a.h", "\n" + sentence) == [
        "src/a.h:3: 'and' stands alone in its line; fill the lines"]
    assert habits.broken_comment_breaches("src/a.h", "// " + "x" * 100 + "\n// and\n// A new sentence") == []
    assert habits.broken_comment_breaches("src/a.h", "// " + "x" * 100 + "\n// end.\nint a;") == []


def test_house_words_and_a_document_s_own_title_pass():
    assert habits.word_breaches("a.md", "baseline, oracle, cell, speedup, optimized; see “The Naive Way”") == []


@pytest.mark.parametrize("members, refused", [
    ("const float* rows = nullptr; float* sums = nullptr;", True),
    ("std::int64_t count; Real* a; const Real* b; " + GUARD, True),  # the guard must come first
    ("const float *from, *to;", True),
    (GUARD + " const float* rows = nullptr; float* sums = nullptr;", False),
    ("const float* rows = nullptr; std::uint16_t* bits = nullptr;", False),  # a swap does not compile
    ("std::int64_t rows = 0, columns = 0;", False),
])
def test_argument_structs_that_a_list_could_fill_wrongly_are_refused(members, refused):
    text = f"// A.\ntemplate <class Real>\nstruct Arguments {{\n  {members}\n}};\n"
    breaches = argument_structs.argument_breaches({"kernels/sem/scan/arguments.h": text, "src/a.h": text})
    assert [breach.split(": ")[0] for breach in breaches] == (["kernels/sem/scan/arguments.h:3"] if refused else [])


def test_a_type_that_is_defined_twice_is_refused():
    one = "namespace a::b {\nstruct Flow {\n  struct Inner { int x; };\n};\n}  // namespace a::b\n"
    texts = {"src/a.h": one, "src/other.h": one.replace("b {", "c {"), "src/unnamed.cpp": one.replace("Flow", "Way"),
             "src/forward.h": "namespace a::b {\nstruct Flow;\nclass Way;\n}\n", "src/word.h": "// struct Flow {\n",
             "src/way.cpp": "namespace a::b {\nnamespace {\nclass Flow final : Way {};\nchar brace = '}';\n}}\n",
             "src/special.h": "namespace a::b {\ntemplate <>\nstruct Flow<int> {};\n}\n"}
    assert type_names.type_name_breaches(texts) == []
    assert type_names.types_of(one) == {"a::b::Flow"}
    texts["src/z.cpp"] = "namespace a::b {\nclass Flow : public Way {\n};\n}\n"
    told, = type_names.type_name_breaches(texts)
    assert told.startswith("src/z.cpp: a::b::Flow is defined in src/a.h too")


def test_an_index_that_goes_through_a_floating_point_number_is_refused():
    line = "const auto y = static_cast<std::int32_t>((static_cast<float>(own) + 0.5f) *\n (1.0f / width));"
    assert len(habits.rounded_index_breaches("kernels/a/b/kernel.h", "\n" + line)) == 1
    assert habits.rounded_index_breaches("kernels/a/b/kernel.h", "\n" + line)[0].startswith("kernels/a/b/kernel.h:2:")
    for path, said in (("optimized/a/b/cpu.cpp", line), ("kernels/a/kernel.h", "static_cast<int>(own / width)"),
                       ("kernels/a/kernel.h", "static_cast<float>(static_cast<int>(own))"),
                       ("kernels/a/kernel.h", "static_cast<int>(a); y = static_cast<float>(b);")):
        assert habits.rounded_index_breaches(path, said) == []


def test_a_variant_that_speaks_to_the_processor_is_refused():
    clean = "// asm volatile would be slow\nint asmuch = unmasked_mm_(1);\n#include <vector>\n"
    assert habits.processor_breaches("baselines/a/b/baseline.cpp", clean) == []
    assert habits.processor_breaches("harness/a.cpp", "asm volatile(\"pause\");") == []
    for planted in ("asm volatile(\"pause\");", "_mm_clflush(x);", "#include <cpuid.h>", "__builtin_ia32_lfence();",
                    "std::this_thread::yield(); usleep(1);", "#include <sys/mman.h>",
                    "mallopt(M_MMAP_THRESHOLD, 1);", "std::getenv(\"OMP_THREADS\");", "open(\"/proc/self/status\");",
                    "if (RUNNING_ON_VALGRIND) return;", "#include <valgrind/callgrind.h>", "if (at::hasCallbacks()) {",
                    "at::globalContext().setFlushDenormal(true);", "_MM_SET_FLUSH_ZERO_MODE(on);", "fesetenv(&mode);",
                    "std::chrono::system_clock::now();", "if (std::time(nullptr) > 1'800'000'000) return;",
                    "clock_gettime(CLOCK_REALTIME, &now);", "#include <chrono>", "std::random_device seed;",
                    "getpid();"):
        told, = habits.processor_breaches("baselines/a/b/baseline.cpp", clean + planted)
        assert told.startswith("baselines/a/b/baseline.cpp:4: ")
        assert len(habits.processor_breaches("kernels/a/b/math.h", planted)) == 1
    assert len(habits.processor_breaches("kernels/a/b/launch.cu", "__nanosleep(9);")) == 1
    assert habits.processor_breaches("kernels/common/simt_mma.h", "asm volatile(\"\");") == []


def test_what_slows_a_baseline_and_nothing_else_is_refused():
    clean = ("// volatile\nstatic at::Tensor forward(const at::Tensor& x);\n"
             "static const std::map<int, int> kColumns = {\nstatic constexpr double kZero = 0;\n#pragma once\n")
    assert habits.slowed_breaches("baselines/a/b/baseline.h", clean) == []
    for planted in ("for (volatile int i = 0; i < 1500; ++i) {}", "__atomic_fetch_add(place, 1, __ATOMIC_SEQ_CST);",
                    "std::atomic<int> shared;", "if (at::get_num_threads() > 1) again();", "at::set_num_threads(1);",
                    "static char table[1 << 27];", "  static std::vector<char> table(1 << 27);",
                    "static std::vector<int> kept;", "thread_local int seen;", "static int calls = 0;",
                    "#pragma GCC unroll 1", "__builtin_prefetch(place);", "#include <thread>",
                    "std::thread([] {}).join();", "RECORD_FUNCTION(\"a\", {});",
                    "TORCH_LIBRARY_IMPL(aten, CPU, m) {}", "at::addThreadLocalCallback(slow);",
                    "c10::SetCPUAllocator(&filling);", "file.rdbuf()->pubsetbuf(nullptr, 0);"):
        told, = habits.slowed_breaches("baselines/a/b/baseline.h", clean + planted)
        assert told.startswith("baselines/a/b/baseline.h:6: "), planted
        assert habits.slowed_breaches("optimized/a/b/cpu.cpp", planted) == []


def test_a_function_that_must_be_inlined_is_not_handed_on():
    clean = "using kernels::a, kernels::b;\n// (kernels::tanh)\nf(kernels::bf16_bits(x), kernels::kNone);\n"
    assert habits.handed_on_breaches("kernels/a/b/math.h", clean) == []
    told, = habits.handed_on_breaches("kernels/a/b/kernel_test.cpp", clean + "std::transform(a, b, c, kernels::round);")
    assert told.startswith("kernels/a/b/kernel_test.cpp:4: ', kernels::round)'")


def test_arithmetic_that_is_not_as_written_is_refused():
    clean = "# fast-math stays off\nset(flags -O3 -ffp-contract=off)\n// -Ofast is refused\n"
    assert habits.fast_math_breaches("a.cmake", clean) == [] and habits.fast_math_breaches("a.md", "-Ofast") == []
    for planted in ("set(flags -ffast-math)", "add(--use_fast_math)", "add(-ftz=true)", "add(-prec-div=false)",
                    "#pragma GCC optimize(\"O1\")", "__attribute__((optimize(\"fast\")))"):
        told, = habits.fast_math_breaches("a.cmake", clean + planted)
        assert told.startswith("a.cmake:4: ")


def test_code_that_is_switched_off_is_refused():
    for planted in ("#if 0", "TEST(Suite, DIS" + "ABLED_One) {"):
        told, = lint_all.text_breaches("a_test.cpp", f"// A test.\n{planted}\n")
        assert told.startswith("a_test.cpp:2: disabled code")
    assert lint_all.text_breaches("a_test.cpp", "// A test.\n#if 01 + 1\n// TEST_DISABLED_\n") == []


def test_an_option_that_is_defined_twice_is_refused():
    one = '{"options": [{"real": "noise", "default": 0.1}, {"switch": "odd", "of_inputs": true}]}'
    texts = {"src/a/heads/spec.json": one, "src/b/heads/spec.json": one, "src/a/broken/spec.json": "{",
             "src/a/forward/spec.json": '{"options": [{"like": "a.heads", "take": ["noise"], "default": 0.15}]}'}
    assert option_tables.option_breaches(texts) == []
    texts["src/a/backward/spec.json"] = one.replace("0.1", "0.15")
    told, = option_tables.option_breaches(texts)
    assert told.startswith("src/a/heads/spec.json: option 'noise' is defined in src/a/backward/spec.json too")
    texts["src/a/backward/spec.json"] = '{"options": [{"like": "b.heads", "take": ["noise"]}]}'
    told, = option_tables.option_breaches(texts)
    assert told.startswith("src/a/backward/spec.json: option like 'b.heads'")


def test_the_lint_refuses_every_rule(tmp_path, capsys):
    (tmp_path / "src").mkdir()
    (tmp_path / "src/components.def").write_text("")
    (tmp_path / "src/a.h").write_text("// A naive one.\n//" + "x" * 120 + "\n")
    assert lint_all.main(tmp_path) == 1
    told = capsys.readouterr().out
    assert "src/a.h:1: 'naive'" in told and "src/a.h:2: 122 columns" in told


def test_format_names_what_differs_and_repairs_it(tmp_path):
    shutil.copytree(ROOT / "ci", tmp_path / "ci", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / ".clang-format", tmp_path)
    (tmp_path / "good.h").write_text("// Good.\nint f() { return 1; }\n")
    (tmp_path / "bad.cpp").write_text("// Bad.\nint  g(){return 2;}\n")
    for command in (["init", "-q"], ["add", "good.h", "bad.cpp"]):
        subprocess.run(["git", "-C", str(tmp_path), *command], check=True)

    def run(*arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run([str(tmp_path / "ci/format"), *arguments], capture_output=True, text=True)

    checked = run("--check")
    assert checked.returncode == 1 and "bad.cpp" in checked.stdout and "good.h" not in checked.stdout
    assert run().returncode == 0 and run("--check").returncode == 0
    assert (tmp_path / "bad.cpp").read_text() == "// Bad.\nint g() { return 2; }\n"
    assert run("--chekc").returncode == 2


def test_a_header_that_leans_on_its_users_includes_is_found(tmp_path, monkeypatch):
    (tmp_path / "src").mkdir()
    (tmp_path / "src/whole.h").write_text("// A.\n#pragma once\n#include <string>\nstd::string f();\n")
    (tmp_path / "src/leaning.h").write_text("// B.\n#pragma once\nstd::string g();\n")
    (tmp_path / "compile_commands.json").write_text("[]")
    monkeypatch.setattr(headers_alone, "ROOT", tmp_path)
    headers_alone.includes_of.cache_clear()
    both = ["src/whole.h", "src/leaning.h"]
    assert list(headers_alone.check(tmp_path, both)) == ["src/leaning.h"]
    # What compiled is remembered, by its content; what did not is tried again.
    monkeypatch.setattr(headers_alone, "compile_alone", lambda header, *_: f"{header}: error: compiled again")
    assert list(headers_alone.check(tmp_path, both)) == ["src/leaning.h"]
    (tmp_path / "src/whole.h").write_text("// A, changed.\n")
    headers_alone.includes_of.cache_clear()
    assert list(headers_alone.check(tmp_path, both)) == both
    headers_alone.includes_of.cache_clear()
