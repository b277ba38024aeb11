// The right answer for one set of inputs: the oracle's outputs and the baseline's, and the judge of a third set.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>

#include "harness/parity/check_result.h"
#include "src/registry.h"

namespace twinbench {

// Outputs copied, so that the next run() may overwrite what outputs() returned.
NamedTensors copied_outputs(Runnable& runnable);

// One run from the state that set-up was given: how every judged run starts.
void run_afresh(Runnable& runnable);

// What the baseline gives on inputs as they were generated, in the setting's dtype on its device.
NamedTensors baseline_outputs(const Component& component, const Setting& setting, const NamedTensors& generated);

// The outputs a case has: the component's, or its gradients where the case is a backward one.
std::vector<OutputSpec> output_specs(const ComponentSpec& spec, const Setting& setting);

// The outputs that must come again from run to run: not those of Tolerance::Kind::kMeasured.
NamedTensors without_measured(const std::vector<OutputSpec>& specs, const NamedTensors& outputs);

// Results of the oracle by what they were computed from, so that nothing is computed twice. Of one component.
class OracleCache {
 public:
  struct Oracle {
    NamedTensors outputs;
    // In modes that round: which elements of each output are unsettled (rounding_decisions.h); else nothing.
    NamedTensors unsettled;
  };
  // The oracle in `setting`'s case and pass. Of its dtype only the roundings matter, its device does not.
  const Oracle& of(const Component& component, const Setting& setting, const NamedTensors& generated);
  // The outputs of the baseline in fp64 without any rounding.
  const NamedTensors& exact(const Component& component, const Setting& setting, const NamedTensors& generated);
  // What `check` finds about the exact outputs alone on those inputs.
  const CheckResult& judged(const Setting& setting, const NamedTensors& generated,
                            const std::function<CheckResult()>& check);

 private:
  std::map<std::string, Oracle> oracles_;
  std::map<std::string, CheckResult> judged_;
};

class Reference {
 public:
  // Runs the baseline in fp64 on the CPU, rounding what the setting's mode rounds, and in the setting's dtype on its
  // device, on inputs as they were generated.
  Reference(const Component& component, const Setting& setting, const NamedTensors& generated);
  Reference(const Component& component, const Setting& setting, const NamedTensors& generated, OracleCache& oracles);

  // Compares every declared output, adds a row each and fails `result` with the first reason. An undeclared or missing
  // output fails too, and one of another shape or dtype than declared.
  void judge(const NamedTensors& outputs, CheckResult& result) const;
  void check_vacuity(const NamedTensors& inputs, CheckResult& result) const;

  // The gradients whose terms cancel: eight times the baseline's error against the oracle, which is what an honest
  // candidate may have, is more than the class allows of the little that is left (LayerNorm over one or two elements
  // has a gradient of zero, whatever comes in). Nothing can be told from such an output. That is no excuse for a listed
  // case, whose sizes were chosen: there the class holds and the case fails. Drawn sizes, which nobody chose, may set
  // these outputs aside (seed_sweep_test.cpp) or draw again (held-out cases).
  std::vector<std::string> cancelled() const;

  // The outputs of the case, with bounds as they hold for these inputs (ComponentSpec::bound_factor).
  const std::vector<OutputSpec>& outputs() const { return outputs_; }
  const NamedTensors& oracle() const { return oracle_.outputs; }
  const at::Tensor& unsettled(const std::string& output) const;  // undefined in modes that round nothing
  const NamedTensors& baseline() const { return baseline_; }
  std::uint64_t hash() const;                                         // of all expected values: nobody may write there
  const NamedTensors& baseline_run() const { return baseline_run_; }  // as it ran: disputed items are its own

 private:
  void scale_bounds(const NamedTensors& generated);
  // Why the oracle is none: not of the declared shape, or not in double precision (exact outputs may be as declared).
  void check_oracle();
  // Marks the items whose decisions rounding may take, and gives the baseline the oracle's values there.
  void set_ambiguous_aside(const Component& component, const NamedTensors& generated, OracleCache& oracles);
  // The candidate's output with the baseline's values at ambiguous items.
  at::Tensor undisputed(const OutputSpec& spec, const at::Tensor& candidate) const;

  const ComponentSpec& spec_;
  Setting setting_;
  Setting bound_;  // complete, with the sizes that the inputs have
  std::vector<OutputSpec> outputs_;
  OracleCache::Oracle oracle_;
  NamedTensors baseline_run_, baseline_;
  at::Tensor ambiguous_;  // [items] bool; undefined where nothing is ambiguous
  std::string invalid_;   // why the case is
};

// Judges outputs that a variant gave on generated inputs: for engines that only have the last timed sample, or a file.
CheckResult judge_outputs(const Component& component, const Setting& setting, const NamedTensors& generated,
                          const NamedTensors& outputs);

}  // namespace twinbench
