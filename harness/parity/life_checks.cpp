// Checks of a variant beside its numbers: when it computes, with how many threads, beside another instance of itself.
#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <vector>

#include "harness/compare/inputs.h"
#include "harness/counters/process_calls.h"
#include "harness/parity/interruptions.h"
#include "harness/parity/subject.h"
#include "harness/runner/share.h"
#include "src/common/error.h"

namespace twinbench {

namespace {

// The given numbers are gone. Texts and keys stay: a variant may hand them on as they are.
void spoil(const NamedTensors& inputs) {
  for (const auto& [name, tensor] : inputs)
    if (tensor.is_floating_point() || tensor.is_complex())
      tensor.detach().fill_(std::numeric_limits<double>::quiet_NaN());
}

NamedTensors copied(const NamedTensors& outputs) {
  NamedTensors copies;
  for (const auto& [name, tensor] : outputs) copies.set(name, tensor.defined() ? tensor.detach().clone() : tensor);
  return copies;
}

bool lies_in(const at::Tensor& output, const NamedTensors& inputs) {
  for (const auto& [name, tensor] : inputs)
    if (tensor.storage().data() == output.storage().data() && tensor.nbytes() > 0) return true;
  return false;
}

// Hands on part of an input as it is: no work that could come late.
NamedTensors without_views_of(const NamedTensors& inputs, const NamedTensors& outputs) {
  NamedTensors own;
  for (const auto& [name, tensor] : outputs)
    if (tensor.defined() && !lies_in(tensor, inputs)) own.set(name, tensor);
  return own;
}

// Of `all`, those that `wanted` names.
NamedTensors same_names(const NamedTensors& all, const NamedTensors& wanted) {
  NamedTensors chosen;
  for (const auto& [name, tensor] : wanted) chosen.set(name, all[name]);
  return chosen;
}

constexpr int kMostOverlaps = 20;

class ThreadCount {
 public:
  explicit ThreadCount(int threads) : before_(at::get_num_threads()) { at::set_num_threads(threads); }
  ~ThreadCount() { at::set_num_threads(before_); }
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;

