// Small changes of a sound input, the same in every run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "src/common/philox.h"

namespace twinbench {

constexpr std::uint64_t kChangeSeed = 20241121;

// What changes leave sound in few bytes: one byte set, a run of bytes from elsewhere, a 0xff or zero word.
inline std::string changed(const std::string& seed, std::uint32_t change) {
  std::string bytes = seed;
  const PhiloxWords words = philox(kChangeSeed, change, static_cast<std::uint32_t>(seed.size()), 0, 0);
  const std::size_t at = words.w[0] % bytes.size(), length = std::min<std::size_t>(8, bytes.size() - at);
  switch (words.w[1] % 4) {
    case 0: bytes[at] = static_cast<char>(words.w[2]); break;
    case 1: bytes[at] = static_cast<char>(bytes[at] ^ (1 << words.w[2] % 8)); break;
    case 2: bytes.replace(at, length, length, words.w[2] % 2 ? '\xff' : '\0'); break;
    default: bytes.replace(at, length, bytes.substr(words.w[2] % (bytes.size() - length + 1), length));
  }
  return bytes;
}

}  // namespace twinbench
