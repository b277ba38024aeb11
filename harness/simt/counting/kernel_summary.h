// The launches of one run by kernel and by line of its source: what is printed, pinned and judged.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/simt/counting/launch_counts.h"

namespace twinbench::kernels::simt {

// Sums over places of one line of the source and one kind of access, or over many lines.
struct AccessTotals {
  std::uint64_t requests = 0, lanes = 0, units = 0, ideal = 0, unique_bytes = 0, repeated_bytes = 0;
  int most_on_one_address = 0;

  void add(const AccessTotals& other);
  double factor() const { return ideal == 0 ? 1.0 : static_cast<double>(units) / static_cast<double>(ideal); }
  double mean_lanes() const { return requests == 0 ? 0.0 : static_cast<double>(lanes) / static_cast<double>(requests); }
};

struct LineTotals {
  std::string at;       // "kernels/.../kernel.h:31"
  std::string through;  // the shared helper's line; may be empty
  bool shared = false;
  Access access = Access::kRead;
  std::uint32_t bytes = 0;  // a lane's
  AccessTotals totals;

  std::string kind() const;  // "load 16 B", "shared store 4 B", "atomic 4 B"
};

struct KernelSummary {
  std::string kernel;  // as in ci/kernel_budgets.json
  std::uint64_t launches = 0, grid_blocks = 0, blocks = 0, threads = 0, barriers = 0, warp_operations = 0;
  std::uint64_t bf16_products = 0, tf32_products = 0;  // of tensor-core tiles, among the warp operations
  std::uint64_t fewest_blocks = 0;                     // of one launch's grid
  std::uint64_t read_sectors = 0, written_sectors = 0;
  AccessTotals loads, stores, shared, atomics;  // global loads, global stores, all of shared memory, all atomics
  std::vector<LineTotals> lines;                // by place

  // Counted blocks stand for all of the grid's where only some were run.
  bool is_sample() const { return blocks != grid_blocks; }
};

// "twinbench::energy_flow::energy_carrier::Gates" without "twinbench::", there and in its template's arguments.
std::string short_kernel_name(const std::string& type_name);

// By kernel, in the order of their first launches.
std::vector<KernelSummary> summarise(const std::vector<LaunchCounts>& launches);

// What is pinned of a kernel: totals, and the lines with most units above the ideal.
nlohmann::json to_json(const KernelSummary& summary, std::size_t worst_lines);

}  // namespace twinbench::kernels::simt
