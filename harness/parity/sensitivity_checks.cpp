// Checks of the case and the variant together: every input matters and is followed, every output varies, and the next
// lower precision is seen.
#include <ATen/ATen.h>

#include <algorithm>

#include "harness/compare/inputs.h"
#include "harness/memory/tensor_hash.h"
#include "harness/parity/drawn_inputs.h"
#include "harness/parity/perturbed_inputs.h"
#include "harness/parity/subject.h"
#include "src/common/error.h"
#include "src/inputs.h"

namespace twinbench {

namespace {

bool varies(const at::Tensor& output) {
  if (output.numel() < 2) return true;  // one value cannot
  const at::Tensor flat = output.reshape({-1});
  return !flat.eq(flat.select(0, 0)).all().item<bool>();
}

// Whether the first axis of an output counts the batch's items.
bool has_items(const OutputSpec& output, const std::string& batch_size) {
  return !output.shape.empty() && output.shape.front().text() == batch_size;
}

// items [n, ...]: whether two of the n differ. Of rows, those of zeros are those in which there is nothing.
bool tells_items_apart(const at::Tensor& items) {
  at::Tensor rows = items.reshape({items.size(0), -1});
  if (rows.size(1) > 1) rows = rows.index({rows.ne(0).any(1)});
  return rows.size(0) > 1 && !rows.eq(rows.narrow(0, 0, 1)).all().item<bool>();
}

NamedTensors oracle_run(const Component& component, const Setting& setting, const NamedTensors& generated) {
  const Setting oracle = oracle_setting(setting);
  const NamedTensors inputs = placed_inputs(generated, oracle.dtype, oracle.device);
  const auto runnable = component.make(Variant::kBaseline, inputs, oracle);
  run_afresh(*runnable);
  return copied_outputs(*runnable);
}

// Of the small cases of one pass: inputs of which no case's answer depends, outputs that are constant in every one, and
// those that are the same for all items of every one, where another item's would be as right. One draw of few elements
// may by chance decide nothing by a threshold, say: then others are looked at.
class Unproven {
 public:
  Unproven(const Component& component, const Setting& first, std::uint64_t seed) : component_(component) {
    for (int draw = 0; draw < kDraws; ++draw)
      for (const auto& input : component.spec.cases) {
        Setting setting = first;
        setting.input_case = input;
        if (input.pass != first.input_case.pass || input.degenerate || input.timed || !input.specimen.empty()) continue;
        look(completed(component.spec.signature, setting), seed + static_cast<std::uint64_t>(draw) * kNextSeed);
        if (started_ && inputs_.empty() && outputs_.empty() && alike_.empty()) return;
      }
  }

  std::string text() const {
    std::string text;
    for (const auto& name : inputs_)
      text += (text.empty() ? "" : "; ") + ("no case's answer depends on input '" + name + "'");
    for (const auto& name : outputs_)
      text += (text.empty() ? "" : "; ") + ("output '" + name + "' is constant in every case");
    for (const auto& name : alike_)
      if (outputs_.count(name) == 0)
        text += (text.empty() ? "" : "; ") + ("output '" + name + "' is the same for all items of every case");
    return text;
  }

 private:
  void look(const Setting& setting, std::uint64_t seed) {
    const NamedTensors own = generated_inputs(component_.spec, setting, seed);
    const NamedTensors answer = oracle_run(component_, setting, own);
    const auto specs = output_specs(component_.spec, setting);
    if (!started_) {
      // A gradient need not depend on every input: a last bias never shows in one.
      for (const auto& [name, tensor] : own)
        if (!setting.backward() || name.rfind("grad_", 0) == 0) inputs_.insert(name);
      for (const auto& spec : specs)
        if (spec.tolerance.kind != Tolerance::Kind::kMeasured) outputs_.insert(spec.name);
      started_ = true;
    }
    for (const auto& spec : specs) {
      if (!has_items(spec, component_.spec.batch_size) || !answer.contains(spec.name) ||
          spec.tolerance.kind == Tolerance::Kind::kMeasured)
        continue;
      const at::Tensor& items = answer[spec.name];
      if (items.numel() == 0 || items.size(0) < 2 || told_apart_.count(spec.name) > 0) continue;
      alike_.insert(spec.name);
      if (tells_items_apart(items)) alike_.erase(spec.name), told_apart_.insert(spec.name);
    }
    std::erase_if(outputs_, [&](const auto& name) { return answer.contains(name) && varies(answer[name]); });
    const NamedTensors other = perturbed_inputs(component_.spec, setting, own, seed);
    std::erase_if(inputs_, [&](const std::string& name) {
      if (!own.contains(name)) return false;
      // Keys that every seed has alike cannot be changed one by one.
      if (!other.contains(name) || hash_of(own[name]) == hash_of(other[name])) return true;
      NamedTensors changed = own;
      changed.set(name, other[name]);
      try {
        return !first_bit_difference(without_measured(specs, answer),
                                     without_measured(specs, oracle_run(component_, setting, changed)))
                    .empty();
      } catch (const Error&) {
        return true;  // it is refused: so it matters
      }
    });
  }

