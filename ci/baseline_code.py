#!/usr/bin/env python3
"""What the baselines' and libraries' object files may hold: no instruction and no call that takes time without working.

Counted instructions see work, not time: `cpuid` stops a virtual processor for tens of microseconds and counts as one,
`pause` waits 40 cycles, `mallopt` makes every operator's allocation a call of the system. So a baseline can be made
slow by what no count sees. Its machine code holds none of the instructions below, and calls of the C library what is
listed alone: mathematics, memory, text and files.

usage: ci/baseline_code.py FOLDER...     (of object files: build/cpu/src/CMakeFiles/twinbench_baseline.dir)
Exit codes: 0 nothing found, 1 something, 2 no object file, or a tool that fails."""
import re
import subprocess
import sys
from pathlib import Path

# Mnemonics: waits, barriers, clocks, flushes, traps, privileged doors, x87's microcoded functions.
IDLE = re.compile(
    r"^(pause|[tu]pause|[um]?mwait\w*|umonitor|monitor\w*|cpuid|serialize|rdtscp?|rdpmc|rdrand|rdseed|xgetbv|"
    r"[lms]fence|clflush\w*|clwb|cldemote|wbinvd|invd|syscall|sysenter|int|int3|into|hlt|in|out|"
    r"ins\w?|outs\w?|enclu|xabort|xbegin|fsin|fcos|fsincos|fptan|fpatan|f2xm1|fyl2x|fyl2xp1|fprem1?|fbld|fbstp)$")
# What a stock compiler and computing need of the C library.
RUNTIME = re.compile(r"^(_GLOBAL_OFFSET_TABLE_|_Unwind_\w+|__cxa_\w+|__gxx_personality_v0|__dso_handle|__tls_get_addr|"
                     r"__libc_single_threaded|__stack_chk_fail|__errno_location|__(asan|ubsan|tsan|sanitizer|gcov)_\w+|"
                     r"GOMP_\w+|omp_\w+)$")
MATHEMATICS = re.compile(
    r"^(a?(sin|cos|tan)h?|sincos|atan2|exp|exp2|expm1|log|log2|log10|log1p|pow|sqrt|cbrt|hypot|fmod|remainder|fma|"
    r"[lt]?gamma|erfc?|floor|ceil|trunc|nearbyint|l?l?rint|l?l?round|ldexp|frexp|scalbn|modf|nextafter|fmax|fmin|"
    r"crc32\w*)[fl]?$")
MEMORY_AND_TEXT = re.compile(r"^(malloc|calloc|realloc|free|aligned_alloc|posix_memalign|mem(cmp|cpy|move|set|chr)|"
                             r"str\w+|isspace|isalpha|isdigit|isalnum|tolower|toupper|v?snprintf|"
                             r"pthread_mutex_(un)?lock)$")
# What components on the host do besides: files of a checkpoint, a logger or a dataset. Bench looks whether who waits
# for a thread sleeps (harness/bench/work_watch.h), so C++'s threads are let be; their sleep is `nanosleep`, not here.
FILES = re.compile(r"^(open|close|read|write|pread|pwrite|unlink|rename|f?stat|fsync|fdatasync|mkdir|rmdir)(64)?$")
NEEDED = (RUNTIME, MATHEMATICS, MEMORY_AND_TEXT, FILES)


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def idle_instructions(listing):
    """(function, mnemonic) of `objdump -dC --no-show-raw-insn`, each once."""
    function, found = "", {}
    for line in listing.splitlines():
        if heading := re.match(r"^[0-9a-f]+ <(.+)>:$", line):
            function = heading[1]
            continue
        words = line.split("\t", 1)[1].split() if "\t" in line else []
        while words and words[0] in ("lock", "rep", "repz", "repnz", "notrack", "bnd", "data16", "cs", "ds", "es"):
            words = words[1:]
        if words and IDLE.match(words[0]):
            found[function, words[0]] = True
    return list(found)


def foreign_calls(undefined):
    """Of `nm -uC`: names of the C library that computing does not need. Those with parentheses or `::` are C++'s."""
    found = []
    for line in undefined.splitlines():
        name = line.strip().removeprefix("U ").removeprefix("w ").strip().split("@")[0]
        if not name or line.strip().endswith(":"):
            continue
        if re.fullmatch(r"\w+", name) and not any(kind.match(name) for kind in NEEDED):
            found.append(name)
    return found


def findings(objects):
    lines = []
    for path in objects:
        lines += [f"{path.name}: {function} executes `{mnemonic}`, which takes time and works nothing"
                  for function, mnemonic in idle_instructions(output_of("objdump", "-dC", "--no-show-raw-insn", path))]
        lines += [f"{path.name}: calls `{name}`, which is not needed to compute"
                  for name in foreign_calls(output_of("nm", "-uC", path))]
    return list(dict.fromkeys(lines))


def main(folders):
    if not folders or folders[0] in ("-h", "--help"):
        print(__doc__)
        return 0 if folders else 2
    objects = sorted(path for folder in folders for path in Path(folder).rglob("*.o"))
    if not objects:
        print(f"baseline_code: missing_file: no object file below {', '.join(folders)}; remedy: build first",
              file=sys.stderr)
        return 2
    try:
        found = findings(objects)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"baseline_code: cannot_run: {error}; remedy: install binutils", file=sys.stderr)
        return 2
    print("\n".join(found) or f"baseline_code: {len(objects)} object files, nothing found")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
