// The oracle with moved operands, and with open roundings gone either way.
#include "harness/parity/trials.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "harness/compare/compare.h"
#include "harness/compare/host_elements.h"
#include "harness/compare/inputs.h"
#include "harness/compare/tolerance_table.h"
#include "harness/parity/reference.h"
#include "harness/parity/rounding_decisions.h"
#include "src/draws.h"
#include "src/stored_states.h"

namespace twinbench {

namespace {

constexpr std::uint64_t kTrials = 8;
constexpr double kFlips = 2;

class MovedOperands final : public OraclesDecisions {
 public:
  // `log`: what the oracle rounded and decided; empty in modes that do not round, where each run decides by itself.
  MovedOperands(const RoundingLog& log, std::uint64_t trial, double last_place)
      : OraclesDecisions(log.decisions), log_(log.operands), trial_(trial), last_place_(last_place) {}
  at::Tensor observe(const at::Tensor& values, Dtype mode) override {
    const at::NoGradGuard no_grad;
    const std::size_t number = next_++;
    const at::Tensor operand = log_.empty() ? values : rounded_unobserved(log_.at(number), mode);
    return moved_by_last_place(operand.to(values.scalar_type()), trial_, number, last_place_);
  }
  std::int64_t decide(std::int64_t computed, std::int64_t other, double margin) override {
    return log_.empty() ? computed : OraclesDecisions::decide(computed, other, margin);
  }

 private:
  const std::vector<at::Tensor>& log_;
  const std::uint64_t trial_;
  const double last_place_;
  std::size_t next_ = 0;
};

// Behind a flip that came before, values are what they are and are rounded as they are. `decides`: by those values,
// and once that is otherwise than the oracle decided, other tensors may be rounded; else as the oracle did.
class FlippedRoundings final : public OraclesDecisions {
 public:
  FlippedRoundings(const std::vector<OpenRounding>& roundings, const RoundingLog& log, std::uint64_t trial,
                   bool decides = false)
      : OraclesDecisions(log.decisions), roundings_(roundings), trial_(trial), decides_(decides) {}
  std::int64_t decide(std::int64_t computed, std::int64_t other, double margin) override {
    return decides_ ? computed : OraclesDecisions::decide(computed, other, margin);
  }
  at::Tensor observe(const at::Tensor& values, Dtype mode) override {
    const at::NoGradGuard no_grad;
    const std::size_t number = next_++;
    const at::Tensor plain = rounded_unobserved(values, mode);
    if (decides_ && number >= roundings_.size()) return plain;
    const OpenRounding& rounding = roundings_.at(number);
    if (!rounding.open.defined() || (decides_ && !rounding.open.sizes().equals(values.sizes()))) return plain;
    const at::Tensor either =
        draws::uniform(values.sizes(), trial_, static_cast<std::uint32_t>(number), -1, 1).sign() * rounding.allowed;
    const at::Tensor untouched = (values - rounding.right).abs().le(rounding.allowed);
    return at::where(rounding.open.logical_and(untouched), rounded_unobserved(rounding.right + either, mode), plain);
  }

