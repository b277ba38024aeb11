// Oracle and baseline runs, and the comparison of all outputs of a component.
#include "harness/parity/reference.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdio>

#include "harness/compare/inputs.h"
#include "harness/compare/structure.h"
#include "harness/memory/tensor_hash.h"
#include "harness/parity/rounding_decisions.h"
#include "harness/parity/trials.h"
#include "src/common/error.h"
#include "src/inputs.h"
#include "src/stored_states.h"

namespace twinbench {

NamedTensors copied_outputs(Runnable& runnable) {
  NamedTensors copies;
  for (const auto& [name, tensor] : runnable.outputs())
    copies.set(name, tensor.defined() ? tensor.detach().clone() : tensor);
  return copies;
}

void run_afresh(Runnable& runnable) {
  runnable.start_over();
  runnable.run();
}

std::vector<OutputSpec> output_specs(const ComponentSpec& spec, const Setting& setting) {
  return outputs_of(spec.signature, completed(spec.signature, setting));
}

NamedTensors variant_outputs(const Component& component, Variant variant, const Setting& setting,
                             const NamedTensors& generated) {
  const NamedTensors inputs = placed_inputs(generated, setting.dtype, setting.device);
  const auto runnable = component.make(variant, inputs, setting);
  run_afresh(*runnable);
  return copied_outputs(*runnable);
}

NamedTensors baseline_outputs(const Component& component, const Setting& setting, const NamedTensors& generated) {
  return variant_outputs(component, Variant::kBaseline, setting, generated);
}

namespace {

// Generated inputs are those of fp32 mode, whatever the setting's.
Setting bound_setting(const ComponentSpec& spec, Setting setting, const NamedTensors& generated) {
  const Dtype dtype = setting.dtype;
  setting.dtype = Dtype::kFp32;
  setting = bound(spec.signature, generated, setting);
  setting.dtype = dtype;
  return setting;
}

constexpr double kLeastFactor = 1e-3, kMostFactor = 1e6;
// In modes that round (energy flow 0.5): of results that a full quota shares out; a quarter of others, by a test.
constexpr double kMostTainted = 0.5;

// Everything that the outputs follow from.
std::string key_of(const Setting& setting, const NamedTensors& generated) {
  std::string key = setting.input_case.name + "/" + to_string(setting.input_case.pass) + "/" +
                    to_string(oracle_setting(setting).rounding);
  const auto put = [&](const std::string& kind, const auto& values) {
    for (const auto& [name, value] : values) key += c10::str("/", kind, " ", name, "=", value);
  };
  put("size", setting.input_case.sizes);
  for (const auto& [name, value] : setting.input_case.options) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.17g", value);
    key += "/option " + name + "=" + digits;
  }
  for (const auto& [name, tensor] : generated) key += "/" + name + ":" + std::to_string(hash_of(tensor));
  return key;
}

}  // namespace

const NamedTensors& OracleCache::outputs(const Component& component, const Setting& given,
                                         const NamedTensors& generated) {
  const Setting setting = completed(component.spec.signature, given);
  const std::string key = key_of(setting, generated);
  if (const auto found = oracles_.find(key); found != oracles_.end()) return found->second.outputs;
  const auto found = outputs_.find(key);
  if (found != outputs_.end()) return found->second;
  return outputs_.emplace(key, baseline_outputs(component, oracle_setting(setting), generated)).first->second;
}

const OracleCache::Oracle& OracleCache::of(const Component& component, const Setting& given,
                                           const NamedTensors& generated) {
  const Setting setting = completed(component.spec.signature, given);
  const std::string key = key_of(setting, generated);
  if (const auto found = oracles_.find(key); found != oracles_.end()) return found->second;
  Oracle oracle;
  RoundingLog log;
  {
    RoundingRecorder recorder;
    oracle.outputs = baseline_outputs(component, oracle_setting(setting), generated);
    log = std::move(recorder.log);
  }
  if (setting.rounds_as() == Dtype::kBf16 && log.operands.empty())
    throw Error(ErrorKind::kInternal, "baseline of " + component.spec.id(), "rounds nothing in bf16 mode",
                "round the products' operands with rounded() of src/rounding.h");
  if (rounds_values(setting))
    oracle.unsettled = unsettled_elements(component, setting, generated, oracle.outputs,
                                          open_roundings(component, setting, generated, log), log);
  if (sets_decisions_aside(setting)) {
    Tainted tainted = tainted_by_decisions(component, setting, generated, oracle.outputs, log);
    oracle.tainted = std::move(tainted.elements), oracle.moved = std::move(tainted.moved);
  }
  return oracles_.emplace(key, std::move(oracle)).first->second;
}

const NamedTensors& OracleCache::exact(const Component& component, const Setting& setting,
                                       const NamedTensors& generated) {
  return outputs(component, exact_setting(setting), generated);
}

