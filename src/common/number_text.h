// A number in a message: whole ones digit by digit, as a seed's range has them; others as short as they are exact.
#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>

namespace twinbench {

inline std::string number_text(double value) {
  constexpr double kMostExact = 9007199254740992;  // 2^53: above, a double is no longer every whole number
  if (value == std::floor(value) && std::abs(value) <= kMostExact)
    return std::to_string(static_cast<std::int64_t>(value));
  std::array<char, 32> digits{};
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr};
}

}  // namespace twinbench
