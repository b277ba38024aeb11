// What cases plant where a specification speaks of numbers that are not finite: a test of one alone lets the others by.
#pragma once

#include <array>
#include <cstdint>
#include <limits>

namespace twinbench {

constexpr std::int64_t kNotFiniteKinds = 3;

// NaN, minus infinity, infinity, by turns.
constexpr float not_finite(std::int64_t turn) {
  constexpr std::array<float, kNotFiniteKinds> kinds = {std::numeric_limits<float>::quiet_NaN(),
                                                        -std::numeric_limits<float>::infinity(),
                                                        std::numeric_limits<float>::infinity()};
  return kinds[static_cast<std::size_t>(turn % kNotFiniteKinds)];
}

}  // namespace twinbench
