// What this machine can do at best, measured: the roofs of the roofline. Data-sheet values stand beside where known.
#pragma once

#include <c10/core/Device.h>

#include <nlohmann/json.hpp>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "src/component.h"

namespace twinbench {

struct Ceiling {
  std::string device;  // cpu, cuda
  std::string name;    // copy, gemm_fp32, gemm_bf16; on a device also those of device_ceilings.h
  std::string unit;    // B/s (read + written), FLOP/s, op/s; s: of one launch or graph node, where less is better
  double value = 0;
  std::optional<double> data_sheet = std::nullopt;
  std::string method = "";
  std::string data_sheet_source = "";  // which data sheet; where there is no value, why
};

// Measures copy bandwidth and matrix-product rates of the CPU: about a second. `quick` uses smaller sizes.
std::vector<Ceiling> measure_cpu_ceilings(bool quick);

// One of them, by name, at full size, to judge a time by: what all threads reach together, or what one reaches alone
// times their number where that is more. On a busy machine threads wait for each other, and their joint rate says
// little. Throws kUnknownName.
Ceiling measure_cpu_ceiling(const std::string& name);

nlohmann::json to_json(const Ceiling& ceiling);
Ceiling ceiling_from(const nlohmann::json& row);

// The least time that `cost` can take under the ceilings, which of them binds, and whether a faster result is
// impossible. On the CPU a byte floor holds only where the data cannot stay in cache (`cost.bytes` > 2 x
// `cache_bytes`).
struct Floor {
  double seconds = 0;
  std::string bound;                  // "bytes", "flops", or "" where the cost is zero
  std::vector<std::string> ceilings;  // the names whose values set that bound
  bool physical = false;              // a time below seconds / kBeyondFloor is invalid, not fast
};
Floor floor_of(const Cost& cost, const std::vector<Ceiling>& ceilings, const std::string& device, Dtype dtype,
               double cache_bytes);

// A median this far below the floor is impossible rather than fast: a ceiling is itself a measurement on a shared
// machine, so 1.25, not 1.05, separates the two.
constexpr double kBeyondFloor = 1.25;

struct FloorJudgement {
  Floor floor;                               // under the better of the given and the re-measured ceilings
  std::optional<double> impossible_below_s;  // under the data-sheet values too; absent where the floor does not bind
  bool beyond = false;                       // faster than that, even after measuring again
  std::vector<Ceiling> remeasured;
};

// Is a median of `seconds` faster than the work can be done? A ceiling measured while other programs ran is too low,
// and under it an honest time looks impossible. So before a time is rejected, the ceilings that bind are measured
// again, here and now, up to three times, by `remeasure` (name -> ceiling), and the better of both values counts. A
// library may leave part of a device unused: where a data-sheet value is above the measured one, a time is impossible
// only if it is so under that too.
FloorJudgement judge_floor(const Cost& cost, std::vector<Ceiling> ceilings, const std::string& device, Dtype dtype,
                           double cache_bytes, double seconds,
                           const std::function<Ceiling(const std::string& name)>& remeasure);

// Bytes of the last-level cache of this machine; 32 MiB where the system does not say.
double last_level_cache_bytes();

}  // namespace twinbench
