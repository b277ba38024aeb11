// The baseline on the oracle's roundings, and the oracle with NaN where a rounding is open.
#include "harness/parity/rounding_decisions.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "harness/compare/inputs.h"
#include "harness/parity/reference.h"
#include "harness/parity/trials.h"
#include "src/inputs.h"

namespace twinbench {

namespace {

constexpr double kErrors = 8;            // of the baseline, as the comparison allows a candidate
constexpr double kLastPlaces = 0x1p-22;  // two units in the last place of fp32, of the value or of its row's rms
constexpr std::uint64_t kTrial = 0;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

at::Tensor held_by_fp32(const at::Tensor& values) { return values.to(at::kFloat).to(at::kDouble).eq(values); }

// Over a row, of what is finite.
double root_mean_square(const double* row, std::int64_t columns, const double* from = nullptr) {
  double sum = 0;
  for (std::int64_t i = 0; i < columns; ++i) {
    const double value = from ? row[i] - from[i] : row[i];
    if (std::isfinite(value)) sum += value * value;
  }
  return std::sqrt(sum / static_cast<double>(columns));
}

// What the oracle rounds to; `one`, whose value is there, is told what is open, if anything is. In fp64, contiguous. In
// plain loops: as tensors it is some sixty operators, thousands of times a run.
at::Tensor look_at(const at::Tensor& computed, Dtype mode, OpenRounding& one) {
  const at::Tensor right = one.right.contiguous(), result = at::empty_like(right), allowances = at::empty_like(right),
                   opened = at::empty_like(right, at::kBool);
  const std::int64_t columns = right.dim() == 0 ? 1 : right.size(-1), rows = columns == 0 ? 0 : right.numel() / columns;
  const double *got = computed.const_data_ptr<double>(), *wanted = right.const_data_ptr<double>();
  auto *rounded = result.mutable_data_ptr<double>(), *allowed = allowances.mutable_data_ptr<double>();
  auto* open = opened.mutable_data_ptr<bool>();
  bool any = false;
  for (std::int64_t row = 0; row < rows; ++row, got += columns, wanted += columns) {
    const double errors = kErrors * root_mean_square(got, columns, wanted), typical = root_mean_square(wanted, columns);
    for (std::int64_t i = 0; i < columns; ++i, ++rounded, ++allowed, ++open) {
      const double value = wanted[i];
      *rounded = rounded_unobserved(value, mode);
      *allowed = errors + kLastPlaces * std::max(std::abs(value), typical);
      const bool crosses = rounded_unobserved(value - *allowed, mode) != *rounded ||
                           rounded_unobserved(value + *allowed, mode) != *rounded ||
                           rounded_unobserved(got[i], mode) != *rounded;
      const bool untouched = static_cast<double>(static_cast<float>(value)) == value && got[i] == value;
      *open = crosses && !untouched && std::isfinite(value);
      any = any || *open;
    }
  }
  if (any) one.allowed = allowances, one.open = opened;
  return result;
}

class OnOraclesRoundings final : public OraclesDecisions {
 public:
  explicit OnOraclesRoundings(const RoundingLog& log) : OraclesDecisions(log.decisions), log_(log.operands) {}

  at::Tensor observe(const at::Tensor& values, Dtype mode) override {
    const at::NoGradGuard no_grad;
    if (open.size() == log_.size()) differs("one rounding more");
    const std::size_t number = open.size();
    const at::Tensor& right = log_[number];
    open.push_back({right, {}, {}});
    if (!right.defined()) return moved_by_last_place(rounded_unobserved(values, mode), kTrial, number, kLastPlace);
    if (!right.sizes().equals(values.sizes())) differs(c10::str("a rounding of ", values.sizes()));
    const at::Tensor expected = look_at(values.to(at::kDouble).contiguous(), mode, open.back());
    return moved_by_last_place(expected.to(values.scalar_type()), kTrial, number, kLastPlace);
  }

  void finish() const {
    if (open.size() != log_.size()) differs(c10::str(open.size(), " roundings"));
  }

  std::vector<OpenRounding> open;

 private:
  [[noreturn]] void differs(const std::string& what) const {
    throw Error(ErrorKind::kInternal, "roundings of the baseline", what,
                c10::str("its oracle has ", log_.size(), ": round the same tensors in every dtype, in the same order"));
  }
  const std::vector<at::Tensor>& log_;
};

class WithNanWhereOpen final : public OraclesDecisions {
 public:
  WithNanWhereOpen(const std::vector<OpenRounding>& roundings, const RoundingLog& log)
      : OraclesDecisions(log.decisions), roundings_(roundings) {}
  at::Tensor observe(const at::Tensor& values, Dtype mode) override {
    const at::Tensor plain = rounded_unobserved(values, mode);
    const at::Tensor& open = roundings_.at(next_++).open;
    return open.defined() ? plain.masked_fill(open, kNan) : plain;
  }

 private:
  const std::vector<OpenRounding>& roundings_;
  std::size_t next_ = 0;
};

// The first time every close decision goes the other way, then each as a coin falls.
class OtherWays final : public RoundingObserver {
 public:
  explicit OtherWays(std::uint64_t trial) : all_(trial == 0), coin_(trial) {}
  at::Tensor observe(const at::Tensor& values, Dtype mode) override { return rounded_unobserved(values, mode); }
  std::int64_t decide(std::int64_t computed, std::int64_t other, double margin) override {
    return margin < kCloseDecision && (all_ || coin_() % 2 == 1) ? other : computed;
  }

