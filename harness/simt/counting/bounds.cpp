// The bounds, line by line.
#include "harness/simt/counting/bounds.h"

#include <cstdio>

namespace twinbench::kernels::simt {
namespace {

std::string decimal(double value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

void judge_line(const KernelSummary& summary, const LineTotals& line, std::vector<Breach>& breaches) {
  const auto add = [&](const char* bound, double figure, const std::string& text) {
    breaches.push_back({summary.kernel, bound, line.at, figure, line.at + ", " + line.kind() + ": " + text});
  };
  const AccessTotals& totals = line.totals;
  const double most = line.shared ? kMostWavefrontFactor : kMostSectorFactor;
  if (totals.factor() > most)
    add(line.shared ? "wavefronts" : "sectors", totals.factor(),
        std::to_string(totals.units) + (line.shared ? " wavefronts" : " sectors") + ", ideal " +
            std::to_string(totals.ideal) + ", " + decimal(totals.factor(), 2) + "x, at most " + decimal(most, 2) + "x");
  const std::uint64_t all = line.shared ? summary.shared.requests : summary.loads.requests + summary.stores.requests;
  if (static_cast<double>(totals.requests) >= kHotShare * static_cast<double>(all) &&
      totals.mean_lanes() < kFewestLanes)
    add("lanes", totals.mean_lanes(),
        decimal(totals.mean_lanes(), 1) + " of 32 lanes take part, at least " + decimal(kFewestLanes, 0));
  if (line.access == Access::kAtomic && totals.most_on_one_address > kMostAtomicLanes)
    add("atomics", totals.most_on_one_address,
        std::to_string(totals.most_on_one_address) + " lanes of a warp update one address, at most " +
            std::to_string(kMostAtomicLanes));
}

}  // namespace

std::vector<Breach> breaches_of(const KernelSummary& summary, std::uint64_t fewest_blocks) {
  std::vector<Breach> breaches;
  for (const LineTotals& line : summary.lines) judge_line(summary, line, breaches);
  const double repeated = static_cast<double>(summary.loads.repeated_bytes);
  if (repeated > kMostRepeated * static_cast<double>(summary.loads.unique_bytes))
    breaches.push_back(
        {summary.kernel, "repeats", "", repeated / static_cast<double>(summary.loads.unique_bytes),
         std::to_string(summary.loads.repeated_bytes) + " of " + std::to_string(summary.loads.unique_bytes) +
             " bytes are loaded by a warp that had met them, at most " + decimal(100 * kMostRepeated, 0) + " %"});
  if (summary.fewest_blocks < fewest_blocks)
    breaches.push_back({summary.kernel, "blocks", "", static_cast<double>(summary.fewest_blocks),
                        "a launch of " + std::to_string(summary.fewest_blocks) + " blocks, at least " +
                            std::to_string(fewest_blocks) + ", one a multiprocessor"});
  return breaches;
}

}  // namespace twinbench::kernels::simt