const CheckResult& OracleCache::judged(const Setting& setting, const NamedTensors& generated,
                                       const std::function<CheckResult()>& check) {
  const std::string key = key_of(exact_setting(setting), generated);
  const auto found = judged_.find(key);
  return found != judged_.end() ? found->second : judged_.emplace(key, check()).first->second;
}

Reference::Reference(const Component& component, const Setting& setting, const NamedTensors& generated)
    : Reference(component, setting, generated, *std::make_unique<OracleCache>()) {}

Reference::Reference(const Component& component, const Setting& setting, const NamedTensors& generated,
                     OracleCache& oracles)
    : component_(component),
      spec_(component.spec),
      setting_(setting),
      generated_(generated),
      bound_(bound_setting(component.spec, setting, generated)),
      outputs_(output_specs(component.spec, bound_)),
      oracle_(oracles.of(component, setting, generated)),
      baseline_run_(baseline_outputs(component, setting, generated)),
      baseline_(baseline_run_) {
  invalid_ = scale_bounds(spec_, setting_, generated_, outputs_);
  check_oracle();
  if (bounded_by_class_alone(setting))
    for (const auto& [name, right] : oracle()) oracle_.unsettled.set(name, at::ones_like(right, at::kBool));
  if (spec_.ambiguous) set_ambiguous_aside(component, generated, oracles);
  set_tainted_aside();
}

std::string scale_bounds(const ComponentSpec& spec, const Setting& setting, const NamedTensors& inputs,
                         std::vector<OutputSpec>& outputs) {
  if (!spec.bound_factor) return "";
  const Setting complete = bound_setting(spec, setting, inputs);
  for (auto& output : outputs) {
    if (output.tolerance.kind == Tolerance::Kind::kExact || output.tolerance.kind == Tolerance::Kind::kMeasured)
      continue;
    const double factor = spec.bound_factor(output.name, inputs, complete);
    if (!(factor >= kLeastFactor && factor <= kMostFactor))
      return c10::str("bound_factor of output '", output.name, "' is ", factor, ": give one from ", kLeastFactor,
                      " to ", kMostFactor);
    for (Bound* bound :
         {&output.tolerance.fp32, &output.tolerance.bf16, &output.tolerance.fp16, &output.tolerance.tf32}) {
      bound->relative *= factor;
      bound->absolute *= factor;
    }
  }
  return "";
}

void Reference::check_oracle() {
  const Setting fp64 = oracle_setting(bound_);
  for (const auto& output : outputs_) {
    if (!invalid_.empty() || !oracle().contains(output.name) || !oracle()[output.name].defined()) continue;
    // Exact values, read from a file say, are no better in fp64.
    const bool exact = output.tolerance.kind == Tolerance::Kind::kExact;
    if (exact && declared_difference(output, oracle()[output.name], bound_).empty()) continue;
    const std::string different = declared_difference(output, oracle()[output.name], fp64);
    if (!different.empty()) invalid_ = "output '" + output.name + "' of the oracle: " + different;
  }
}

void Reference::set_ambiguous_aside(const Component& component, const NamedTensors& generated, OracleCache& oracles) {
  Setting forward = setting_;
  forward.input_case.pass = Pass::kForward;
  const bool backward = setting_.input_case.pass == Pass::kBackward;
  const at::Tensor mask =
      spec_.ambiguous(backward ? oracles.outputs(component, forward, generated) : oracle(), setting_);
  if (!mask.any().item<bool>()) return;
  const double share = static_cast<double>(mask.sum().item<std::int64_t>()) / static_cast<double>(mask.numel());
  const double most = classes() == Dtype::kBf16 ? 0.25 : 0.01;
  // Of a handful of items a single one may exceed the share, unless it is the only one: then nothing would be compared.
  // In fp32 none may be excused that way.
  const bool single = setting_.dtype == Dtype::kBf16 && mask.numel() > 1 && mask.sum().item<std::int64_t>() == 1;
  if (share > most && !single)
    undecided_ =
        std::to_string(share) + " of the items lie within a decision margin, at most " + std::to_string(most) + " may";
  ambiguous_ = mask;
  for (const auto& spec : outputs_) {
    if (!spec.batch_axis || !baseline_.contains(spec.name)) continue;
    const at::Tensor baseline = baseline_[spec.name];
    const auto index = mask.nonzero().squeeze(1).to(baseline.device());
    baseline_.set(spec.name, baseline.index_copy(
                                 *spec.batch_axis, index,
                                 oracle()[spec.name].to(baseline.options()).index_select(*spec.batch_axis, index)));
  }
}

