// Normals of the SEM specification (2.6) in fp32: a Philox block gives four. Host and device.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/common/float_bits.h"
#include "src/common/philox.h"

namespace twinbench::sem {

struct FourNormals {
  float of[4];
};

// sqrt(-2 ln u) of u = (word + 0.5) / 2^32. Near 1 from the distance to 1, so that no digit is lost there.
TWINBENCH_HOST_DEVICE float normal_radius(std::uint32_t word) {
  const bool upper = word >> 31 != 0;
  const float distance = (static_cast<float>(upper ? ~word : word) + 0.5f) * 0x1p-32f;
  const float logarithm = upper ? std::log1p(-distance) : std::log(distance);
  return std::sqrt(-2.0f * logarithm);
}

struct Direction {
  float cosine, sine;
};

// Of the angle 2 pi (word + 0.5) / 2^32: the nearest quarter turn, which is exact, and the rest of at most an eighth.
TWINBENCH_HOST_DEVICE Direction normal_direction(std::uint32_t word) {
  const std::uint32_t quarter = (word + 0x20000000u) >> 30;
  const auto rest = static_cast<std::int32_t>(word - (quarter << 30));
  const float x = (static_cast<float>(rest) + 0.5f) * 1.46291808e-9f, s = x * x;  // times 2 pi / 2^32
  float p = 2.75573192e-6f;
  p = kernels::multiply_add(p, s, -1.98412698e-4f);
  p = kernels::multiply_add(p, s, 8.33333333e-3f);
  p = kernels::multiply_add(p, s, -1.66666667e-1f);
  const float sine = kernels::multiply_add(p * s, x, x);
  float q = -2.75573192e-7f;
  q = kernels::multiply_add(q, s, 2.48015873e-5f);
  q = kernels::multiply_add(q, s, -1.38888889e-3f);
  q = kernels::multiply_add(q, s, 4.16666667e-2f);
  const float cosine = kernels::multiply_add(q * s, s, kernels::multiply_add(-0.5f, s, 1.0f));
  const float a = quarter % 2 == 0 ? cosine : sine, b = quarter % 2 == 0 ? sine : cosine;
  return {quarter == 1 || quarter == 2 ? -a : a, quarter >= 2 ? -b : b};
}

// Elements 4 * block to 4 * block + 3 of a stream.
TWINBENCH_HOST_DEVICE FourNormals four_normals(std::uint64_t seed, std::uint32_t stream, std::uint32_t sub,
                                               std::uint64_t block) {
  const PhiloxWords words =
      philox(seed, static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), stream, sub);
  const float one = normal_radius(words.w[0]), other = normal_radius(words.w[2]);
  const Direction first = normal_direction(words.w[1]), second = normal_direction(words.w[3]);
  return {{one * first.cosine, one * first.sine, other * second.cosine, other * second.sine}};
}

}  // namespace twinbench::sem
