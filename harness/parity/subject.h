// What every parity check is given: the cell under test, its inputs and the right answer.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "harness/compare/host_elements.h"
#include "harness/compare/inputs.h"
#include "harness/memory/global_state.h"
#include "harness/parity/parity.h"
#include "harness/parity/reference.h"
#include "harness/parity/shared_case.h"
#include "src/common/choice.h"

namespace twinbench {

// A runnable with the inputs it reads: they must live as long.
struct Prepared {
  NamedTensors inputs;
  std::unique_ptr<Runnable> runnable;
};

struct Subject {
  const Component& component;
  Variant variant;
  Setting setting;
  std::uint64_t seed;
  const ParityOptions& options;
  SharedCase& shared;
  const NamedTensors& generated;  // fp32 and integers, on the CPU
  const Reference& reference;
  NamedTensors outputs;              // of the candidate's first run, copies
  Prepared repeated;                 // a second runnable, which several checks run again
  int repeats = 0;                   // its runs so far
  std::vector<Choice> choices = {};  // that the set-up of the first run made

  const ComponentSpec& spec() const { return component.spec; }
  // What chance is drawn by where each cell has its own: not its variant's or its device's.
  std::string drawn_by() const { return spec().id() + "/" + setting.input_case.name + "/" + to_string(setting.dtype); }
  const std::vector<OutputSpec>& outputs_declared() const { return reference.outputs(); }
  // The same of measured integers: a variant's counts of its own work, which on the host come again with the inputs.
  std::string count_difference(const NamedTensors& got) const;
  NamedTensors placed() const { return placed_inputs(generated, setting.dtype, setting.device); }
  // first_bit_difference() to the first run's outputs; measured ones differ by nature.
  std::string difference(const NamedTensors& got, double underflow = 0) const;
  // The second runnable, run `more` times more, each time from the start. Another thread made it, and is over: set-up
  // and run() need not come from the same one.
  Runnable& run_again(int more) {
    if (!repeated.runnable) repeated = prepared_elsewhere();
    for (; more > 0; --more, ++repeats) run_afresh(*repeated.runnable);
    return *repeated.runnable;
  }
  Prepared prepare(NamedTensors inputs) const {
    Prepared prepared;
    prepared.inputs = std::move(inputs);
    prepared.runnable = component.make(variant, prepared.inputs, setting);
    return prepared;
  }
  Prepared prepared_elsewhere() const;  // by a thread of its own
};

// Whether run() reads that input again each time, so that a set-up runnable must follow a change of it: batch items,
// but no state, which reset() returns to what set-up was given.
bool is_read_by_run(const Subject& subject, const std::string& input);

// Where an input's batch items lie: as declared, or, for grad_<output>, as that output declares.
std::optional<std::int64_t> batch_axis_of(const Subject& subject, const std::string& input);

// The number of items of the case; 0 where it is not batched or every output mixes the items.
std::int64_t batch_items(const ComponentSpec& spec, const Setting& setting);

// Empty, or where an output alone lies outside the output's bounds from one in a batch, or from one of another setting.
std::string bound_broken(const OutputSpec& spec, const at::Tensor& expected, const at::Tensor& got, Dtype dtype);

// Empty, or the first output whose bits differ, but for numbers no further apart than `underflow`. Both sets hold the
// same names. NaN payloads count.
std::string first_bit_difference(const NamedTensors& expected, const NamedTensors& got, double underflow = 0);

// The checks. Each fills verdict, reason and rows; exceptions are the caller's.
void check_golden(const Component& component, Variant variant, const Setting& setting, CheckResult& result);
void check_refusals(const Component& component, Variant variant, const Setting& setting, std::uint64_t seed,
                    CheckResult& result);
void check_specimen(const Component& component, const Setting& setting, std::uint64_t seed, OracleCache& oracles,
                    CheckResult& result);
void check_determinism(Subject& subject, CheckResult& result);
void check_input_mutation(Subject& subject, CheckResult& result);
void check_guard_bands(const Subject& subject, CheckResult& result);
void check_non_contiguous(const Subject& subject, CheckResult& result);
void check_stale(const Subject& subject, CheckResult& result);
void check_batch_invariance(const Subject& subject, CheckResult& result);
void check_poisoned_neighbour(const Subject& subject, CheckResult& result);
// What the specification's invariants say of outputs to the subject's inputs: empty, or each that is broken.
std::string broken_invariants(const Subject& subject, const NamedTensors& of_a_run);
std::string broken_invariants(const ComponentSpec& spec, const NamedTensors& inputs, const NamedTensors& of_a_run,
                              const Setting& setting);
void check_invariants(const Subject& subject, CheckResult& result);
void check_relations(const Subject& subject, CheckResult& result);
void check_ways(const Subject& subject, CheckResult& result);
void check_carried(const Subject& subject, CheckResult& result);
void check_threads(const Subject& subject, bool large, CheckResult& result);
void check_instances(Subject& subject, CheckResult& result);
void check_sensitivity(const Subject& subject, CheckResult& result);
void check_precision(const Subject& subject, CheckResult& result);

// What one life of a variant (set-up, run, outputs, end) gave and what it did to its process.
struct LifeFindings {
  NamedTensors outputs;                    // copies
  std::string changed, left_behind, late;  // empty: nothing
};
// With `expected`, the answers to `inputs`: these are spoilt between run() and outputs(), which must still give those.
// `look` sees the outputs themselves.
LifeFindings watched_life(const Component& component, Variant variant, const Setting& setting,
                          const NamedTensors& inputs, const std::vector<OutputSpec>& specs,
                          const NamedTensors* expected = nullptr,
                          const std::function<void(const NamedTensors&)>& look = {});
void check_late(const LifeFindings& life, CheckResult& result);
void check_global_state(const LifeFindings& life, CheckResult& result);
void check_outlives(const LifeFindings& life, CheckResult& result);

}  // namespace twinbench