// The specification's share is of cells: elements of what is compared within a bound. Counts of their flows go with
// them.
void Reference::set_tainted_aside() {
  std::int64_t elements = 0, tainted = 0, in_sums = 0, left_out = 0;
  for (auto& spec : outputs_) {
    if (sums_items(spec)) in_sums += oracle()[spec.name].numel();
    if (!oracle_.tainted.contains(spec.name)) continue;
    const at::Tensor& mask = oracle_.tainted[spec.name];
    const at::Tensor &right = oracle()[spec.name], &baseline = baseline_[spec.name];
    if (!mask.sizes().equals(baseline.sizes())) continue;
    baseline_.set(spec.name, at::where(mask.to(baseline.device()), right.to(baseline.options()), baseline));
    if (spec.tolerance.kind == Tolerance::Kind::kExact || !right.is_floating_point()) continue;
    if (sums_items(spec)) {
      if (!widen(spec, mask)) left_out += mask.numel();  // it says nothing of single items
      continue;
    }
    elements += mask.numel();
    tainted += mask.sum().item<std::int64_t>();
  }
  const double share = static_cast<double>(tainted) / static_cast<double>(std::max<std::int64_t>(elements, 1));
  if (share > kMostTainted && undecided_.empty())
    undecided_ = std::to_string(share) + " of the elements are tainted by decisions, at most " +
                 std::to_string(kMostTainted) + " may";
  if (elements == 0 && left_out > 0 && widened_.empty() && undecided_.empty())
    undecided_ = "close decisions move every sum over its items far: nothing is left to compare";
  if (left_out > kMostTainted * static_cast<double>(in_sums))
    left_out_ = c10::str("close decisions move sums over items far: of ", in_sums, " elements ", left_out,
                         " are left out of the comparison");
}

// By what close decisions may change of the sum.
bool Reference::widen(OutputSpec& spec, const at::Tensor& tainted) {
  const auto wider = widened(spec, oracle()[spec.name], oracle_.moved.at(spec.name), classes());
  if (!wider) return false;
  spec = *wider;
  widened_.insert(spec.name);
  const bool some = oracle_.unsettled.contains(spec.name);
  oracle_.unsettled.set(spec.name, some ? oracle_.unsettled[spec.name].logical_or(tainted) : tainted);
  return true;
}

at::Tensor Reference::set_aside(const std::string& output) const {
  const at::Tensor& baseline = baseline_[output];
  at::Tensor aside = at::zeros(baseline.sizes(), baseline.options().dtype(at::kBool));
  if (oracle_.tainted.contains(output) && !widened_.count(output))
    aside.logical_or_(oracle_.tainted[output].to(baseline.device()));
  for (const auto& spec : outputs_)
    if (spec.name == output && spec.batch_axis && ambiguous_.defined())
      aside.index_fill_(*spec.batch_axis, ambiguous_.nonzero().squeeze(1).to(baseline.device()), 1);
  return aside;
}

bool Reference::is_left_out(const std::string& output) const {
  if (!ambiguous_.defined() && !oracle_.tainted.contains(output)) return false;
  const at::Tensor aside = set_aside(output);
  return aside.numel() > 0 && aside.all().item<bool>();
}

at::Tensor Reference::undisputed(const OutputSpec& spec, const at::Tensor& given) const {
  const at::Tensor& baseline = baseline_[spec.name];
  if (!given.sizes().equals(baseline.sizes()) || given.dtype() != baseline.dtype() || !given.is_contiguous())
    return given;
  if (!ambiguous_.defined() && !oracle_.tainted.contains(spec.name)) return given;
  return at::where(set_aside(spec.name).to(given.device()), baseline, given);
}

const at::Tensor& Reference::unsettled(const std::string& output) const {
  static const at::Tensor none;
  return oracle_.unsettled.contains(output) ? oracle_.unsettled[output] : none;
}

void Reference::judge(const NamedTensors& outputs, CheckResult& result) const {
  for (const auto& why : {invalid_, undecided_})
    if (!why.empty()) result.fail_comparison("invalid case: " + why);
  if (outputs_.empty()) result.fail("the component declares no outputs for this case: nothing would be compared");
  for (const auto& spec : outputs_) {
    if (!outputs.contains(spec.name)) {
      result.fail("output '" + spec.name + "' is missing");
      continue;
    }
    if (const auto different =
            outputs[spec.name].defined() ? declared_difference(spec, outputs[spec.name], bound_) : "no tensor";
        !different.empty()) {
      result.fail("output '" + spec.name + "': " + different);
      continue;
    }
    OutputRow row{spec.name, spec.tolerance.spec_class, {}};
    row.judged = !is_left_out(spec.name);
    row.comparison = compared(spec, undisputed(spec, outputs[spec.name]));
    if (!row.comparison.accepted())
      result.fail_comparison((row.comparison.judgement == Judgement::kInvalid ? "invalid case: output '" : "output '") +
                             spec.name + "': " + row.comparison.reason);
    result.outputs.push_back(std::move(row));
  }
  if (outputs.size() != outputs_.size())
    for (const auto& [name, tensor] : outputs) {
      bool declared = false;
      for (const auto& spec : outputs_) declared = declared || spec.name == name;
      if (!declared) result.fail("output '" + name + "' is not declared, so nothing compares it");
    }
}

