// Counting by client requests: collection is on around the run alone, and off inside operators for the second count.
// Instrumentation stays on once it is: Valgrind forgets all its translated code where it changes, and translating
// LibTorch again for every cell took most of the time.
#include "harness/instructions/count_instructions.h"

#include <ATen/ops/from_blob.h>
#include <ATen/record_function.h>
#include <malloc.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <utility>
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
std::int64_t dumped_instructions() {
  static int number = 0;
  const std::string path = callgrind_folder() + "/" + std::to_string(getpid()) + "." + std::to_string(++number);
  CALLGRIND_DUMP_STATS;
  const std::int64_t instructions = instructions_in(read_text_file(path, "Callgrind's dump"));
  std::filesystem::remove(path);
  return instructions;
}

thread_local int operator_depth = 0;

// Collection is off from the first operator's beginning to its end. Operators within operators change nothing.
std::unique_ptr<at::ObserverContext> leave_collection(const at::RecordFunction&) {
  if (operator_depth++ == 0) CALLGRIND_TOGGLE_COLLECT;
  return nullptr;
}
void enter_collection(const at::RecordFunction&, at::ObserverContext*) {
  if (--operator_depth == 0) CALLGRIND_TOGGLE_COLLECT;
}

class OutsideOperators {
 public:
  OutsideOperators()
      : handle_(at::addThreadLocalCallback(at::RecordFunctionCallback(leave_collection, enter_collection)
                                               .scopes({at::RecordScope::FUNCTION, at::RecordScope::CUSTOM_CLASS}))) {}
  ~OutsideOperators() { at::removeCallback(handle_); }
  OutsideOperators(const OutsideOperators&) = delete;
  OutsideOperators& operator=(const OutsideOperators&) = delete;

 private:
  at::CallbackHandle handle_;
};

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

std::int64_t counted_run(Runnable& runnable) {
  runnable.start_over();
  CALLGRIND_ZERO_STATS;
  {
    const Collection collection;
    run_once(runnable);
  }
  return dumped_instructions();
}

// The first counted run may still find the heap as earlier cells have left it: some ten thousand instructions more than
// the next one's, which are something to a small run alone.
std::int64_t steady_run(Runnable& runnable) {
  constexpr std::int64_t kSmall = 50'000'000;
  const std::int64_t first = counted_run(runnable);
  return first > kSmall ? first : std::min(first, counted_run(runnable));
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

// Of the data that run() reads: what it holds, and what another seed draws.
struct Exchanged {
  at::Tensor live, own, other;
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
    all.push_back({inputs[input.name], inputs[input.name].clone(), other[input.name]});
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

  InstructionCounts counts;
  counts.total = steady_run(*runnable);
  // Before the observer: where there was one, operators take another way. A baseline that keeps results makes no
  // speedup larger, and takes longest to count.
  const bool may_keep = cell.variant != Variant::kBaseline;
  if (const auto data = may_keep ? exchanged(cell, setting, seed, inputs) : std::vector<Exchanged>(); !data.empty()) {
    for (const auto& one : data) overwrite(one.live, one.other);
    counts.unseen = counted_run(*runnable);
    counts.seen = counted_run(*runnable);
    for (const auto& one : data) overwrite(one.live, one.own);
  }
  const OutsideOperators collection;
  // The first one in a process makes the observer's tables, some thousand instructions. The run is on contents that it
  // has seen, so that what keeps contents still pays for others above.
  static bool first = true;
  if (std::exchange(first, false)) run_once(*runnable);
  counts.outside_operators = steady_run(*runnable);
  return counts;
}

}  // namespace twinbench
