// Which part of the work this run does: one shard of it, until a time budget is spent.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace twinbench {

// The same on every machine and in every build (FNV-1a, its bits mixed once more): decides shards and samples.
std::uint64_t name_hash(const std::string& text);

// `index` of `of`, from 1. The shards of one `of` are disjoint and together everything, whatever else there is: a name
// keeps its shard when others come or go.
struct Shard {
  std::uint64_t index = 1, of = 1;
  bool has(const std::string& name) const { return name_hash(name) % of == index - 1; }
};

// "2/3"; empty: everything. Throws Error(kBadArgument or kOutOfRange), naming --shard.
Shard shard_named(const std::string& text);

// Minutes from construction on; 0: no limit.
class TimeBudget {
 public:
  explicit TimeBudget(double minutes = 0) : minutes_(minutes), started_(std::chrono::steady_clock::now()) {}
  bool spent() const {
    return minutes_ > 0 &&
           std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count() >= 60 * minutes_;
  }
  // "budget: the 2 minutes were spent before its turn"
  std::string reason() const;

 private:
  double minutes_;
  std::chrono::steady_clock::time_point started_;
};

}  // namespace twinbench
