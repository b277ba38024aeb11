// Counting by client requests: collection is on around the run alone.
// Instrumentation stays on once it is: Valgrind forgets all its translated code where it changes, and translating
// LibTorch again for every cell took most of the time.
#include "harness/instructions/count_instructions.h"

#include <ATen/ops/from_blob.h>
#include <malloc.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

#include <filesystem>
#include <limits>
#include <vector>

#include "harness/compare/inputs.h"
#include "harness/instructions/callgrind_dump.h"
#include "harness/instructions/under_callgrind.h"
#include "src/common/error.h"
#include "src/formats/text_file.h"
#include "src/inputs.h"

namespace twinbench {
namespace {

// Instructions since the last dump, which this one writes as the process's next file.
DumpedInstructions dumped_instructions() {
  static const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  static int number = 0;
  const std::string path = callgrind_folder() + "/" + std::to_string(getpid()) + "." + std::to_string(++number);
  CALLGRIND_DUMP_STATS;
  const auto instructions = instructions_in(read_text_file(path, "Callgrind's dump"), program);
  std::filesystem::remove(path);
  if (instructions.own == 0)  // then nobody would be padded
    throw Error(ErrorKind::kInternal, "Callgrind's dump", program,
                "it holds no function of this program, which calls each run; was the file replaced meanwhile?");
  return instructions;
}

void run_once(Runnable& runnable) {
  runnable.run();
  const NamedTensors outputs = runnable.outputs();
}

struct Collection {  // off again whatever run() throws: with --in-process the next cell is counted here, too
  Collection() { CALLGRIND_TOGGLE_COLLECT; }
  ~Collection() { CALLGRIND_TOGGLE_COLLECT; }
  Collection(const Collection&) = delete;
  Collection& operator=(const Collection&) = delete;
};

DumpedInstructions counted_run(Runnable& runnable) {
  runnable.start_over();
  CALLGRIND_ZERO_STATS;
  {
    const Collection collection;
    run_once(runnable);
  }
  return dumped_instructions();
}

// The first counted run may still find the heap as earlier cells have left it: up to half a percent more than the next
// one. And who waits for a thread does so for some hundred instructions more or fewer, which are something to a very
// small run.
DumpedInstructions steady_run(Runnable& runnable) {
  constexpr std::int64_t kSmall = 50'000'000, kVerySmall = 1'000'000;
  DumpedInstructions least = counted_run(runnable);
  const int more = least.total > kSmall ? 0 : least.total > kVerySmall ? 1 : 5;
  for (int run = 0; run < more; ++run) {
    const auto next = counted_run(runnable);
    if (next.total < least.total) least = next;
  }
  return least;
}

// The heap's own thresholds follow what was freed before, by whatever cell.
void hold_heap_thresholds() {
  constexpr int kMost_bytes = 32 << 20;  // that glibc takes
  mallopt(M_MMAP_THRESHOLD, kMost_bytes);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
}

// Behind LibTorch's back: its version counter does not move, so that nobody can watch it.
void overwrite(const at::Tensor& tensor, const at::Tensor& contents) {
  at::from_blob(tensor.mutable_data_ptr(), tensor.sizes(), tensor.strides(), tensor.options()).copy_(contents);
}

// Of the data that run() reads: where it is, and what another seed draws.
struct Exchanged {
  at::Tensor live, other;
};
std::vector<Exchanged> exchanged(const Cell& cell, const Setting& setting, std::uint64_t seed,
                                 const NamedTensors& inputs) {
  const auto& spec = cell.component->spec;
  const NamedTensors other = generated_inputs(spec, setting, seed + 1);
  const auto read = inputs_read_by_run(spec, setting);
  std::vector<Exchanged> all;
  for (const auto& input : inputs_of(spec.signature, completed(spec.signature, setting))) {
    if (input.role != Role::kData || read.count(input.name) == 0 || inputs[input.name].numel() == 0) continue;
    if (!other.contains(input.name) || other[input.name].sizes() != inputs[input.name].sizes()) return {};
    all.push_back({inputs[input.name], other[input.name]});
  }
  return all;
}

}  // namespace

bool under_callgrind() { return RUNNING_ON_VALGRIND != 0 && !callgrind_folder().empty(); }

InstructionCounts count_instructions(const Cell& cell, std::uint64_t seed) {
  if (!under_callgrind())
    throw Error(ErrorKind::kInternal, "instructions", cell.name(), "this process does not run under Callgrind");
  hold_heap_thresholds();
  CALLGRIND_START_INSTRUMENTATION;  // nothing where it is on
  const Setting setting = cell.setting();
  const NamedTensors inputs =
      placed_inputs(generated_inputs(cell.component->spec, setting, seed), setting.dtype, setting.device);
  const auto runnable = cell.component->make(cell.variant, inputs, setting);
  runnable->start_over();
  run_once(*runnable);

  const auto steady = steady_run(*runnable);
  InstructionCounts counts{.total = steady.total, .own = steady.own};
  // An opponent that keeps results makes no speedup larger, and takes longest to count.
  if (cell.variant != Variant::kOptimized) return counts;
  if (const auto data = exchanged(cell, setting, seed, inputs); !data.empty()) {
    for (const auto& one : data) overwrite(one.live, one.other);
    counts.unseen = counted_run(*runnable).total;
    counts.seen = counted_run(*runnable).total;
  }
  return counts;
}

}  // namespace twinbench