 private:
  const bool all_;
  std::mt19937_64 coin_;
};

constexpr double kOfFarthest = 2, kMostMoved = 0.1;  // the latter: of a gradient's norm

Moved farther(const Moved& before, const at::Tensor& a, const at::Tensor& b) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const at::Tensor finite = at::isfinite(a);
  if (a.numel() == 0) return before;
  if (!finite.equal(at::isfinite(b))) return {kInfinity, kInfinity};
  const at::Tensor apart = at::where(finite, a - b, at::zeros_like(a)).to(at::kDouble).abs();
  return {std::max(before.distance, apart.square().sum().sqrt().item<double>()),
          std::max(before.largest, apart.max().item<double>())};
}

at::Tensor differing(const at::Tensor& a, const at::Tensor& b) {
  return a.ne(b).logical_and(a.ne(a).logical_and(b.ne(b)).logical_not());
}

}  // namespace

at::Tensor RoundingRecorder::observe(const at::Tensor& values, Dtype mode) {
  const at::NoGradGuard no_grad;
  log.operands.push_back(!whole_ && held_by_fp32(values).all().item<bool>() ? at::Tensor() : values.clone());
  return rounded_unobserved(values, mode);
}

std::int64_t RoundingRecorder::decide(std::int64_t computed, std::int64_t, double margin) {
  log.decisions.push_back(computed);
  log.any_close = log.any_close || margin < kCloseDecision;
  return computed;
}

std::int64_t OraclesDecisions::decide(std::int64_t, std::int64_t, double) {
  if (next_ == decisions_.size())
    throw Error(ErrorKind::kInternal, "decisions of the baseline", "one decision more",
                c10::str("its oracle has ", next_, ": decide by decided() of src/rounding.h, in every dtype alike"));
  return decisions_[next_++];
}

std::vector<OpenRounding> open_roundings(const Component& component, const Setting& setting,
                                         const NamedTensors& generated, const RoundingLog& log) {
  Setting on_cpu = setting;
  on_cpu.device = c10::Device(c10::DeviceType::CPU);
  OnOraclesRoundings observer(log);
  (void)baseline_outputs(component, on_cpu, generated);
  observer.finish();
  return std::move(observer.open);
}

NamedTensors unsettled_elements(const Component& component, const Setting& setting, const NamedTensors& generated,
                                const NamedTensors& oracle, const std::vector<OpenRounding>& roundings,
                                const RoundingLog& log) {
  NamedTensors poisoned = oracle;
  if (std::any_of(roundings.begin(), roundings.end(), [](const auto& one) { return one.open.defined(); })) {
    WithNanWhereOpen observer(roundings, log);
    poisoned = baseline_outputs(component, oracle_setting(setting), generated);
  }
  NamedTensors unsettled;
  for (const auto& [name, right] : oracle) unsettled.set(name, differing(right, poisoned[name]));
  return unsettled;
}

Tainted tainted_by_decisions(const Component& component, const Setting& setting, const NamedTensors& generated,
                             const NamedTensors& oracle, const RoundingLog& log) {
  if (!log.any_close) return {};
  const auto specs = outputs_of(component.spec.signature, completed(component.spec.signature, setting));
  const bool only_sums = std::all_of(specs.begin(), specs.end(), [](const auto& one) { return !one.batch_axis; });
  return tainted_by_decisions([&] { return baseline_outputs(component, oracle_setting(setting), generated); }, oracle,
                              setting.backward() || only_sums ? 1 : kOtherWays);
}

Tainted tainted_by_decisions(const std::function<NamedTensors()>& run, const NamedTensors& right_ones,
                             std::uint64_t coins) {
  Tainted tainted;
  for (std::uint64_t trial = 0; trial <= coins; ++trial) {
    OtherWays observer(trial);
    const NamedTensors other = run();
    for (const auto& [name, right] : right_ones) {
      const at::Tensor differs = differing(right, other[name]);
      tainted.elements.set(name,
                           tainted.elements.contains(name) ? tainted.elements[name].logical_or(differs) : differs);
      tainted.moved[name] = farther(tainted.moved[name], right, other[name]);
    }
  }
  return tainted;
}

bool sums_items(const OutputSpec& spec) {
  return !spec.batch_axis &&
         (spec.tolerance.kind == Tolerance::Kind::kGradient || spec.tolerance.kind == Tolerance::Kind::kBound);
}

std::optional<OutputSpec> widened(const OutputSpec& spec, const at::Tensor& oracle, const Moved& moved, Dtype dtype) {
  const at::Tensor finite = oracle.masked_select(at::isfinite(oracle)).to(at::kDouble);
  const double norm = finite.norm().item<double>();
  const bool whole = spec.tolerance.kind == Tolerance::Kind::kGradient;  // its class bounds the tensor
  const Bound& bound = spec.tolerance.bound(dtype);
  const double rms = norm / std::sqrt(static_cast<double>(std::max<std::int64_t>(finite.numel(), 1))),
               by = kOfFarthest * (whole ? moved.distance : moved.largest);
  if (!(by <= (whole ? kMostMoved * norm : bound.absolute + bound.relative * rms))) return std::nullopt;
  OutputSpec wider = spec;
  for (Bound* one : {&wider.tolerance.bf16, &wider.tolerance.fp16, &wider.tolerance.tf32}) one->absolute += by;
  return wider;
}

}  // namespace twinbench
