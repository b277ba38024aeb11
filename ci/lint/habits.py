"""House habits that are seen in the text of a file: lines of at most 120 columns, comments whose lines are filled, and
the glossary's words only."""
import re

LONGEST_LINE = 120
COLUMNS_OF = (".h", ".cpp", ".cu", ".py")
# What is said elsewhere for a thing that has a word here (design, section 1). Whole identifiers are searched, so that
# NaiveCarrier and naive_copies are found too.
HOUSE_WORDS = {
    r"naïve|naive": "baseline",
    r"un[-_ ]?optimi[sz]ed|slow[-_ ]version": "baseline",
    r"optimised|fast[-_ ]version": "optimized",
    r"reference[-_ ](implementation|version)|ground[-_ ]truth|golden[-_ ]model": "oracle, the baseline in fp64",
    r"benchmark[-_ ]case|micro[-_ ]?benchmark": "cell",
    r"anti[-_ ]?pattern|bad[-_ ]practice": "sin",
    r"speed[-_]up": "speedup",
}
WORDS_OF = (".h", ".cpp", ".cu", ".py", ".cmake", ".txt", ".md", ".json", ".yaml", ".j2", ".css", ".def")
# The table itself, and the tests that plant its words.
WORDS_EXEMPT = ("ci/lint/habits.py", "ci/tests/test_house_habits.py")
_WORDS = [(re.compile(word, re.IGNORECASE), house) for word, house in HOUSE_WORDS.items()]
# A document's own title is quoted as it stands, in typographic quotes: “Why Naive Loops Fail”.
_TITLE = re.compile("“[^”]*”")


def column_breaches(path: str, text: str) -> list[str]:
    if not path.endswith(COLUMNS_OF):
        return []
    return [f"{path}:{number}: {len(line)} columns; at most {LONGEST_LINE}"
            for number, line in enumerate(text.splitlines(), 1) if len(line) > LONGEST_LINE]


# What clang-format leaves of a comment that it broke: a full line, a word alone, and the sentence goes on below.
_BROKEN_COMMENT = re.compile(r"^( *)// .{85,}\n\1// ?(\S+)\n\1// ?[a-z]", re.MULTILINE)


def broken_comment_breaches(path: str, text: str) -> list[str]:
    if not path.endswith((".h", ".cpp", ".cu")):
        return []
    return [f"{path}:{text[:found.start(2)].count(chr(10)) + 1}: '{found[2]}' stands alone in its line; fill the lines"
            for found in _BROKEN_COMMENT.finditer(text)]


def word_breaches(path: str, text: str) -> list[str]:
    script = "." not in path.rsplit("/", 1)[-1]
    if path in WORDS_EXEMPT or not (path.endswith(WORDS_OF) or script):
        return []
    breaches = []
    for number, line in enumerate(text.splitlines(), 1):
        shown = _TITLE.sub("", line)
        for word, house in _WORDS:
            found = word.search(shown)
            if found:
                breaches.append(f"{path}:{number}: '{found[0]}' is no word of this house; say: {house}")
    return breaches


# What a clock sees and no count does: instructions that wait, flush or serialise, and the system's own ways to rest.
# And what changes arithmetic for as long as a run takes: rounding, and denormal numbers that become zero; what changes
# memory for all that follows; and what tells that somebody measures, or what day or which process it is.
_PROCESSOR = re.compile(r"\basm\b|\b__asm|\b__builtin_ia32_|\b_mm\d*_|\b__cpuid|\bsched_yield\b|\bmadvise\b"
                        r"|\b\w*sleep\b|\b_MM_\w+|\b\w*[fF]lush_?[dD]enormal\w*|\bfe(?:set|hold|update)\w+"
                        r"|#\s*include\s*<(?:\w*intrin\.h|cpuid\.h|sys/\w+\.h|unistd\.h|sched\.h|malloc\.h"
                        r"|valgrind/\w+\.h)>"
                        r"|\b\w+_clock\b|\bclock(?:_gettime)?\s*\(|\bgettimeofday\b|\bstd::time\b"
                        r"|\btime\((?:nullptr|NULL|0|&)|\b(?:local|gm)time\w*|\brandom_device\b|\bgetp?pid\b"
                        r"|#\s*include\s*<(?:chrono|ctime|time\.h)>"
                        r"|\bmallopt\b|\bmalloc_trim\b|\bgetenv\b|\bRUNNING_ON_VALGRIND\b|\bhasCallbacks\b|/proc/")


# fp32 holds whole numbers up to 2^24: what is computed so is right in every case that a host can run, and wrong beyond.
_ROUNDED_INDEX = re.compile(r"static_cast<(?:std::)?u?int(?:(?:32|64)_t)?>\([^;,)]*static_cast<(?:float|Real)>")


