// What this machine can do at best, measured: the roofs of the roofline. Data-sheet values stand beside where known.
#pragma once

#include <c10/core/Device.h>

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <vector>

#include "src/component.h"

namespace twinbench {

struct Ceiling {
  std::string device;  // cpu, cuda
  std::string name;    // copy, gemm_fp32, gemm_bf16
  std::string unit;    // B/s (read + written), FLOP/s
  double value = 0;
  std::optional<double> data_sheet;
  std::string method;
};

// Measures copy bandwidth and matrix-product rates on `device`: about a second. `quick` uses smaller sizes.
std::vector<Ceiling> measure_ceilings(c10::Device device, bool quick);

nlohmann::json to_json(const Ceiling& ceiling);

// The least time that `cost` can take under the ceilings, which of them binds, and whether a faster result is
// impossible. On the CPU a byte floor holds only where the data cannot stay in cache (`cost.bytes` > 2 x `cache_bytes`).
struct Floor {
  double seconds = 0;
  std::string bound;      // "bytes", "flops", or "" where the cost is zero
  bool physical = false;  // a time below seconds / 1.05 is invalid, not fast
};
Floor floor_of(const Cost& cost, const std::vector<Ceiling>& ceilings, const std::string& device, Dtype dtype, double cache_bytes);

// Bytes of the last-level cache of this machine; 32 MiB where the system does not say.
double last_level_cache_bytes();

}  // namespace twinbench