  const Component& component_;
  std::set<std::string> inputs_, outputs_, alike_, told_apart_;
  bool started_ = false;
};

at::Tensor rounded(const at::Tensor& tensor, at::ScalarType type) {
  if (tensor.is_complex()) return at::view_as_complex(rounded(at::view_as_real(tensor.resolve_conj()), type));
  return tensor.is_floating_point() ? tensor.to(type).to(tensor.scalar_type()) : tensor;
}

}  // namespace

void check_sensitivity(const Subject& subject, CheckResult& result) {
  if (subject.variant == Variant::kBaseline) {
    const auto& cases = subject.spec().cases;
    const auto first = std::find_if(cases.begin(), cases.end(), [&](const Case& one) {
      return one.pass == subject.setting.input_case.pass && !one.degenerate && !one.timed && one.specimen.empty();
    });
    if (first == cases.end() || first->name != subject.setting.input_case.name ||
        subject.setting.dtype != subject.spec().dtypes.front())
      return result.skip("looked at once a pass, in the first small case");
    if (const std::string unproven = Unproven(subject.component, subject.setting, subject.seed).text();
        !unproven.empty())
      result.fail_comparison("invalid component: " + unproven);
    return;
  }
  const auto& other = subject.shared.perturbed();
  if (!other.no_case.empty()) return result.skip("with every input changed: " + other.no_case);
  const Prepared prepared =
      subject.prepare(placed_inputs(other.generated, subject.setting.dtype, subject.setting.device));
  run_afresh(*prepared.runnable);
  other.reference.judge(prepared.runnable->outputs(), result);
  if (result.verdict == CheckVerdict::kFail) result.reason = "with every input changed, weights too: " + result.reason;
}

namespace {

// Of numbers that bf16 can miss, so few may by chance all be nearly bf16's: at a gradient's bound one in thirty is. A
// sixteenth of the largest number is missed by up to this share of it: what lies beside one that bf16 has, as 1000, and
// is smaller still, is lost in a bound that goes by the largest.
constexpr std::int64_t kTelling = 4;
constexpr double kMissed = 0x1p-13;

// Whether a class compares it, rather than bits or measured values.
bool has_tolerance(const OutputSpec& spec) {
  return (spec.tolerance.kind == Tolerance::Kind::kBound || spec.tolerance.kind == Tolerance::Kind::kGradient) &&
         spec.element != Element::kInt64 && spec.element != Element::kInt32 && spec.element != Element::kByte &&
         spec.element != Element::kBool;
}

std::int64_t telling_numbers(const Subject& subject) {
  std::int64_t count = 0;
  for (const auto& spec : subject.outputs_declared()) {
    if (!has_tolerance(spec)) continue;
    const at::Tensor& right = subject.reference.oracle()[spec.name];
    const at::Tensor numbers = at::nan_to_num(right.is_complex() ? at::view_as_real(right) : right, 0, 0, 0);
    if (numbers.numel() == 0) continue;
    const at::Tensor missed = (rounded(numbers, at::kBFloat16) - numbers).abs();
    count += missed.gt(kMissed * numbers.abs().max()).sum().item<std::int64_t>();
  }
  return count;
}

}  // namespace

void check_precision(const Subject& subject, CheckResult& result) {
  const Dtype dtype = subject.setting.dtype;
  if (dtype != Dtype::kFp32) return result.skip("only fp32 has a next lower precision that every machine can round to");
  const auto& specs = subject.outputs_declared();
  if (std::none_of(specs.begin(), specs.end(), has_tolerance))
    return result.skip("no output is compared within a tolerance");
  NamedTensors inputs, outputs;
  for (const auto& [name, tensor] : subject.placed()) inputs.set(name, rounded(tensor, at::kBFloat16));
  const auto runnable = subject.component.make(Variant::kBaseline, inputs, subject.setting);
  run_afresh(*runnable);
  for (const auto& [name, tensor] : runnable->outputs()) outputs.set(name, rounded(tensor, at::kBFloat16).contiguous());
  if (subject.reference.plainly_rejects(outputs)) return;
  CheckResult judged;
  subject.reference.judge(outputs, judged);
  if (judged.verdict != CheckVerdict::kPass) return;
  if (const std::int64_t count = telling_numbers(subject); count < kTelling)
    return result.skip(c10::str("bf16 has all of its ", count, " numbers, or nearly: too few to tell modes by"));
  if (subject.reference.classes() == Dtype::kBf16)
    return result.skip("states are stored in bf16, and the classes are those of bf16");
  result.fail_comparison("invalid case: the same computation in bf16 is accepted as fp32");
}

}  // namespace twinbench
