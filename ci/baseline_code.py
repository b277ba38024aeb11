#!/usr/bin/env python3
"""What the baselines' and libraries' object files may hold: no instruction and no call that takes time without working.

Counted instructions see work, not time: `cpuid` stops a virtual processor for tens of microseconds and counts as one,
`pause` waits 40 cycles, `mallopt` makes every operator's allocation a call of the system. So a baseline can be made
slow by what no count sees. Its machine code holds none of the instructions below, and calls what is listed alone: of
the C library mathematics, memory, text and files; of LibTorch operators, which are counted, and what its headers need
to call them and to reach their results; of C++'s library containers, texts, streams and errors. And it has no
variables beside its instances: a table of megabytes, walked from one place to the next, waits for memory all the time.

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
# What components on the host do besides: files of a checkpoint, a logger or a dataset.
FILES = re.compile(r"^(open|close|read|write|pread|pwrite|unlink|rename|f?stat|fsync|fdatasync|mkdir|rmdir)(64)?$")
NEEDED = (RUNTIME, MATHEMATICS, MEMORY_AND_TEXT, FILES)
# Operators; tensors' memory; settings that a component on the host sets and puts back, which bench looks at.
ATEN = re.compile(
    r"^at::(_ops::\w+::call|tensor|(Tensor|TensorBase)::(item|(const|mutable)_data_ptr|requires_grad_|"
    r"__dispatch_contiguous)|TensorMaker::make_tensor|[gs]et_num_threads|globalContext|"
    r"Context::(allowTF32CuDNN|setAllowTF32CuDNN|setUserEnabledMkldnn|userEnabledMkldnn)|detail::getCUDAHooks|"
    r"functorch::functorchTLSAccessor|sequence_number::get_and_increment|SavedTensorDefaultHooks::set_tracing|"
    r"RecordFunction::currentThreadId)$")
C10 = re.compile(
    r"^(c10::(\w+Type::get|Error::\w+|GetAllocator|GradMode::(is|set)_enabled|IValue::\w+|IValue::TagType::get|"
    r"SmallVectorBase::grow_pod|StorageImpl::throw_data_ptr_access_error|Sym(Bool|Float|Int)::\w+|"
    r"SymbolicShapeMeta::\w+|TensorImpl::((in|de)cref_pyobject|requires_grad|throw_data_ptr_access_error)|"
    r"UndefinedTensorImpl::_singleton|"
    r"detail::(ListImpl::ListImpl|torch(Check|InternalAssert)Fail|maybe_wrap_dim_slow)|get_default_dtype|"
    r"impl::(cow::\w+|device_guard_impl_registry)|ivalue::ConstantString::create|operator_\w+|report_overflow|"
    r"throwNullDataPtrError|warnDeprecatedDataPtr|_fastEqualsForContainer|Error)|caffe2::TypeMeta::\w+)$")
TORCH = re.compile(
    r"^torch::(autograd::(AnomalyMode::_enabled|AutogradContext::\w+|ForwardADLevel::try_get_by_idx|"
    r"InputMetadata::shape_as_dim_vector|Node|Node::(assign_parent|metadata|name)|"
    r"SavedVariable::(SavedVariable|unpack)|VariableInfo::(VariableInfo|zeros)|_wrap_outputs|deleteNode|"
    r"get_current_graph_task_exec_info|grad|"
    r"impl::gradient_edge)|dynamo::autograd::get(PyCompilerInterface|_input_metadata)|jit::pickle_(load|save))$")
STANDARD = re.compile(
    r"^(std::(_Hash_bytes|_Rb_tree_\w+|__basic_file|__basic_file::~__basic_file|__throw_\w+|__ostream_insert|"
    r"__detail::(_List_node_base|_Prime_rehash_policy)::\w+|(__cxx11::)?basic_(i|o|if|of|string|ostring|istring|file)"
    r"(stream|buf|os|s)?(::~?\w+)?|(__cxx11::)?basic_(streambuf|string)(::~?\w+)?|"
    r"chrono::_V2::(steady|system)_clock::now|ios_base(::Init)?(::~?\w+)?|(istream|ostream|locale)::~?\w+|"
    r"(bad_alloc|bad_weak_ptr|exception|\w+_error|out_of_range|invalid_argument|nothrow)(::~?\w+)?|"
    r"operator_shift|terminate|to_string)|"
    r"__cxxabiv1::\w+|operator (new|delete)(\[\])?)$")
FORWARD_CALLS = "twinbench::forward_call_observer"  # counts them, where somebody does
FUNDAMENTAL = re.compile(r"^typeinfo for [\w *]+$")
NEEDED_OF_CPP = (ATEN, C10, TORCH, STANDARD)


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


def qualified(name):
    """A function's or variable's name of a demangled one: without results, arguments, parameters and what is made for
    it ("vtable for"); `operator<<` is operator_shift."""
    name = re.sub(r"^(vtable|typeinfo|VTT|typeinfo name|guard variable|construction vtable) for ", "", name)
    name = name.replace("operator<<", "operator_shift").replace("operator()", "operator_call")
    name = re.sub(r"\[abi:\w+\]", "", name)
    before = ""
    while before != name:  # the innermost ones first
        before, name = name, re.sub(r"<[^<>()]*>|\([^()<>]*\)", "", name)
    name = re.sub(r"( const| volatile| &+)+$", "", name)
    return name if re.match(r"operator (new|delete)", name) else name.strip().split(" ")[-1]


def foreign_calls(undefined):
    """Of `nm -uC`: names of libraries that computing does not need. The project's own code is looked at by itself."""
    found = []
    for line in undefined.splitlines():
        name = line.strip().removeprefix("U ").removeprefix("w ").strip().split("@")[0]
        if not name or line.strip().endswith(":"):
            continue
        if re.fullmatch(r"\w+", name):
            if not any(kind.match(name) for kind in NEEDED):
                found.append(name)
        elif not FUNDAMENTAL.match(name) and not qualified(name).startswith("twinbench::") and not any(
                kind.match(qualified(name)) for kind in NEEDED_OF_CPP):
            found.append(name)
    return found


def own_variables(symbols):
    """Of `objdump -tC`: the project's variables that live as long as the program. LibTorch's headers have their own."""
    found = []
    for line in symbols.splitlines():
        words = re.match(r"^[0-9a-f]+ .{5}[^d][O ] (\.t?(?:bss|data)\S*)\s+[0-9a-f]+ (?:\.hidden )?(.+)$", line)
        if words and not words[1].startswith(".data.rel.ro"):
            name = words[2].removeprefix("guard variable for ")
            if not re.match(r"(std|c10|at|torch|__gnu_cxx)::|DW\.ref\.", name) and name != FORWARD_CALLS:
                found.append(name)
    return found


def findings(objects):
    lines = []
    for path in objects:
        lines += [f"{path.name}: {function} executes `{mnemonic}`, which takes time and works nothing"
                  for function, mnemonic in idle_instructions(output_of("objdump", "-dC", "--no-show-raw-insn", path))]
        lines += [f"{path.name}: holds `{name}` beside its instances: make it a member, or constexpr"
                  for name in own_variables(output_of("objdump", "-tC", path))]
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
