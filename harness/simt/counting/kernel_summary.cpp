// Sums over launches and places.
#include "harness/simt/counting/kernel_summary.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "harness/simt/counting/source_place.h"

namespace twinbench::kernels::simt {
namespace {

AccessTotals totals_of(const SiteCounts& site) {
  return {.requests = site.requests,
          .lanes = site.lanes,
          .units = site.units,
          .ideal = site.ideal,
          .unique_bytes = site.unique_bytes,
          .repeated_bytes = site.repeated_bytes,
          .most_on_one_address = site.most_on_one_address};
}

using LineKey = std::tuple<std::string, int, std::string, bool, Access, std::uint32_t>;

void add_launch(KernelSummary& summary, const LaunchCounts& launch) {
  const std::uint64_t grid = std::uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z;
  summary.fewest_blocks = summary.launches == 0 ? grid : std::min(summary.fewest_blocks, grid);
  ++summary.launches;
  summary.grid_blocks += grid;
  summary.blocks += launch.blocks;
  summary.threads += launch.threads;
  summary.barriers += launch.barriers;
  summary.warp_operations += launch.warp_operations;
  summary.bf16_products += launch.bf16_products;
  summary.tf32_products += launch.tf32_products;
  summary.read_sectors += launch.read_sectors;
  summary.written_sectors += launch.written_sectors;
}

nlohmann::json totals_json(const AccessTotals& totals, const char* units) {
  nlohmann::json json = {{"requests", totals.requests},
                         {"lanes", totals.lanes},
                         {units, totals.units},
                         {"ideal", totals.ideal},
                         {"bytes", totals.unique_bytes}};
  if (totals.repeated_bytes > 0) json["repeated_bytes"] = totals.repeated_bytes;
  return json;
}

}  // namespace

void AccessTotals::add(const AccessTotals& other) {
  requests += other.requests;
  lanes += other.lanes;
  units += other.units;
  ideal += other.ideal;
  unique_bytes += other.unique_bytes;
  repeated_bytes += other.repeated_bytes;
  most_on_one_address = std::max(most_on_one_address, other.most_on_one_address);
}

std::string LineTotals::kind() const {
  const char* verb = access == Access::kRead ? "load" : access == Access::kWrite ? "store" : "atomic";
  return std::string(shared ? "shared " : "") + verb + " " + std::to_string(bytes) + " B";
}

std::string short_kernel_name(const std::string& type_name) {
  const std::string top = "twinbench::";
  std::string name = type_name;
  for (std::size_t at = name.find(top); at != std::string::npos; at = name.find(top, at)) name.erase(at, top.size());
  return name;
}

std::vector<KernelSummary> summarise(const std::vector<LaunchCounts>& launches) {
  std::vector<KernelSummary> summaries;
  std::vector<std::map<LineKey, AccessTotals>> lines;
  for (const LaunchCounts& launch : launches) {
    const std::string name = short_kernel_name(launch.kernel);
    auto found = std::find_if(summaries.begin(), summaries.end(), [&](const auto& s) { return s.kernel == name; });
    if (found == summaries.end()) {
      found = summaries.emplace(summaries.end());
      found->kernel = name;
      lines.emplace_back();
    }
    add_launch(*found, launch);
    auto& of_kernel = lines[static_cast<std::size_t>(found - summaries.begin())];
    for (const SiteCounts& site : launch.sites) {
      const SourcePlace place = place_of(site.site);
      const std::string through =
          place.through_file.empty() ? "" : place.through_file + ":" + std::to_string(place.through_line);
      const std::string file = place.file.empty() ? "unknown" : place.file;
      of_kernel[{file, place.line, through, site.shared, site.access, site.bytes}].add(totals_of(site));
    }
  }
  for (std::size_t i = 0; i < summaries.size(); ++i) {
    KernelSummary& summary = summaries[i];
    for (const auto& [key, totals] : lines[i]) {
      const auto& [file, line, through, shared, access, bytes] = key;
      summary.lines.push_back({file + ":" + std::to_string(line), through, shared, access, bytes, totals});
      (shared ? summary.shared : access == Access::kWrite ? summary.stores : summary.loads).add(totals);
      if (access == Access::kAtomic) summary.atomics.add(totals);
    }
  }
  return summaries;
}

nlohmann::json to_json(const KernelSummary& summary, std::size_t worst_lines) {
  nlohmann::json json = {{"launches", summary.launches},
                         {"blocks", summary.grid_blocks},
                         {"threads", summary.threads},
                         {"barriers", summary.barriers},
                         {"warp_operations", summary.warp_operations},
                         {"read_sectors", summary.read_sectors},
                         {"written_sectors", summary.written_sectors}};
  if (summary.bf16_products > 0) json["bf16_products"] = summary.bf16_products;
  if (summary.tf32_products > 0) json["tf32_products"] = summary.tf32_products;
  if (summary.is_sample()) json["counted_blocks"] = summary.blocks;
  if (summary.loads.requests > 0) json["loads"] = totals_json(summary.loads, "sectors");
  if (summary.stores.requests > 0) json["stores"] = totals_json(summary.stores, "sectors");
  if (summary.shared.requests > 0) json["shared"] = totals_json(summary.shared, "wavefronts");
  if (summary.atomics.requests > 0)
    json["atomics"] = {{"requests", summary.atomics.requests},
                       {"lanes", summary.atomics.lanes},
                       {"most_on_one_address", summary.atomics.most_on_one_address}};
  std::vector<const LineTotals*> worst;
  for (const LineTotals& line : summary.lines)
    if (line.totals.units > line.totals.ideal) worst.push_back(&line);
  std::stable_sort(worst.begin(), worst.end(), [](const LineTotals* a, const LineTotals* b) {
    return a->totals.units - a->totals.ideal > b->totals.units - b->totals.ideal;
  });
  worst.resize(std::min(worst.size(), worst_lines));
  for (const LineTotals* line : worst)
    json["worst"].push_back({{"at", line->at},
                             {"kind", line->kind()},
                             {"requests", line->totals.requests},
                             {"lanes", line->totals.lanes},
                             {"counted", line->totals.units},
                             {"ideal", line->totals.ideal}});
  return json;
}

}  // namespace twinbench::kernels::simt
