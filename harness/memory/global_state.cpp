// Reading the state of the process: LibTorch's context, the C library's, and /proc.
#include "harness/memory/global_state.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <fenv.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <torch/csrc/autograd/anomaly_mode.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>

#include "harness/memory/tensor_hash.h"

extern char** environ;
extern "C" int omp_get_dynamic() __attribute__((weak));  // of the pool of threads, where it is OpenMP's

namespace twinbench {
namespace {

std::uint64_t hash_of_bytes(const void* data, std::size_t size, std::uint64_t state = 0xCBF29CE484222325ull) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  for (std::size_t i = 0; i < size; ++i) state = (state ^ bytes[i]) * 0x100000001B3ull;
  return state;
}

std::uint64_t hash_of_text(const std::string& text) { return hash_of_bytes(text.data(), text.size()); }

// Flush-to-zero, denormals-are-zero, rounding and masks; not the sticky flags that any inexact result sets.
std::uint64_t floating_point_mode() {
#if defined(__x86_64__)
  return (_mm_getcsr() & 0xFFC0u) | static_cast<std::uint64_t>(fegetround()) << 32;
#else
  return static_cast<std::uint64_t>(fegetround());
#endif
}

std::set<std::uint64_t> floating_point_modes_of_workers() {
  std::set<std::uint64_t> modes;
  std::mutex mutex;
  at::parallel_for(0, at::get_num_threads(), 1, [&](std::int64_t, std::int64_t) {
    const std::uint64_t mode = floating_point_mode();
    const std::lock_guard lock(mutex);
    modes.insert(mode);
  });
  return modes;
}

std::uint64_t environment() {
  std::uint64_t sum = 0;  // whatever their order
  for (char** entry = environ; entry && *entry; ++entry) sum += hash_of_text(*entry);
  return sum;
}

// Of a handler's flags, all but the one that the C library sets by itself, also where a handler is put back as it was.
constexpr int kRestorer = 0x04000000;  // SA_RESTORER, which no header of the C library declares

std::uint64_t signal_handlers() {
  std::uint64_t state = 0;
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action {};
    if (sigaction(signal, nullptr, &action) != 0) continue;
    const auto handler = action.sa_handler;
    state = hash_of_bytes(&handler, sizeof handler, state + static_cast<std::uint64_t>(action.sa_flags & ~kRestorer));
  }
  return state;
}

// Of a thread, 0 being this one: where it may run, and how soon. Nothing of one that has ended since it was listed.
std::optional<std::uint64_t> affinity(pid_t thread) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(thread, sizeof set, &set) != 0) return std::nullopt;
  return hash_of_bytes(&set, sizeof set);
}

std::optional<std::uint64_t> priority(pid_t thread) {
  const int scheduler = sched_getscheduler(thread);
  errno = 0;
  const int nice = getpriority(PRIO_PROCESS, static_cast<id_t>(thread));  // -1 is one, too
  if (scheduler < 0 || errno != 0) return std::nullopt;
  return static_cast<std::uint64_t>(nice + 100) | static_cast<std::uint64_t>(scheduler + 1) << 32;
}

// What `of` gives of any thread of this process, each value once: threads come and go.
template <class Of>
std::uint64_t of_all_threads(const Of& of) {
  std::set<std::uint64_t> values;
  std::error_code failure;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", failure))
    if (const auto value = of(static_cast<pid_t>(std::stol(thread.path().filename().string())))) values.insert(*value);
  std::uint64_t state = 0;
  for (const auto value : values) state = hash_of_bytes(&value, sizeof value, state);
  return state;
}

std::uint64_t limits() {
  std::uint64_t state = 0;
  for (int resource = 0; resource < RLIMIT_NLIMITS; ++resource) {
    rlimit limit{};
    if (getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) == 0)
      state = hash_of_bytes(&limit, sizeof limit, state + 1);
  }
  return state;
}

// Which of its libraries and ways LibTorch may take: without them what others compute is slower, or less precise.
std::uint64_t libraries_in_use(const at::Context& context) {
  std::uint64_t bits = 0;
  for (const bool one :
       {context.userEnabledMkldnn(), context.userEnabledNNPACK(), context.userEnabledCuDNN(),
        context.userEnabledFlashSDP(), context.userEnabledMathSDP(), context.userEnabledMemEfficientSDP(),
        context.userEnabledCuDNNSDP(), context.userEnabledFA3SDP(), context.userEnabledOverrideableSDP(),
        context.benchmarkCuDNN(), context.deterministicCuDNN(), context.deterministicMkldnn(), context.allowTF32CuDNN(),
        context.allowTF32OneDNN(), context.allowTF32CuBLAS(), context.allowFP16BF16ReductionMathSDP(),
        context.allowFP16AccumulationCuBLAS(), context.allowFP16ReductionCPU(), context.releaseWeightsWhenPrepacking()})
    bits = bits << 1 | static_cast<std::uint64_t>(one);
  const auto reduction = [](at::CuBLASReductionOption option) { return static_cast<std::uint64_t>(option); };
  return bits << 8 | reduction(context.allowFP16ReductionCuBLAS()) << 4 | reduction(context.allowBF16ReductionCuBLAS());
}

