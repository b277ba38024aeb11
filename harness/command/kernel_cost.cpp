// Bytes by launch and by product, and the two bounds.
#include "harness/command/kernel_cost.h"

#include <ATen/core/Tensor.h>

#include <algorithm>

namespace twinbench {
namespace {

constexpr double kSectorBytes = 32;
// Counts of whole grids are exact; the blocks of a sample need not be like the others, nor read what others read.
constexpr double kSampledSlack = 1.1;

double grid_blocks(const kernels::simt::LaunchCounts& launch) {
  return static_cast<double>(launch.grid.x) * launch.grid.y * launch.grid.z;
}

bool is_sampled(const kernels::simt::LaunchCounts& launch) {
  return static_cast<double>(launch.blocks) < grid_blocks(launch);
}

double product_bytes(const std::string& name) {
  const model::ProductWork work = model::product_of(name);
  const double operand = work.dtype == "bf16" || work.dtype == "fp16" ? 2 : 4;
  const double rows = static_cast<double>(work.rows), inner = static_cast<double>(work.inner),
               columns = static_cast<double>(work.columns);
  return static_cast<double>(work.batch) * (operand * inner * (rows + columns) + 4 * rows * columns);
}

}  // namespace

double moved_bytes(const CountedCell& cell) {
  double bytes = 0;
  for (const auto& launch : cell.launches) {
    const double share = static_cast<double>(std::max<std::uint64_t>(1, launch.blocks)) / grid_blocks(launch);
    bytes += kSectorBytes * (launch.read_sectors_of_grid + static_cast<double>(launch.written_sectors) / share);
  }
  for (const std::string& product : cell.products) bytes += product_bytes(product);
  return bytes;
}

std::vector<kernels::simt::Breach> cost_breaches(const CountedCell& cell) {
  if (!cell.timed) return {};
  const double moved = moved_bytes(cell), declared = cell.cost.bytes;
  const bool sampled = std::any_of(cell.launches.begin(), cell.launches.end(), is_sampled);
  const std::string component = cell.name.substr(0, cell.name.find('/'));
  const auto breach = [&](const char* bound, double figure, const char* says) {
    return kernels::simt::Breach{component, bound, "", figure,
                                 c10::str(cell.name, ": its cost declares ", declared, " bytes, ", moved,
                                          " were counted", sampled ? " (sampled)" : "", ": ", says)};
  };
  std::vector<kernels::simt::Breach> found;
  if (declared > moved * (sampled ? kSampledSlack : 1))
    found.push_back(breach("bytes", moved > 0 ? declared / moved : declared, "this run would be called impossible"));
  if (moved > kMostHiddenBytes * declared)
    found.push_back(breach("roof", declared > 0 ? moved / declared : moved, "it hides the roof"));
  return found;
}

}  // namespace twinbench
