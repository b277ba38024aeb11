// The right answer for one set of inputs: the oracle's outputs and the baseline's, and the judge of a third set.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>

#include "harness/parity/check_result.h"
#include "harness/parity/rounding_decisions.h"
#include "src/registry.h"
#include "src/stored_states.h"

namespace twinbench {

// Outputs copied, so that the next run() may overwrite what outputs() returned.
NamedTensors copied_outputs(Runnable& runnable);

// One run from the state that set-up was given: how every judged run starts.
void run_afresh(Runnable& runnable);

// What a variant gives in one run on inputs as they were generated, in the setting's dtype on its device.
NamedTensors variant_outputs(const Component& component, Variant variant, const Setting& setting,
                             const NamedTensors& generated);
// The same of the baseline.
NamedTensors baseline_outputs(const Component& component, const Setting& setting, const NamedTensors& generated);

// The outputs a case has: the component's, or its gradients where the case is a backward one.
std::vector<OutputSpec> output_specs(const ComponentSpec& spec, const Setting& setting);

// Makes the bounds of `outputs` those that hold on these inputs (ComponentSpec::bound_factor). Empty, or what is wrong
// with a factor.
std::string scale_bounds(const ComponentSpec& spec, const Setting& setting, const NamedTensors& inputs,
                         std::vector<OutputSpec>& outputs);

// The outputs that must come again from run to run: not those of Tolerance::Kind::kMeasured.
NamedTensors without_measured(const std::vector<OutputSpec>& specs, const NamedTensors& outputs);

// Tensor cores truncate or round fp32 operands, as they like (energy flow 0.4): the class alone is a bound.
inline bool bounded_by_class_alone(const Setting& setting) {
  return setting.dtype == Dtype::kTf32 && setting.device.takes_cuda_path();
}

// Results of the oracle by what they were computed from, so that nothing is computed twice. Of one component.
class OracleCache {
 public:
  struct Oracle {
    NamedTensors outputs;
    // In modes that round: which elements of each output are unsettled (rounding_decisions.h); else nothing.
    NamedTensors unsettled;
    // Likewise, where a decision is close: what it may change, and how far (Tainted). Not compared, or of a sum over
    // all items, as a parameter's gradient is, with a wider bound.
    NamedTensors tainted;
    std::map<std::string, Moved> moved;
  };
  // The oracle in `setting`'s case and pass. Of its dtype only the roundings matter, its device does not.
  const Oracle& of(const Component& component, const Setting& setting, const NamedTensors& generated);
  // Its outputs alone, which take one run.
  const NamedTensors& outputs(const Component& component, const Setting& setting, const NamedTensors& generated);
  // The outputs of the baseline in fp64 without any rounding.
  const NamedTensors& exact(const Component& component, const Setting& setting, const NamedTensors& generated);
  // What `check` finds about the exact outputs alone on those inputs.
  const CheckResult& judged(const Setting& setting, const NamedTensors& generated,
                            const std::function<CheckResult()>& check);

 private:
  std::map<std::string, Oracle> oracles_;
  std::map<std::string, NamedTensors> outputs_;  // of others
  std::map<std::string, CheckResult> judged_;
};

struct Trials;

class Reference {
 public:
  // Runs the baseline in fp64 on the CPU, rounding what the setting's mode rounds, and in the setting's dtype on its
  // device, on inputs as they were generated.
  Reference(const Component& component, const Setting& setting, const NamedTensors& generated);
  Reference(const Component& component, const Setting& setting, const NamedTensors& generated, OracleCache& oracles);

  // Compares every declared output, adds a row each and fails `result` with the first reason. An undeclared or missing
  // output fails too, and one of another shape or dtype than declared.
  void judge(const NamedTensors& outputs, CheckResult& result) const;
  // Whether some output is wrong by far more than honest arithmetic can be: then judge() fails, and need not be asked.
  bool plainly_rejects(const NamedTensors& outputs) const;
  void check_vacuity(const NamedTensors& inputs, CheckResult& result) const;

  // Empty, or why these inputs are no case, whoever computes: more items than the specification allows lie within a
  // decision margin, or an output's class asks for more than the mode's arithmetic can give (trials.h; LayerNorm over
  // two elements that are nearly equal, a gradient whose terms cancel, altogether even), or an exact output hangs on
  // roundings that may go either way. The candidate has no say in it. Slow: to be
  // asked where something failed.
  std::string no_case() const;
  // Empty, or how much close decisions leave out of the comparison, where it is most of it: what judge() passes then is
  // no pass.
  const std::string& left_out() const { return left_out_; }

  // Whose tolerance classes hold: the mode's, or bf16's where states are stored in bf16 (energy flow 0.4).
  Dtype classes() const { return keeps_bf16(setting_) ? Dtype::kBf16 : setting_.dtype; }

  // The outputs of the case, with bounds as they hold for these inputs (ComponentSpec::bound_factor).
  const std::vector<OutputSpec>& outputs() const { return outputs_; }
  const NamedTensors& oracle() const { return oracle_.outputs; }
  const at::Tensor& unsettled(const std::string& output) const;  // undefined in modes that round nothing
  // Bool, of its shape: true where decisions take the candidate's value out of the comparison.
  at::Tensor set_aside(const std::string& output) const;
  bool is_left_out(const std::string& output) const;  // all of it is set aside: any value would do
  const NamedTensors& baseline() const { return baseline_; }
  std::uint64_t hash() const;                                         // of all expected values: nobody may write there
  const NamedTensors& baseline_run() const { return baseline_run_; }  // as it ran: disputed items are its own

 private:
  // Against the baseline's own error, and where that rejects narrowly, against honest arithmetic's.
  Comparison compared(const OutputSpec& spec, const at::Tensor& candidate) const;
  const Trials& trials() const;  // errors of zero where set_aside()
  // Why the oracle is none: not of the declared shape, or not in double precision (exact outputs may be as declared).
  void check_oracle();
  // Marks the items whose decisions rounding may take, and gives the baseline the oracle's values there.
  void set_ambiguous_aside(const Component& component, const NamedTensors& generated, OracleCache& oracles);
  void set_tainted_aside();
  bool widen(OutputSpec& spec, const at::Tensor& tainted);  // false: it cannot be compared
  // The candidate's output with the baseline's values where it is set aside.
  at::Tensor undisputed(const OutputSpec& spec, const at::Tensor& given) const;

  const Component& component_;
  const ComponentSpec& spec_;
  Setting setting_;
  NamedTensors generated_;
  Setting bound_;  // complete, with the sizes that the inputs have
  std::vector<OutputSpec> outputs_;
  OracleCache::Oracle oracle_;
  NamedTensors baseline_run_, baseline_;
  at::Tensor ambiguous_;                          // [items] bool; undefined where nothing is ambiguous
  std::string invalid_;                           // why the case is
  std::set<std::string> widened_;                 // sums that are compared although they are tainted
  std::string undecided_;                         // the same, because of decision margins
  std::string left_out_;                          // what left_out() says
  mutable std::shared_ptr<const Trials> trials_;  // made on first use
};

// Judges outputs that a variant gave on generated inputs: for engines that only have the last timed sample, or a file.
CheckResult judge_outputs(const Component& component, const Setting& setting, const NamedTensors& generated,
                          const NamedTensors& outputs);

}  // namespace twinbench
