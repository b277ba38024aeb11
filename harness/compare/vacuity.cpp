// Five wrong answers, seven of complex outputs, one at a time.
#include "harness/compare/vacuity.h"

#include <ATen/ops/complex.h>
#include <ATen/ops/conj.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/imag.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/real.h>
#include <ATen/ops/roll.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/view_as_complex.h>
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
  double largest = 0, rms = 0;
  Complex mean = 0;
  std::int64_t middle = -1;              // the finite element nearest after the middle
  std::int64_t settled = -1, open = -1;  // the same, of those kinds
};

Magnitude magnitude_of(const at::Tensor& answer, const at::Tensor& unsettled) {
  const HostElements elements(answer);
  const at::Tensor flags = unsettled.defined() ? unsettled.to(at::kCPU, at::kBool).contiguous() : at::Tensor();
  const bool* const open = flags.defined() ? flags.const_data_ptr<bool>() : nullptr;
  Magnitude result;
  double squares = 0;
  Complex sum = 0;
  std::int64_t finite = 0;
  for (std::int64_t i = 0; i < elements.size(); ++i) {
    const std::int64_t at = (i + elements.size() / 2) % elements.size();
    const Complex value = elements.at(at);
    if (!is_finite(value)) continue;
    if (result.middle < 0) result.middle = at;
    if (std::int64_t& first = open && open[at] ? result.open : result.settled; first < 0) first = at;
    result.largest = std::max(result.largest, std::abs(value));
    squares += std::norm(value);
    sum += value;
    ++finite;
  }
  if (finite == 0) return result;
  result.rms = std::sqrt(squares / static_cast<double>(finite));
  result.mean = sum / static_cast<double>(finite);
  return result;
}

bool is_exact(const OutputSpec& spec, const at::Tensor& answer) {
  return spec.tolerance.kind == Tolerance::Kind::kExact || !(answer.is_floating_point() || answer.is_complex());
}

at::Tensor from_planes(const at::Tensor& planar) {
  return at::view_as_complex(at::stack({planar.select(0, 0), planar.select(0, 1)}, -1));
}
at::Tensor planes_of(const at::Tensor& answer) { return at::stack({at::real(answer), at::imag(answer)}, 0); }

// By 5 % of the rms (25 % where numbers are coarse); for a gradient, whose class bounds the whole tensor, by twice what
// that class allows a tensor of this size, if that is more. `dtype`: what the element is held to.
at::Tensor one_element_off(const OutputSpec& spec, const at::Tensor& answer, const Magnitude& magnitude,
                           std::int64_t which, Dtype dtype) {
  at::Tensor wrong = answer.contiguous().clone();
  at::Tensor element = wrong.view({-1}).narrow(0, which, 1);
  if (answer.scalar_type() == at::kBool) {
    element.logical_not_();
  } else if (!answer.is_floating_point() && !answer.is_complex()) {
    element.add_(std::max<std::int64_t>(1, static_cast<std::int64_t>(0.05 * magnitude.rms)));
  } else {
    const bool coarse =
        dtype == Dtype::kBf16 || dtype == Dtype::kTf32 || dtype == Dtype::kFp16 || answer.element_size() == 2;
    double share = coarse ? 0.25 : 0.05;
    if (spec.tolerance.kind == Tolerance::Kind::kGradient) {
      const Bound& bound = spec.tolerance.bound(dtype);
      share = std::max(share, 2 * bound.relative * std::sqrt(static_cast<double>(answer.numel())));
      if (magnitude.rms > 0) share = std::max(share, share + 2 * bound.absolute / magnitude.rms);
    }
    double off = magnitude.rms > 0 ? share * magnitude.rms : 1.0;
    // In a mode that rounds, the element may hang on a rounding: by twice what the specification allows a flip.
    if (coarse && spec.tolerance.kind == Tolerance::Kind::kBound && magnitude.rms > 0) {
      const Bound& bound = spec.tolerance.bound(dtype);
      off = std::max(off, 2 * (bound.absolute + bound.relative * magnitude.rms));
    }
    element.add_(off);
  }
  return wrong;
}