bool Reference::plainly_rejects(const NamedTensors& outputs) const {
  return std::any_of(outputs_.begin(), outputs_.end(), [&](const OutputSpec& spec) {
    const Comparison plain = compare(spec, oracle()[spec.name], baseline_[spec.name],
                                     undisputed(spec, outputs[spec.name]), classes(), unsettled(spec.name), {});
    return plain.judgement == Judgement::kRejected && plain.worst_ratio > kNearMiss;
  });
}

Comparison Reference::compared(const OutputSpec& spec, const at::Tensor& candidate) const {
  const auto with = [&](const at::Tensor& honest) {
    return compare(spec, oracle()[spec.name], baseline_[spec.name], candidate, classes(), unsettled(spec.name), honest);
  };
  const Comparison first = with({});
  const bool near = first.judgement == Judgement::kRejected && first.worst_ratio <= kNearMiss;
  return near && trials().settled.contains(spec.name) ? with(trials().settled[spec.name]) : first;
}

const Trials& Reference::trials() const {
  if (trials_) return *trials_;
  Trials found = trials_of(component_, setting_, generated_);
  // What is set aside may honestly come out anywhere: its error would widen the rules of all other elements.
  for (NamedTensors* const errors : {&found.settled, &found.flipped})
    for (auto& [name, error] : *errors) {
      const at::Tensor aside = set_aside(name).to(at::kCPU);
      const bool planes = error.numel() != aside.numel();  // real and imaginary parts, an error for both
      error = error.masked_fill(planes ? aside.any(0) : aside, 0);
    }
  trials_ = std::make_shared<const Trials>(std::move(found));
  return *trials_;
}

std::string Reference::no_case() const {
  if (!undecided_.empty()) return undecided_;
  if (!invalid_.empty()) return "";
  for (const auto& spec : outputs_) {
    // A class that goes by the tensor's norm allows nothing there, and honest arithmetic need not cancel exactly.
    if (spec.tolerance.kind == Tolerance::Kind::kGradient && oracle()[spec.name].numel() > 0 &&
        oracle()[spec.name].eq(0).all().item<bool>())
      return "output '" + spec.name + "': the gradient is exactly zero everywhere";
    if (!trials().settled.contains(spec.name)) continue;
    // Where a class alone bounds all of it, or one that is wider for decisions, all of it is marked.
    const bool by_class = bounded_by_class_alone(setting_) || widened_.count(spec.name);
    const at::Tensor aside = by_class ? at::Tensor() : unsettled(spec.name);
    std::string beyond = beyond_class(spec, oracle()[spec.name], classes(), aside, trials().settled[spec.name]);
    if (beyond.empty() && trials().flipped.contains(spec.name))
      beyond = beyond_class(spec, oracle()[spec.name], classes(), {}, trials().flipped[spec.name]);
    if (!beyond.empty()) return "output '" + spec.name + "': " + beyond;
  }
  const std::string hangs = decided_by_roundings(component_, setting_, generated_, oracle());
  return hangs.empty() ? "" : hangs + ": it hangs on roundings that may go either way";
}

std::uint64_t Reference::hash() const {
  std::uint64_t sum = 0;
  for (const auto* set : {&oracle_.outputs, &baseline_})
    for (const auto& [name, tensor] : *set)
      if (tensor.defined()) sum = sum * 31 + hash_of(tensor);
  return sum;
}

void Reference::check_vacuity(const NamedTensors& inputs, CheckResult& result) const {
  Vacuity total;
  for (const auto& spec : outputs_) {
    const Vacuity guard = twinbench::check_vacuity(spec, oracle()[spec.name], baseline_[spec.name], inputs, classes(),
                                                   unsettled(spec.name));
    total.checked += guard.checked;
    total.rejected += guard.rejected;
    total.zeros = total.zeros || guard.zeros;
    if (total.reason.empty()) total.reason = guard.reason;
  }
  if (!total.holds()) result.fail_comparison("invalid case: " + total.reason);
  if (total.holds() && !total.zeros)
    result.fail_comparison(
        "invalid case: zeros are the right answer for every output; mark it degenerate, or change the inputs");
  result.vacuity = total;
}

CheckResult judge_outputs(const Component& component, const Setting& setting, const NamedTensors& generated,
                          const NamedTensors& outputs) {
  CheckResult result;
  result.check = "oracle";
  Reference(component, setting, generated).judge(outputs, result);
  return result;
}

}  // namespace twinbench