 private:
  int before_;
};

}  // namespace

// With the process's number the first run was judged. One of 3 to 18 but 8 is drawn, or, a quarter of the time, as many
// as large machines have.
std::vector<int> drawn_thread_counts(const std::string& cell, const ParityOptions& options, int present) {
  const std::uint64_t draw = name_hash(options.sample + " threads " + cell);
  constexpr int kMany[] = {32, 64, 128, 256};
  const int below = 3 + static_cast<int>(draw % 15), few = below < 8 ? below : below + 1;
  const int drawn = draw / 64 % 4 == 0 ? kMany[draw / 256 % 4] : few;
  std::vector<int> counts = {2, 8, drawn};
  std::erase(counts, present);
  if (!options.all_thread_counts) counts = {counts[draw / 16 % counts.size()]};
  if (present != 1) counts.push_back(1);
  return counts;
}

int drawn_many_threads(const std::string& cell, const ParityOptions& options) {
  constexpr int kMany[] = {12, 16, 24, 32, 48, 64};
  return kMany[name_hash(options.sample + " many threads " + cell) % std::size(kMany)];
}

void check_late(const LifeFindings& life, CheckResult& result) {
  if (!life.late.empty()) result.fail(life.late);
}

void check_threads(const Subject& subject, bool large, CheckResult& result) {
  if (!subject.setting.device.is_cpu()) return result.skip("a device's kernels do not use the host's threads");
  for (const int threads : large ? std::vector{drawn_many_threads(subject.drawn_by(), subject.options)}
                                 : drawn_thread_counts(subject.drawn_by(), subject.options, at::get_num_threads())) {
    const std::string with = "with " + std::to_string(threads) + (threads == 1 ? " thread" : " threads");
    const ThreadCount count(threads);
    std::optional<ProcessCallScope> calls(std::in_place);
    const Prepared prepared = subject.prepare(subject.placed());
    run_afresh(*prepared.runnable);
    const auto made = calls->counts();
    calls.reset();
    const NamedTensors first = copied_outputs(*prepared.runnable);
    if (!subject.difference(first).empty()) {  // the same bits are judged already
      CheckResult judged;
      subject.reference.judge(first, judged);
      if (judged.verdict != CheckVerdict::kPass) return result.fail_as(judged, with);
    }
    if (large) continue;
    // Without a second piece nothing overlaps, however often it runs.
    if (ProcessCallScope::counts_here() && !made.count("parallel") && !made.count("threads")) continue;
    // Whether pieces overlap is chance: several times, but a slow case is long enough for it to happen at once.
    const auto start = std::chrono::steady_clock::now();
    const std::chrono::duration<double> most(subject.options.overlap_seconds);
    for (int again = 0; threads > 1 && again < kMostOverlaps && std::chrono::steady_clock::now() - start < most;
         ++again) {
      {
        const Interruptions overlap;
        run_afresh(*prepared.runnable);
      }
      const auto& specs = subject.outputs_declared();
      const std::string changed =
          first_bit_difference(without_measured(specs, first), without_measured(specs, prepared.runnable->outputs()));
      if (!changed.empty()) return result.fail(with + ": where its pieces overlap, other bits in " + changed);
    }
  }
}

void check_instances(Subject& subject, CheckResult& result) {
  const auto& other = subject.shared.perturbed();
  const bool is_case = other.no_case.empty();
  Runnable& one = subject.run_again(subject.repeats == 0 ? 1 : 0);  // its last run's outputs still stand
  const Prepared two = subject.prepare(
      placed_inputs(is_case ? other.generated : subject.generated, subject.setting.dtype, subject.setting.device));
  run_afresh(*two.runnable);
  if (const auto different = subject.difference(copied_outputs(one)); !different.empty())
    return result.fail("a second instance on other inputs changes the bits of " + different + " of the first");
  const NamedTensors of_two = copied_outputs(*two.runnable);
  CheckResult judged;
  if (is_case) {
    other.reference.judge(of_two, judged);
    if (judged.verdict != CheckVerdict::kPass) return result.fail_as(judged, "beside another instance");
  } else if (const auto different = subject.difference(of_two); !different.empty()) {
    return result.fail("beside another instance on the same inputs: other bits in " + different);
  }
  subject.run_again(1);
  if (const auto different = subject.difference(copied_outputs(one)); !different.empty())
    return result.fail("behind a run of another instance on other inputs: other bits in " + different);
  const auto& specs = subject.outputs_declared();
  const auto changed =
      first_bit_difference(without_measured(specs, of_two), without_measured(specs, copied_outputs(*two.runnable)));
  if (!changed.empty()) result.fail("a run of another instance changes the bits of " + changed);
}

void check_global_state(const LifeFindings& life, CheckResult& result) {
  if (!life.changed.empty()) result.fail(life.changed);
}

void check_outlives(const LifeFindings& life, CheckResult& result) {
  if (!life.left_behind.empty()) result.fail("its life is over, and there is more than before: " + life.left_behind);
}

LifeFindings watched_life(const Component& component, Variant variant, const Setting& setting,
                          const NamedTensors& inputs, const std::vector<OutputSpec>& specs,
                          const NamedTensors* expected, const std::function<void(const NamedTensors&)>& look) {
  LifeFindings findings;
  const Survivors before = Survivors::now();
  GlobalState state = GlobalState::now();
  const auto compare = [&](const char* phase) {
    GlobalState now = GlobalState::now();
    if (const auto changed = now.changed_since(state); !changed.empty())
      findings.changed += (findings.changed.empty() ? "" : "; ") + std::string(phase) + " changes: " + changed;
    state = std::move(now);
  };
  {
    const auto runnable = component.make(variant, inputs, setting);
    compare("set-up");
    run_afresh(*runnable);
    if (expected)
      spoil(inputs);
    else
      compare("run()");
    const NamedTensors outputs = runnable->outputs();
    findings.outputs = copied(outputs);
    compare("outputs()");
    if (look) look(outputs);
    const NamedTensors judged = without_measured(specs, without_views_of(inputs, outputs));
    if (expected && findings.late.empty())
      if (const auto different = first_bit_difference(same_names(*expected, judged), judged); !different.empty())
        findings.late = "inputs that are overwritten after run() change the bits of " + different +
                        " in outputs(): it computes there, not in run()";
    const NamedTensors again = runnable->outputs();
    if (outputs.size() != again.size())
      findings.late = "a second outputs() returns " + std::to_string(again.size()) + " outputs, the first " +
                      std::to_string(outputs.size());
    else if (const auto different =
                 first_bit_difference(same_names(findings.outputs, judged), same_names(again, judged));
             !different.empty() && findings.late.empty())
      findings.late = "a second outputs() returns other bits in " + different;
  }
  if (const auto changed = GlobalState::now().changed_since(state); !changed.empty())
    findings.changed += (findings.changed.empty() ? "" : "; ") + ("its end changes: " + changed);
  findings.left_behind = Survivors::now().more_than(before);
  return findings;
}

}  // namespace twinbench
