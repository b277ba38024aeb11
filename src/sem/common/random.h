// The random numbers of the SEM specification (2.6): normals from Philox blocks, in fp64.
#pragma once

#include <cmath>
#include <cstdint>

#include "src/common/philox.h"

namespace twinbench::sem {

constexpr std::uint32_t kOptimizerNoise = 0x2000;  // plus the tensor's ordinal; sub: the applied-update count

// Word n % 4 of block n / 4: counter (block low, block high, stream, sub) under the seed as key.
inline PhiloxWords random_block(std::uint64_t seed, std::uint32_t stream, std::uint32_t sub, std::uint64_t block) {
  return philox(seed, static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), stream, sub);
}

inline double uniform_of(std::uint32_t word) { return (static_cast<double>(word) + 0.5) * 0x1p-32; }

// Element n of a stream of standard normals: words (0, 1) give elements 0 and 1 of a block, words (2, 3) the others.
inline double normal_of(std::uint64_t seed, std::uint32_t stream, std::uint32_t sub, std::uint64_t n) {
  const PhiloxWords words = random_block(seed, stream, sub, n / 4);
  const auto pair = n % 4 / 2 * 2;
  const double radius = std::sqrt(-2 * std::log(uniform_of(words.w[pair])));
  const double turn = 2 * 3.14159265358979323846 * uniform_of(words.w[pair + 1]);
  return radius * (n % 2 == 0 ? std::cos(turn) : std::sin(turn));
}

}  // namespace twinbench::sem
