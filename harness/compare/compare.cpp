// The comparison rules, in order. Every acceptance is written so that a NaN on either side of it rejects.
#include "harness/compare/compare.h"

#include <ATen/ops/view_as_real.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

#include "harness/compare/error_statistics.h"
#include "harness/compare/host_elements.h"
#include "harness/compare/structure.h"
#include "harness/compare/tolerance_table.h"

namespace twinbench {

namespace {

constexpr double kInfiniteRatio = 1e30;

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

std::string number(Complex value) {
  return number(value.real()) + (std::signbit(value.imag()) ? " - " : " + ") + number(std::abs(value.imag())) + "i";
}

double ratio_of(double error, double allowed) {
  if (error <= 0) return 0;
  if (allowed > 0 && error / allowed < kInfiniteRatio) return error / allowed;
  return kInfiniteRatio;
}

// Collects the verdict: the first rejection or invalidity wins, ratios accumulate.
struct Ruling {
  Comparison& result;
  void decide(Judgement judgement, const std::string& reason) {
    if (!result.reason.empty()) return;
    result.judgement = judgement;
    result.reason = reason;
  }
  void limit(const std::string& what, double error, double allowed) {
    result.worst_ratio = std::max(result.worst_ratio, ratio_of(error, allowed));
    if (!(error <= allowed)) decide(Judgement::kRejected, what + " " + number(error) + " exceeds " + number(allowed));
  }
};

// Bit for bit against the baseline; the oracle only says whether a NaN belongs here.
void compare_exactly(const OutputSpec& spec, const HostElements& oracle, const HostElements& baseline,
                     const HostElements& candidate, const at::Tensor& shape, Comparison& result) {
  Ruling ruling{result};
  const std::size_t size = baseline.size() > 0 ? baseline.bytes() / baseline.size() : 1;
  const auto *b = static_cast<const char*>(baseline.data()), *y = static_cast<const char*>(candidate.data());
  std::array<double, HostElements::kChunk> r{}, expected{}, got{};
  std::int64_t differing = 0, first = -1;
  for (std::int64_t offset = 0; offset < baseline.size(); offset += HostElements::kChunk) {
    const std::int64_t count = std::min(HostElements::kChunk, baseline.size() - offset);
    baseline.read(offset, count, expected.data());
    if (!spec.nan_allowed) {
      oracle.read(offset, count, r.data());
      for (std::int64_t i = 0; i < count; ++i)
        if (std::isnan(r[i]) || std::isnan(expected[i]))
          ruling.decide(Judgement::kInvalid, "the right answer is NaN at " + element_text(shape, offset + i) +
                                                 " and the output does not allow it");
    }
    if (std::memcmp(b + offset * size, y + offset * size, count * size) == 0) continue;
    candidate.read(offset, count, got.data());
    for (std::int64_t i = 0; i < count; ++i) {
      if (std::memcmp(b + (offset + i) * size, y + (offset + i) * size, size) == 0) continue;
      if (std::isnan(expected[i]) && std::isnan(got[i])) continue;  // payloads carry no meaning
      if (first < 0) first = offset + i;
      ++differing;
      result.max_absolute_error = std::max(result.max_absolute_error, std::abs(got[i] - expected[i]));
      if (expected[i] != 0)
        result.max_relative_error = std::max(result.max_relative_error, std::abs((got[i] - expected[i]) / expected[i]));
    }
  }
  if (differing == 0) return;
  result.worst_ratio = kInfiniteRatio;
  double was, is;
  baseline.read(first, 1, &was);
  candidate.read(first, 1, &is);
  ruling.decide(Judgement::kRejected, std::to_string(differing) + " of " + std::to_string(baseline.size()) +
                                          " elements differ in their bits, first at " + element_text(shape, first) +
                                          ": " + number(is) + " instead of " + number(was));
}

// What is known of single elements, or null.
struct Marks {
  const bool* unsettled = nullptr;
  const double* honest = nullptr;
  double allowed(std::int64_t i) const { return honest ? kHonestFactor * honest[i] : 0; }
};

struct ElementLimits {
  double relative, absolute;  // |y - r|; the baseline's own error if that is more
  Bound bound;                // |y - b| or |y - r|; infinite where the class has none
  Bound flipped;              // the same, of unsettled elements
  double half_a_place;        // of |r|: nearer to the oracle than this the output's dtype has no number
};

// The second pass: the rules that look at single elements.
template <class Value>
void compare_elements(const HostElements& oracle, const HostElements& baseline, const HostElements& candidate,
                      const ElementLimits& limits, const Marks& marks, const at::Tensor& shape, Comparison& result) {
  Ruling ruling{result};
  for_each_element<Value>(oracle, baseline, candidate, [&](std::int64_t i, Value r, Value b, Value y) {
    if (!is_finite(y)) return;  // the mask rule has judged it
    const bool open = marks.unsettled && marks.unsettled[i];
    const Bound& limit = open ? limits.flipped : limits.bound;
    const bool nearer_baseline = std::abs(y - b) <= std::abs(y - r);
    const Value other = nearer_baseline ? b : r;
    const double error = open ? 0 : std::abs(y - r), apart = std::abs(y - other);
    const double allowed =
        std::max({limits.relative * std::abs(r) + limits.absolute, std::abs(b - r), marks.allowed(i)});
    const double bound = std::max(limit.absolute + limit.relative * std::max(std::abs(y), std::abs(other)),
                                  limits.half_a_place * std::abs(r));
    if (error <= allowed && apart <= bound) {
      if (allowed > 0) result.worst_ratio = std::max(result.worst_ratio, error / allowed);
      if (bound > 0) result.worst_ratio = std::max(result.worst_ratio, apart / bound);
      return;
    }
    result.worst_ratio = std::max({result.worst_ratio, ratio_of(error, allowed), ratio_of(apart, bound)});
    if (!result.reason.empty()) return;  // the first one is named
    const std::string where = element_text(shape, i) + ": " + number(y);
    ruling.limit(where + ", oracle " + number(r) + ": error", error, allowed);
    ruling.limit(where + ", " + (nearer_baseline ? "baseline " : "oracle ") + number(other) + ": distance", apart,
                 bound);
  });
}

// The gradient class: near the baseline's tensor, or nearer still to the oracle's. A baseline that misses the class
// itself shows a gradient of differences that nearly vanish, as LayerNorm's over two or three values: there another
// order of the same sums may err by `factor` times as much as the baseline does, as the rule of the RMSE has it.
void compare_gradient(const ErrorStatistics& s, const Bound& bound, double factor, Dtype dtype, Ruling& ruling) {
  const bool rounds = dtype != Dtype::kFp64 && dtype != Dtype::kFp32;
  const bool nearer_baseline = s.to_baseline.distance <= s.to_oracle.distance;
  const auto& near = nearer_baseline ? s.to_baseline : s.to_oracle;
  const std::string whom = nearer_baseline ? "the baseline" : "the oracle";
  const double of_class = bound.relative * near.norm + bound.absolute, of_baseline = s.baseline_distance;
  const double allowed = of_baseline > of_class ? factor * of_baseline : of_class;
  ruling.limit("L2 distance to " + whom, near.distance, allowed);
  // A tensor that may be farther away, by an absolute bound or for its baseline is, may point as far aside as that.
  const bool wider = bound.absolute > 0 || allowed > of_class;
  const double least_cosine = rounds ? 0.99 : 0.99999;
  if (!wider && !(near.cosine >= least_cosine))
    ruling.decide(Judgement::kRejected,
                  "cosine with " + whom + " " + number(near.cosine) + " is below " + number(least_cosine));
}

// Over the settled elements at which the oracle is finite.
struct HonestError {
  double rms = 0, largest = 0;
};

HonestError honest_error(const HostElements& oracle, const Marks& marks) {
  HonestError error;
  std::int64_t count = 0;
  for (std::int64_t i = 0; marks.honest && i < oracle.size(); ++i) {
    if ((marks.unsettled && marks.unsettled[i]) || !is_finite(oracle.at(i))) continue;
    error.rms += marks.honest[i] * marks.honest[i];
    error.largest = std::max(error.largest, marks.honest[i]);
    ++count;
  }
  error.rms = std::sqrt(error.rms / static_cast<double>(std::max<std::int64_t>(count, 1)));
  return error;
}

template <class Value>
void compare_numbers(const OutputSpec& spec, const HostElements& oracle, const HostElements& baseline,
                     const HostElements& candidate, const at::Tensor& shape, Dtype dtype, const Marks& marks,
                     Comparison& result) {
  Ruling ruling{result};
  const ErrorStatistics s = gather_statistics(oracle, baseline, candidate, shape.scalar_type(), marks.unsettled);
  const HonestError honest = honest_error(oracle, marks);
  result.max_absolute_error = s.candidate_max_error;
  result.max_relative_error = s.candidate_max_relative;
  result.rmse = s.candidate_rmse;
  result.rmse_baseline = s.baseline_rmse;
  if (s.oracle_nan >= 0 && !spec.nan_allowed)
    ruling.decide(Judgement::kInvalid,
                  "the oracle is NaN at " + element_text(shape, s.oracle_nan) + " and the output does not allow it");
  if (s.baseline_mask_broken >= 0)
    ruling.decide(Judgement::kInvalid, "the baseline's NaN and Inf are not the oracle's, first at " +
                                           element_text(shape, s.baseline_mask_broken));
  if (s.candidate_mask_broken >= 0) {
    Value is, should;
    candidate.read(s.candidate_mask_broken, 1, &is);
    oracle.read(s.candidate_mask_broken, 1, &should);
    result.worst_ratio = kInfiniteRatio;
    ruling.decide(Judgement::kRejected, "NaN or Inf not where the oracle's are, first at " +
                                            element_text(shape, s.candidate_mask_broken) + ": " + number(is) +
                                            ", oracle " + number(should));
  }

  // Settled elements come from the same rounded operands in every implementation.
  const Dtype arithmetic = marks.unsettled ? Dtype::kFp32 : dtype;
  const NumericTable table = numeric_table(arithmetic);
  const Bound &bound = spec.tolerance.bound(arithmetic), &flipped = spec.tolerance.bound(dtype);
  const double epsilon = epsilon_of(shape.scalar_type()), unbounded = std::numeric_limits<double>::infinity();
  const bool gradient = spec.tolerance.kind == Tolerance::Kind::kGradient;
  const Bound none{0, unbounded};
  // A gradient class is itself a bound on the whole tensor: a baseline within twice that bound is as good as it claims.
  const double poor = gradient ? std::max(kPoorBaseline, 2 * bound.relative) : kPoorBaseline;
  // What is settled may be nothing but derivatives that vanish: they are as large as rounding makes them in the whole.
  const double rms = gradient ? std::max(s.oracle_rms, s.whole_rms) : s.oracle_rms;
  if (!(s.baseline_rmse <= poor * rms)) {
    const double nothing = gradient ? std::max(bound.absolute, kVanishedGradient) : bound.absolute;
    if (s.baseline_rmse <= nothing && rms <= nothing) {
      result.negligible = true;
      compare_elements<Value>(oracle, baseline, candidate, {0, nothing, none, flipped, epsilon / 2}, {marks.unsettled},
                              shape, result);
      return;
    }
    ruling.decide(Judgement::kInvalid, "the baseline is poor: its RMSE " + number(s.baseline_rmse) +
                                           " against the oracle exceeds " + number(100 * poor) +
                                           " % of the oracle's rms " + number(rms));
  }
  const double of_solver = spec.tolerance.iterative ? bound.absolute : 0;
  // Gradients are sums over many items: their class bounds the tensor (below) and the largest error, not each element.
  if (!gradient) {
    const double floor = std::max(
        {std::min(table.absolute, kMagnitudeFloor * s.oracle_rms), kHonestFactor * s.baseline_rmse, of_solver});
    compare_elements<Value>(oracle, baseline, candidate, {table.relative, floor, bound, flipped, epsilon / 2}, marks,
                            shape, result);
  }

  const bool few = s.finite < kFewElements, very_few = s.finite < kVeryFewElements;
  const double factor = very_few ? kVeryFewFactor : few ? kFewFactor : table.whole_factor;
  double whole = factor * std::max(s.baseline_rmse, honest.rms) + 4 * epsilon * rms;
  double largest =
      kHonestFactor * std::max(s.baseline_max_error, honest.largest) + 4 * epsilon * std::max(s.oracle_max, rms);
  if (very_few) {
    whole = std::max(whole, bound.relative * s.oracle_rms);
    largest = std::max(largest, bound.relative * s.oracle_max);
  }
  const auto row = static_cast<double>(shape.dim() > 0 ? std::max<std::int64_t>(shape.size(-1), 1) : 1);
  whole = std::max(whole, of_solver / std::sqrt(row));
  largest = std::max(largest, of_solver);
  ruling.limit("RMSE against the oracle (the baseline's is " + number(s.baseline_rmse) + ")", s.candidate_rmse, whole);
  ruling.limit("largest error (the baseline's is " + number(s.baseline_max_error) + ")", s.candidate_max_error,
               largest);
  if (gradient && result.elements > 0) compare_gradient(s, flipped, factor, dtype, ruling);
}

// Times, bytes held: nothing to compare them with but common sense.
void judge_measured(const at::Tensor& candidate, Comparison& result) {
  Ruling ruling{result};
  const HostElements values(candidate);
  for (std::int64_t i = 0; i < values.size(); ++i) {
    double value;
    values.read(i, 1, &value);
    if (std::isfinite(value) && value >= 0) continue;
    result.worst_ratio = kInfiniteRatio;
    return ruling.decide(Judgement::kRejected, element_text(candidate, i) + ": measured " + number(value) +
                                                   ", which is not finite and at least 0");
  }
}

// One flag an element, in order, on the CPU; of planar outputs either part's. Undefined stays so.
at::Tensor flags_of(const at::Tensor& unsettled, bool planar) {
  if (!unsettled.defined()) return unsettled;
  const at::Tensor flags = unsettled.to(at::kCPU, at::kBool);
  return (planar ? flags.select(0, 0).logical_or(flags.select(0, 1)) : flags).contiguous();
}

Marks marks_of(const at::Tensor& flags, const at::Tensor& honest) {
  return {flags.defined() ? flags.const_data_ptr<bool>() : nullptr,
          honest.defined() ? honest.const_data_ptr<double>() : nullptr};
}

at::Tensor real_view(const at::Tensor& tensor) {
  return tensor.is_complex() ? at::view_as_real(tensor.resolve_conj()) : tensor;
}

}  // namespace

Comparison compare(const OutputSpec& spec, const at::Tensor& oracle, const at::Tensor& baseline,
                   const at::Tensor& candidate, Dtype dtype, const at::Tensor& unsettled, const at::Tensor& honest) {
  Comparison result;
  result.elements = baseline.numel();
  Ruling ruling{result};
  const bool measured = spec.tolerance.kind == Tolerance::Kind::kMeasured;
  if (!measured && oracle.sizes() != baseline.sizes())
    ruling.decide(Judgement::kInvalid,
                  "the oracle's shape is " + shape_text(oracle) + ", the baseline's " + shape_text(baseline));
  if (unsettled.defined() && unsettled.sizes() != oracle.sizes())
    ruling.decide(Judgement::kInvalid, "the marks of unsettled elements have the shape " + shape_text(unsettled));
  if (honest.defined() &&
      honest.numel() !=
          (baseline.is_complex() || !holds_complex(baseline, spec.element) ? baseline.numel() : baseline.numel() / 2))
    ruling.decide(Judgement::kInvalid, "the honest errors have the shape " + shape_text(honest));
  if (oracle.is_complex() != baseline.is_complex())
    ruling.decide(Judgement::kInvalid, "oracle and baseline are not both complex");
  if (const std::string structure = structure_difference(baseline, candidate, measured); !structure.empty()) {
    result.worst_ratio = kInfiniteRatio;
    ruling.decide(Judgement::kRejected, structure);
  }
  if (!result.reason.empty()) return result;
  if (measured) {
    result.elements = candidate.numel();
    judge_measured(candidate, result);
  } else if (spec.tolerance.kind == Tolerance::Kind::kExact ||
             !(baseline.is_floating_point() || baseline.is_complex())) {
    const at::Tensor expected = real_view(baseline);
    compare_exactly(spec, HostElements(real_view(oracle)), HostElements(expected), HostElements(real_view(candidate)),
                    expected, result);
  } else if (holds_complex(baseline, spec.element)) {
    const at::Tensor flags = flags_of(unsettled, !baseline.is_complex());
    const HostElements r(oracle, spec.element), b(baseline, spec.element), y(candidate, spec.element);
    result.elements = b.size();
    compare_numbers<Complex>(spec, r, b, y, baseline.is_complex() ? baseline : baseline.select(0, 0), dtype,
                             marks_of(flags, honest), result);
  } else {
    const at::Tensor flags = flags_of(unsettled, false);
    compare_numbers<double>(spec, HostElements(oracle), HostElements(baseline), HostElements(candidate), baseline,
                            dtype, marks_of(flags, honest), result);
  }
  if (result.reason.empty()) result.judgement = Judgement::kAccepted;
  return result;
}

std::string beyond_class(const OutputSpec& spec, const at::Tensor& oracle, Dtype dtype, const at::Tensor& unsettled,
                         const at::Tensor& honest) {
  if (spec.tolerance.kind == Tolerance::Kind::kExact || spec.tolerance.kind == Tolerance::Kind::kMeasured) return "";
  const HostElements right(oracle, spec.element);
  const bool planar = right.is_complex() && !oracle.is_complex();
  const at::Tensor flags = flags_of(unsettled, planar);
  const Marks marks = marks_of(flags, honest);
  const bool gradient = spec.tolerance.kind == Tolerance::Kind::kGradient;
  const Bound& bound = spec.tolerance.bound(marks.unsettled && !gradient ? Dtype::kFp32 : dtype);
  const HonestError error = honest_error(right, marks);
  double squares = 0, count = 0;
  for (std::int64_t i = 0; i < right.size(); ++i) {
    const double size = std::abs(right.at(i)), allowed = bound.absolute + bound.relative * size;
    if (!std::isfinite(size) || (marks.unsettled && marks.unsettled[i])) continue;
    squares += size * size;
    ++count;
    if (!gradient && !(kOutOfReach * marks.honest[i] <= allowed))
      return element_text(planar ? oracle.select(0, 0) : oracle, i) + " may honestly err by " +
             number(kOutOfReach * marks.honest[i]) + ", its class allows " + number(allowed);
  }
  const double rms = std::sqrt(squares / std::max(count, 1.0)), may_err = kOutOfReach * error.rms;
  if (may_err <= bound.absolute && rms <= bound.absolute) return "";  // negligible
  if (may_err > kPoorBaseline * rms)
    return "may honestly err by " + number(may_err) + ", nearly its rms of " + number(rms);
  const double allowed = bound.absolute / std::sqrt(std::max(count, 1.0)) + bound.relative * rms;
  if (!gradient || may_err <= allowed) return "";
  return "may honestly err by " + number(may_err) + " root mean square, its class allows " + number(allowed);
}

}  // namespace twinbench
