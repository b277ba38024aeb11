// Arithmetic of energy_flow.text_decoder (C20), shared by host and device: the norm by root mean squares, positions'
// encodings, and the two largest of many logits.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/common/layer_norm.h"
#include "kernels/common/math.h"

namespace twinbench::energy_flow::text_decoder {

constexpr float kRmsEpsilon = 1e-6f;

// The vocabulary's ids (src/energy_flow/common/vocabulary.h): padding, which decoding starts from; the end; first word.
constexpr std::int32_t kPadId = 0, kEndId = 1, kFirstWordId = 5;

// 1 / root mean square of `width` values whose squares add up to this.
TWINBENCH_HOST_DEVICE float inverse_rms(float squares, std::int64_t width) {
  return kernels::inverse_deviation(squares / static_cast<float>(width), kRmsEpsilon);
}

// Of a position in one column of `width`: sines in the even ones, cosines in the odd ones.
inline float encoding(std::int64_t position, std::int64_t column, std::int64_t width) {
  const double exponent = -2.0 * static_cast<double>(column / 2) / static_cast<double>(width);
  const double angle = static_cast<double>(position) * std::pow(10000.0, exponent);
  return static_cast<float>(column % 2 == 0 ? std::sin(angle) : std::cos(angle));
}

// The largest logit, its id, and the second largest. NaN is larger than any number; of equal ones the lowest id counts.
struct TopTwo {
  float best = -std::numeric_limits<float>::infinity(), second = -std::numeric_limits<float>::infinity();
  std::int32_t id = INT32_MAX;

  TWINBENCH_HOST_DEVICE static bool larger(float a, float b) { return a > b || (a != a && b == b); }
  TWINBENCH_HOST_DEVICE bool before(const TopTwo& other) const {
    return larger(best, other.best) || (!larger(other.best, best) && id < other.id);
  }
};
TWINBENCH_HOST_DEVICE TopTwo merged(const TopTwo& a, const TopTwo& b) {
  const bool first = a.before(b);
  const TopTwo &top = first ? a : b, &other = first ? b : a;
  return {top.best, TopTwo::larger(other.best, top.second) ? other.best : top.second, top.id};
}

// Between the two largest logits; 1 where it is more or none, which no margin reaches.
TWINBENCH_HOST_DEVICE float gap_of(const TopTwo& two) {
  const float gap = two.best - two.second;
  return gap < 1.0f ? gap : 1.0f;
}

}  // namespace twinbench::energy_flow::text_decoder
