// Hashing of names, reading of --shard, wording of a spent budget.
#include "harness/runner/share.h"

#include <cstdio>

#include "src/common/error.h"

namespace twinbench {

std::uint64_t name_hash(const std::string& text) {
  std::uint64_t hash = 0xCBF29CE484222325ull;
  for (const unsigned char byte : text) hash = (hash ^ byte) * 0x100000001B3ull;
  hash ^= hash >> 32;  // FNV's low bits alone follow the last characters too closely for a modulus
  hash *= 0xD6E8FEB86659FD93ull;
  return hash ^ (hash >> 32);
}

Shard shard_named(const std::string& text) {
  if (text.empty()) return {};
  unsigned long long index = 0, of = 0;
  int used = 0;
  const bool digits = text.find_first_not_of("0123456789/") == std::string::npos;
  if (!digits || std::sscanf(text.c_str(), "%llu/%llu%n", &index, &of, &used) != 2 ||
      used != static_cast<int>(text.size()))
    throw Error(ErrorKind::kBadArgument, "--shard", text, "give i/n, such as 2/3");
  constexpr unsigned long long kMost = 1'000'000;  // more shards than there are units leave most with none
  if (of < 1 || index < 1 || index > of || of > kMost)
    throw Error(ErrorKind::kOutOfRange, "--shard", text, "in i/n, i goes from 1 to n, and n to a million");
  return {index, of};
}

std::string TimeBudget::reason() const {
  char minutes[32];
  std::snprintf(minutes, sizeof minutes, "%g", minutes_);
  return std::string("budget: the ") + minutes + (minutes_ == 1 ? " minute was" : " minutes were") +
         " spent before its turn";
}

}  // namespace twinbench