// What lies between a call and its operator on this thread: automatic casts, tracing, gradients.
std::uint64_t dispatch_keys() {
  const auto keys = c10::impl::tls_local_dispatch_key_set();
  return keys.included_.raw_repr() * 31 + keys.excluded_.raw_repr();
}

std::size_t entries_of(const char* folder) {
  std::error_code failure;
  const std::filesystem::directory_iterator entries(folder, failure);
  return failure ? 0 : static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

// 1 where there are any, running or never waited for. Who forked twice is found by the runner, at the child's end.
std::size_t children_of_this_process() {
  siginfo_t info{};
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 ? 1 : 0;
}

}  // namespace

GlobalState GlobalState::now() {
  GlobalState state;
  const auto add = [&](const char* name, std::uint64_t value) { state.parts_.emplace_back(name, value); };
  const auto& context = at::globalContext();
  add("number of threads", static_cast<std::uint64_t>(at::get_num_threads()));
  add("number of inter-operator threads", static_cast<std::uint64_t>(at::get_num_interop_threads()));
  add("dynamic number of threads", omp_get_dynamic ? static_cast<std::uint64_t>(omp_get_dynamic()) : 0);
  add("default generator", hash_of(at::detail::getDefaultCPUGenerator().get_state()));
  add("floating-point mode", floating_point_mode());
  std::uint64_t workers = 0;
  for (const auto mode : floating_point_modes_of_workers()) workers += hash_of_bytes(&mode, sizeof mode);
  add("floating-point mode of worker threads", workers);
  add("CPU allocator", reinterpret_cast<std::uintptr_t>(c10::GetCPUAllocator()));
  add("default dtype", hash_of_text(std::string(c10::get_default_dtype().name())));
  add("grad mode", static_cast<std::uint64_t>(c10::GradMode::is_enabled()) |
                       static_cast<std::uint64_t>(c10::InferenceMode::is_enabled()) << 1);
  add("deterministic algorithms", static_cast<std::uint64_t>(context.deterministicAlgorithms()) |
                                      static_cast<std::uint64_t>(context.deterministicFillUninitializedMemory()) << 1);
  add("precision of matrix products", static_cast<std::uint64_t>(context.float32MatmulPrecision()));
  add("libraries", libraries_in_use(context));
  add("dispatch keys", dispatch_keys());
  add("anomaly mode", static_cast<std::uint64_t>(torch::autograd::AnomalyMode::is_enabled()) |
                          static_cast<std::uint64_t>(torch::autograd::AnomalyMode::should_check_nan()) << 1);
  add("operator callbacks", at::hasCallbacks());
  add("environment", environment());
  add("working directory", hash_of_text(std::filesystem::current_path().string()));
  add("signal handlers", signal_handlers());
  add("locale", hash_of_text(std::setlocale(LC_ALL, nullptr)));
  add("processor affinity", affinity(0).value_or(0));
  add("processor affinity of threads", of_all_threads(affinity));
  add("priority", priority(0).value_or(0));
  add("priority of threads", of_all_threads(priority));
  add("limits", limits());
  return state;
}

std::string GlobalState::changed_since(const GlobalState& earlier) const {
  std::string names;
  for (std::size_t i = 0; i < parts_.size(); ++i)
    if (parts_[i].second != earlier.parts_[i].second) names += (names.empty() ? "" : ", ") + parts_[i].first;
  return names;
}

Survivors Survivors::now() {
  at::parallel_for(0, at::get_num_threads(), 1, [](std::int64_t, std::int64_t) {});
  return {entries_of("/proc/self/task"), children_of_this_process(), entries_of("/proc/self/fd")};
}

void open_device(c10::Device device) {
  const c10::AutoGradMode taped(true);
  const at::Tensor some = at::ones({8, 8}, at::TensorOptions(device)).set_requires_grad(true);
  at::mm(some, some).sum().backward();
  some.grad().cpu();
}

std::string Survivors::more_than(const Survivors& earlier) const {
  std::string text;
  const auto add = [&](std::size_t now, std::size_t then, const char* one, const char* more) {
    if (now > then)
      text += (text.empty() ? "" : ", ") + std::to_string(now - then) + " " + (now - then == 1 ? one : more);
  };
  add(threads, earlier.threads, "thread", "threads");
  add(processes, earlier.processes, "process", "processes");
  add(files, earlier.files, "open file", "open files");
  return text;
}

}  // namespace twinbench