// Beyond rounding, at any finite element.
bool distinguishable(const at::Tensor& wrong, const at::Tensor& answer, const OutputSpec& spec, double largest) {
  const HostElements a(wrong), b(answer);
  const double rounding = is_exact(spec, answer) ? 0 : 4 * epsilon_of(answer.scalar_type()) * largest;
  for (std::int64_t i = 0; i < a.size(); ++i) {
    const Complex x = a.at(i), y = b.at(i);
    if (is_finite(y) && !(std::abs(x - y) <= rounding)) return true;
  }
  return false;
}

}  // namespace

Vacuity check_vacuity(const OutputSpec& spec, const at::Tensor& oracle, const at::Tensor& baseline,
                      const NamedTensors& inputs, Dtype dtype, const at::Tensor& unsettled) {
  Vacuity result;
  if (spec.tolerance.kind == Tolerance::Kind::kMeasured) return result;  // any value is right
  const Comparison control = compare(spec, oracle, baseline, baseline, dtype, unsettled);
  if (!control.accepted()) {
    result.reason = "the baseline itself is not accepted: " + control.reason;
    return result;
  }
  // Two planes are one complex answer here, so that rows are rows and a mean is that of complex numbers.
  const bool planar = !baseline.is_complex() && holds_complex(baseline, spec.element);
  const at::Tensor answer = planar ? from_planes(baseline) : baseline;
  const at::Tensor open =
      planar && unsettled.defined() ? unsettled.select(0, 0).logical_or(unsettled.select(0, 1)) : unsettled;
  const Magnitude magnitude = magnitude_of(answer, open);
  if (control.negligible || magnitude.middle < 0) return result;

  const at::Tensor finite = at::isfinite(answer);
  const auto present = [&](const std::string& name, at::Tensor wrong) {
    // The mask rule alone must not do the work: non-finite elements stay right.
    if (answer.is_floating_point() || answer.is_complex()) wrong = at::where(finite, wrong, answer);
    if (!distinguishable(wrong, answer, spec, magnitude.largest)) return;
    ++result.checked;
    if (planar) wrong = planes_of(wrong);
    if (!compare(spec, oracle, baseline, wrong.contiguous(), dtype, unsettled).accepted())
      ++result.rejected;
    else if (result.reason.empty())
      result.reason = "the comparison accepts a wrong answer for '" + spec.name + "': " + name;
  };
  present("zeros", at::zeros_like(answer));
  result.zeros = result.checked > 0;
  if (answer.numel() > 1 && answer.is_complex())
    present("its mean everywhere", at::full_like(answer, c10::complex<double>(magnitude.mean)));
  else if (answer.numel() > 1 && answer.scalar_type() != at::kBool)
    present("its mean everywhere", at::full_like(answer, magnitude.mean.real()));
  for (const auto& [name, input] : inputs) {
    if (!input.defined() || input.sizes() != baseline.sizes() || input.is_complex() != baseline.is_complex() ||
        input.is_floating_point() != baseline.is_floating_point())
      continue;
    const at::Tensor same = input.to(baseline.options());
    present("a copy of input '" + name + "'", planar ? from_planes(same) : same);
    break;
  }
  // Settled elements are held to fp32 in every mode; one that hangs on a rounding is held to the mode's own class.
  if (magnitude.settled >= 0)
    present("one element off",
            one_element_off(spec, answer, magnitude, magnitude.settled, open.defined() ? Dtype::kFp32 : dtype));
  if (magnitude.open >= 0)
    present("one unsettled element off", one_element_off(spec, answer, magnitude, magnitude.open, dtype));
  if (answer.dim() > 0 && answer.size(0) > 1) present("rows rolled by one", at::roll(answer, {1}, {0}));
  if (answer.is_complex()) {
    present("conjugated", at::conj(answer).resolve_conj());
    present("real and imaginary parts swapped", at::complex(at::imag(answer), at::real(answer)));
  }
  return result;
}

}  // namespace twinbench