 private:
  const std::vector<OpenRounding>& roundings_;
  const std::uint64_t trial_;
  const bool decides_;
  std::size_t next_ = 0;
};

bool is_bounded(const OutputSpec& spec, const at::Tensor& right) {
  return (spec.tolerance.kind == Tolerance::Kind::kBound || spec.tolerance.kind == Tolerance::Kind::kGradient) &&
         (right.is_floating_point() || right.is_complex());
}

// An element each, planes joined; zero where there is no number.
at::Tensor squared_distance(const OutputSpec& spec, const at::Tensor& right, const at::Tensor& other) {
  const at::Tensor apart = (other.to(at::kCPU, right.scalar_type()) - right).abs().square();
  const bool planar = holds_complex(right, spec.element) && !right.is_complex();
  return (planar ? apart.sum(0) : apart).nan_to_num(0.0, 0.0, 0.0).contiguous();
}

}  // namespace

at::Tensor moved_by_last_place(const at::Tensor& values, std::uint64_t trial, std::size_t number, double last_place) {
  const at::Tensor share =
      draws::uniform(values.sizes(), trial, static_cast<std::uint32_t>(number), -last_place, last_place);
  return (values.to(at::kDouble) * (1 + share.to(at::kDouble))).to(values.scalar_type());
}

namespace {

RoundingLog logged_roundings(const Component& component, const Setting& setting, const NamedTensors& generated) {
  RoundingRecorder recorder;
  (void)baseline_outputs(component, oracle_setting(setting), generated);
  return recorder.log;
}

}  // namespace

// Whole numbers move towards zero alone: nobody draws one, and where a case plants one it may be the bound of a clamp,
// with another answer beyond it.
NamedTensors moved_inputs(const NamedTensors& generated, std::uint64_t trial, double share) {
  NamedTensors moved;
  std::size_t number = 0;
  for (const auto& [name, tensor] : generated) {
    moved.set(name, tensor);
    if (!tensor.is_floating_point()) continue;
    const at::Tensor other = moved_by_last_place(tensor, trial, number++, share);
    const at::Tensor planted = tensor.eq(tensor.round());
    moved.set(name, at::where(planted.logical_and(other.abs().gt(tensor.abs())), tensor, other));
  }
  return moved;
}

void Distances::add(const NamedTensors& outputs) {
  ++runs_;
  for (const auto& spec : specs_) {
    if (!is_bounded(spec, right_[spec.name])) continue;
    const at::Tensor squared = squared_distance(spec, right_[spec.name], outputs[spec.name]);
    const bool first = !sums_.contains(spec.name);
    sums_.set(spec.name, first ? squared : sums_[spec.name] + squared);
    most_.set(spec.name, first ? squared : at::maximum(most_[spec.name], squared));
  }
}

NamedTensors Distances::root_mean_square() const {
  NamedTensors found;
  for (const auto& [name, sum] : sums_) found.set(name, sum.div(static_cast<double>(runs_)).sqrt());
  return found;
}

NamedTensors Distances::largest() const {
  NamedTensors found;
  for (const auto& [name, most] : most_) found.set(name, most.sqrt());
  return found;
}

Trials trials_of(const Component& component, const Setting& setting, const NamedTensors& generated) {
  const Setting oracle = oracle_setting(setting);
  const bool rounds = rounds_values(oracle);
  Setting arithmetic = setting;
  arithmetic.device = c10::Device(c10::DeviceType::CPU);
  const auto& dtypes = component.spec.dtypes;
  const bool met = rounds || std::find(dtypes.begin(), dtypes.end(), Dtype::kBf16) != dtypes.end();
  if (!rounds && met) arithmetic.dtype = Dtype::kBf16;  // the products are met there, and their operands not rounded
  NamedTensors right;
  RoundingLog log;
  std::vector<OpenRounding> roundings;
  if (rounds) {
    {
      RoundingRecorder recorder(/*whole=*/true);
      right = baseline_outputs(component, oracle, generated);
      log = std::move(recorder.log);
    }
    roundings = open_roundings(component, setting, generated, logged_roundings(component, setting, generated));
  } else {
    right = baseline_outputs(component, oracle, generated);
  }
  const auto specs = output_specs(component.spec, setting);
  Distances settled(specs, right), flips(specs, right);
  for (std::uint64_t trial = 1; trial <= kTrials; ++trial) {
    {
      const MovedOperands moved(log, trial, bounded_by_class_alone(setting) ? kLastPlaceOfTf32 : kLastPlace);
      // What no product with rounded operands stands before, or nothing rounds, is met by the inputs.
      settled.add(baseline_outputs(component, arithmetic, moved_inputs(generated, trial)));
    }
    if (!rounds) continue;
    const FlippedRoundings flipped(roundings, log, trial);
    flips.add(baseline_outputs(component, oracle, generated));
  }
  Trials found{settled.root_mean_square(), flips.largest()};
  for (auto& [name, most] : found.flipped) most = most * (kFlips / kOutOfReach);
  return found;
}

std::string decided_by_roundings(const Component& component, const Setting& setting, const NamedTensors& generated,
                                 const NamedTensors& right) {
  const Setting oracle = oracle_setting(setting);
  if (!rounds_values(oracle)) return "";
  const RoundingLog log = logged_roundings(component, setting, generated);
  {
    RoundingRecorder recorder;
    Setting on_cpu = setting;
    on_cpu.device = c10::Device(c10::DeviceType::CPU);
    (void)baseline_outputs(component, on_cpu, generated);
    if (recorder.log.decisions != log.decisions) return "the baseline decides otherwise than the oracle";
  }
  const auto roundings = open_roundings(component, setting, generated, log);
  const auto specs = output_specs(component.spec, setting);
  for (std::uint64_t trial = 1; trial <= kTrials; ++trial) {
    NamedTensors other;
    {
      const FlippedRoundings flipped(roundings, log, trial, /*decides=*/true);
      other = baseline_outputs(component, oracle, generated);
    }
    for (const auto& spec : specs)
      if (spec.tolerance.kind == Tolerance::Kind::kExact && !other[spec.name].equal(right[spec.name]))
        return "output '" + spec.name + "' is exact";
    // As far as makes a baseline a poor one: what follows from one decision, not from the sum of many roundings.
    Distances apart(specs, right);
    apart.add(other);
    for (const auto& [name, error] : apart.largest()) {
      const at::Tensor size = right[name].abs().to(at::kDouble).nan_to_num(0.0, 0.0, 0.0);
      if (error.square().mean().gt(size.square().mean() * (kPoorBaseline * kPoorBaseline)).item<bool>())
        return "output '" + name + "' moves far";
    }
  }
  return "";
}

}  // namespace twinbench