def rounded_index_breaches(path: str, text: str) -> list[str]:
    if not path.startswith("kernels/") or not path.endswith((".h", ".cu")):
        return []
    return [f"{path}:{text[:found.start()].count(chr(10)) + 1}: an index goes through a floating-point number; divide "
            "whole numbers" for found in _ROUNDED_INDEX.finditer(text)]


def processor_breaches(path: str, text: str) -> list[str]:
    """Variants say what they compute in C++ alone: a baseline could be slowed without one counted instruction more."""
    is_variant = path.startswith(("baselines/", "optimized/", "kernels/")) and not path.startswith("kernels/common/")
    if not is_variant or not path.endswith((".h", ".cpp", ".cu")) or "_test." in path:
        return []
    return [f"{path}:{number}: '{found[0]}': variants are plain C++, so that their work can be counted"
            for number, line in enumerate(text.splitlines(), 1)
            if (found := _PROCESSOR.search(re.sub(r"//.*", "", line)))]


# What makes a baseline slower than it says without an operator or, at one thread and a small size, an instruction more:
# loops that the compiler must keep, memory that is locked or misses, another way for more threads than one, threads of
# its own, operators, allocators and observers of LibTorch put in place of others, and files without a buffer.
_SLOWED = re.compile(r"\bvolatile\b|\b__atomic_\w+|\b__sync_\w+|\bstd::atomic\w*|\bthread_local\b|\b__builtin_\w+"
                     r"|\b[gs]et_num_(?:interop_)?threads\b|\bget_thread_num\b|\bin_parallel_region\b"
                     r"|\bhardware_concurrency\b|\bomp_\w+|#\s*pragma\b(?!\s+once)"
                     r"|#\s*include\s*<(?:atomic|thread|future)>"
                     r"|\bstd::(?:jthread|thread|async)\b|\bpthread_\w+|\bRECORD_FUNCTION\w*|\bRecordFunction\w*"
                     r"|\badd(?:Global|ThreadLocal)Callback\b|\bTORCH_LIBRARY\w*|\btorch::Library\b|\bDispatcher\b"
                     r"|\bDispatchStub\b|\b(?:REGISTER|ALSO_REGISTER)_\w*DISPATCH\b|\b\w*CPUAllocator\b"
                     r"|\bc10::Allocator\b|\bDebugInfo\w*|\bWarningHandler\w*|\bpubsetbuf\b|\bsetv?buf\b"
                     r"|^\s*static (?!const|inline )[\w:<>, ]+ \w+"
                     r"(?:\(\w+(?: *<< *\w+)?\)|\[\w+(?: *<< *\w+)?\]|\{.*\}| =.*)?;")
# Attention's library way runs at one thread, and sets the number back.
_KNOWS_THREADS = ("baselines/energy_flow/fused_attention/library.cpp",)


def slowed_breaches(path: str, text: str) -> list[str]:
    is_baseline = path.startswith("baselines/") and path.endswith((".h", ".cpp")) and "_test." not in path
    if not is_baseline or path in _KNOWS_THREADS:
        return []
    return [f"{path}:{number}: '{found[0].strip()}': a baseline is operators and plain loops, whatever runs beside it"
            for number, line in enumerate(text.splitlines(), 1)
            if (found := _SLOWED.search(re.sub(r"//.*", "", line)))]


# The specifications want the full-precision functions, and denormal numbers kept.
_FAST_MATH = re.compile(r"fast[-_]?math|-Ofast\b|-?-ftz\b|-?-prec-(?:div|sqrt)\b|\boptimize\s*\("
                        r"|#\s*pragma\s+GCC\s+optimize|-funsafe-math|-fassociative-math|-freciprocal-math")
_COMPILED = (".h", ".cpp", ".cu", ".cmake", "CMakeLists.txt", "CMakePresets.json")


def fast_math_breaches(path: str, text: str) -> list[str]:
    if not path.endswith(_COMPILED):
        return []
    return [f"{path}:{number}: '{found[0]}': arithmetic is as written: no fast-math, no flush-to-zero"
            for number, line in enumerate(text.splitlines(), 1)
            if (found := _FAST_MATH.search(re.sub(r"//.*|^\s*# .*", "", line)))]


# A function that must be inlined has no address to hand on: g++ refuses it in the sanitized builds, which seldom run.
_HANDED_ON = re.compile(r"[(,] *kernels::(?!k[A-Z])[a-z]\w*[,)]")


def handed_on_breaches(path: str, text: str) -> list[str]:
    if not path.endswith((".h", ".cpp", ".cu")):
        return []
    return [f"{path}:{number}: '{found[0]}': hand on a lambda that calls it; without optimization it has no address"
            for number, line in enumerate(text.splitlines(), 1)
            if (found := _HANDED_ON.search(re.sub(r"//.*|^using .*", "", line)))]
