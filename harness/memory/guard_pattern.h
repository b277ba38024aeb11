// The byte pattern of guard bands: a NaN in fp32 and fp64, so that a stray read shows as well as a stray write.
#pragma once

#include <cstdint>
#include <cstring>

namespace twinbench {

constexpr std::uint32_t kGuardWord = 0xFFFACADEu;

inline unsigned char guard_byte(std::int64_t index) {
  return static_cast<unsigned char>(kGuardWord >> (8 * (index & 3)));
}

inline void fill_guard(void* band, std::int64_t bytes) {
  for (std::int64_t i = 0; i < bytes; ++i) static_cast<unsigned char*>(band)[i] = guard_byte(i);
}

// Index of the first (or last) byte that does not hold the pattern; -1 where all do.
inline std::int64_t first_broken(const void* band, std::int64_t bytes) {
  for (std::int64_t i = 0; i < bytes; ++i)
    if (static_cast<const unsigned char*>(band)[i] != guard_byte(i)) return i;
  return -1;
}
inline std::int64_t last_broken(const void* band, std::int64_t bytes) {
  for (std::int64_t i = bytes - 1; i >= 0; --i)
    if (static_cast<const unsigned char*>(band)[i] != guard_byte(i)) return i;
  return -1;
}

}  // namespace twinbench
