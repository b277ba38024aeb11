// Five wrong answers, one at a time.
#include "harness/compare/vacuity.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/roll.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>

#include "harness/compare/compare.h"
#include "harness/compare/host_elements.h"
#include "harness/compare/tolerance_table.h"

namespace twinbench {

namespace {

struct Magnitude {
  double largest = 0, rms = 0, mean = 0;
  std::int64_t middle = -1;  // the finite element nearest after the middle
};

Magnitude magnitude_of(const at::Tensor& answer) {
  const HostElements elements(answer);
  Magnitude result;
  double squares = 0, sum = 0;
  std::int64_t finite = 0;
  for (std::int64_t i = 0; i < elements.size(); ++i) {
    const std::int64_t at = (i + elements.size() / 2) % elements.size();
    double value;
    elements.read(at, 1, &value);
    if (!std::isfinite(value)) continue;
    if (result.middle < 0) result.middle = at;
    result.largest = std::max(result.largest, std::abs(value));
    squares += value * value;
    sum += value;
    ++finite;
  }
  if (finite == 0) return result;
  result.rms = std::sqrt(squares / static_cast<double>(finite));
  result.mean = sum / static_cast<double>(finite);
  return result;
}

// By 5 % of the rms (25 % where numbers are coarse); for a gradient, whose class bounds the whole tensor, by twice what
// that class allows a tensor of this size, if that is more.
at::Tensor one_element_off(const OutputSpec& spec, const at::Tensor& answer, const Magnitude& magnitude, Dtype dtype) {
  at::Tensor wrong = answer.contiguous().clone();
  at::Tensor element = wrong.view({-1}).narrow(0, magnitude.middle, 1);
  if (answer.scalar_type() == at::kBool) {
    element.logical_not_();
  } else if (!answer.is_floating_point()) {
    element.add_(std::max<std::int64_t>(1, static_cast<std::int64_t>(0.05 * magnitude.rms)));
  } else {
    const bool coarse = dtype == Dtype::kBf16 || dtype == Dtype::kTf32 || dtype == Dtype::kFp16 || answer.element_size() == 2;
    double share = coarse ? 0.25 : 0.05;
    if (spec.tolerance.kind == Tolerance::Kind::kGradient) {
      const Bound& bound = spec.tolerance.bound(dtype);
      share = std::max(share, 2 * bound.relative * std::sqrt(static_cast<double>(answer.numel())));
    }
    element.add_(magnitude.rms > 0 ? share * magnitude.rms : 1.0);
  }
  return wrong;
}

// Beyond rounding, at any finite element.
bool distinguishable(const at::Tensor& wrong, const at::Tensor& answer, const OutputSpec& spec, double largest) {
  const HostElements a(wrong), b(answer);
  const bool exact = spec.tolerance.kind == Tolerance::Kind::kExact || !answer.is_floating_point();
  const double rounding = exact ? 0 : 4 * epsilon_of(answer.scalar_type()) * largest;
  for (std::int64_t i = 0; i < a.size(); ++i) {
    double x, y;
    a.read(i, 1, &x);
    b.read(i, 1, &y);
    if (std::isfinite(y) && !(std::abs(x - y) <= rounding)) return true;
  }
  return false;
}

}  // namespace

Vacuity check_vacuity(const OutputSpec& spec, const at::Tensor& oracle, const at::Tensor& baseline,
                      const NamedTensors& inputs, Dtype dtype) {
  Vacuity result;
  const Comparison control = compare(spec, oracle, baseline, baseline, dtype);
  if (!control.accepted()) {
    result.reason = "the baseline itself is not accepted: " + control.reason;
    return result;
  }
  const Magnitude magnitude = magnitude_of(baseline);
  if (control.negligible || magnitude.middle < 0) return result;

  const at::Tensor finite = at::isfinite(baseline);
  const auto present = [&](const std::string& name, at::Tensor wrong) {
    // The mask rule alone must not do the work: non-finite elements stay right.
    if (baseline.is_floating_point()) wrong = at::where(finite, wrong, baseline);
    if (!distinguishable(wrong, baseline, spec, magnitude.largest)) return;
    ++result.checked;
    if (!compare(spec, oracle, baseline, wrong.contiguous(), dtype).accepted())
      ++result.rejected;
    else if (result.reason.empty())
      result.reason = "the comparison accepts a wrong answer for '" + spec.name + "': " + name;
  };
  present("zeros", at::zeros_like(baseline));
  result.zeros = result.checked > 0;
  if (baseline.numel() > 1 && baseline.scalar_type() != at::kBool)
    present("its mean everywhere", at::full_like(baseline, magnitude.mean));
  for (const auto& [name, input] : inputs) {
    if (!input.defined() || input.sizes() != baseline.sizes() ||
        input.is_floating_point() != baseline.is_floating_point())
      continue;
    present("a copy of input '" + name + "'", input.to(baseline.options()));
    break;
  }
  present("one element off", one_element_off(spec, baseline, magnitude, dtype));
  if (baseline.dim() > 0 && baseline.size(0) > 1) present("rows rolled by one", at::roll(baseline, {1}, {0}));
  return result;
}

}  // namespace twinbench
