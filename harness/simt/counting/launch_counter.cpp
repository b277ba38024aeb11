// Grouping of lanes' accesses into requests of warps, and the adding up.
#include "harness/simt/counting/launch_counter.h"

#include <link.h>

#include <algorithm>
#include <bit>

#include "harness/simt/counting/source_place.h"
#include "harness/simt/executor.h"

namespace twinbench::kernels::simt {
namespace {

// The program or library that this is linked into: constants.
AddressRange own_image() {
  AddressRange found;
  dl_iterate_phdr(
      [](dl_phdr_info* image, std::size_t, void* result) {
        std::uintptr_t lowest = ~std::uintptr_t{0}, end = 0;
        for (int i = 0; i < image->dlpi_phnum; ++i) {
          const auto& segment = image->dlpi_phdr[i];
          if (segment.p_type != PT_LOAD) continue;
          lowest = std::min<std::uintptr_t>(lowest, image->dlpi_addr + segment.p_vaddr);
          end = std::max<std::uintptr_t>(end, image->dlpi_addr + segment.p_vaddr + segment.p_memsz);
        }
        const AddressRange all{lowest, end - lowest};
        if (!all.holds(reinterpret_cast<std::uintptr_t>(&own_image))) return 0;
        *static_cast<AddressRange*>(result) = all;
        return 1;
      },
      &found);
  return found;
}

}  // namespace

void LaunchCounter::begin_launch(const Executor& executor) {
  now_ = {};
  now_.kernel = executor.kernel();
  now_.grid = executor.grid_size();
  now_.block = executor.block_size();
  now_.dynamic_shared_bytes = executor.dynamic_shared_bytes();
  index_of_site_.clear();
  group_of_.clear();
  regions_.clear();
  told_.clear();
  findings_.clear();
  const std::size_t threads = std::size_t{now_.block.x} * now_.block.y * now_.block.z;
  if (logs_.size() < threads) logs_.resize(threads);
  sample_ = BlockSample(now_.grid, std::max<std::uint64_t>(1, most_threads_ / threads));
  words_.begin_launch(sample_);
  not_global_ = {AddressRange{}, AddressRange{}, range_of(&executor, sizeof executor), own_stack(), own_image()};
}

bool LaunchCounter::takes_block(std::int64_t linear_index) {
  return sample_.takes(static_cast<std::uint64_t>(linear_index));
}

void LaunchCounter::begin_block(std::int64_t linear_index) {
  block_ = linear_index;
  words_.order().begin_block(static_cast<std::uint32_t>(block_ + 1));
  const auto i = static_cast<std::uint64_t>(linear_index);
  block_index_ = {static_cast<unsigned>(i % now_.grid.x), static_cast<unsigned>(i / now_.grid.x % now_.grid.y),
                  static_cast<unsigned>(i / now_.grid.x / now_.grid.y)};
}

void LaunchCounter::begin_thread(const HostThread& thread) {
  LaneLog& log = logs_[static_cast<std::size_t>(thread.rank)];
  not_global_[0] = range_of(thread.fiber.stack().lowest, thread.fiber.stack().bytes);
  not_global_[1] = range_of(&thread, sizeof thread);
  not_global_[2] = range_of(thread.executor, sizeof(Executor));
  log.not_global = not_global_;
  current_lane_log = &log;
}

void LaunchCounter::fence() {
  if (current_lane_log != nullptr) current_lane_log->accesses.push_back({nullptr, 0, 0, Access::kAtomic, false});
}

void LaunchCounter::pass_barrier() { words_.order().pass_barrier(static_cast<std::uint32_t>(block_ + 1)); }

void LaunchCounter::pass_team_barrier(std::int64_t first, std::int64_t blocks) {
  words_.order().join(static_cast<std::uint32_t>(first + 1), static_cast<std::uint32_t>(blocks));
}

void LaunchCounter::pause_thread() { current_lane_log = nullptr; }

void LaunchCounter::touch_global(const void* site, const void* address, std::uint32_t bytes, Access access) {
  if (current_lane_log != nullptr) current_lane_log->add_global(site, address, bytes, access);
}

void LaunchCounter::touch_shared(const void* site, const SharedRegion& region, std::int64_t offset, std::uint32_t bytes,
                                 Access access) {
  if (current_lane_log == nullptr) return;
  auto found = std::find(regions_.begin(), regions_.end(), &region);
  if (found == regions_.end()) found = regions_.insert(regions_.end(), &region);
  const auto number = static_cast<std::uint64_t>(found - regions_.begin());
  current_lane_log->accesses.push_back({site, number << 32 | static_cast<std::uint64_t>(offset), bytes, access, true});
}

std::uint32_t LaunchCounter::site_index(const LoggedAccess& access) {
  std::uint32_t& index = index_of_site_[reinterpret_cast<std::uint64_t>(access.site)];
  if (index == 0) {
    now_.sites.push_back(
        {.site = access.site, .shared = access.shared, .access = access.access, .bytes = access.bytes});
    group_of_.emplace_back();
    index = static_cast<std::uint32_t>(now_.sites.size());
  }
  return index - 1;
}

// The n-th time that each lane passes a place since the warp last met is one request of the warp.
void LaunchCounter::group_lanes(int warp) {
  const std::size_t first = static_cast<std::size_t>(warp) * kWarpSize;
  const std::size_t last = std::min(first + kWarpSize, logs_.size());
  for (std::size_t rank = first; rank < last; ++rank) {
    times_.assign(now_.sites.size(), 0);
    for (const LoggedAccess& access : logs_[rank].accesses) {
      if (access.bytes == 0) {
        groups_.push_back({kFence, {}});
        continue;
      }
      const std::uint32_t site = site_index(access);
      if (site >= times_.size()) times_.resize(site + 1, 0);
      auto& groups = group_of_[site];
      const std::uint32_t time = times_[site]++;
      if (time == groups.size()) {
        groups.push_back(static_cast<std::uint32_t>(groups_.size()));
        groups_.push_back({site, {.bytes = access.bytes}});
      }
      WarpRequest32& request = groups_[groups[time]].request;
      const auto at = static_cast<std::size_t>(request.count++);
      request.addresses[at] = access.address;
      request.lanes[at] = static_cast<std::uint8_t>(rank - first);
    }
    logs_[rank].accesses.clear();
  }
}

void LaunchCounter::meet_warp(int warp) {
  group_lanes(warp);
  for (const Group& group : groups_) {
    if (group.site == kFence)
      words_.order().fence(static_cast<std::uint32_t>(block_ + 1), warp);
    else
      add(warp, group);
  }
  groups_.clear();
  for (auto& groups : group_of_) groups.clear();
}

void LaunchCounter::add(int warp, const Group& group) {
  SiteCounts& site = now_.sites[group.site];
  const RequestCost cost =
      site.shared ? cost_of_shared(group.request, touched_) : cost_of_global(group.request, touched_);
  ++site.requests;
  site.lanes += static_cast<std::uint64_t>(group.request.count);
  site.units += cost.units;
  site.ideal += cost.ideal;
  site.unique_bytes += cost.unique_bytes;
  site.misaligned += static_cast<std::uint64_t>(cost.misaligned);
  site.most_on_one_address = std::max(site.most_on_one_address, cost.most_on_one_address);
  if (site.shared) return;
  site.repeated_bytes += repeated_bytes(warp, site.access);
  find_race(warp, site);
}

// Of the last request's bytes, those that the warp had met in this block. Atomic updates happen in the cache, not here.
std::uint64_t LaunchCounter::repeated_bytes(int warp, Access access) {
  if (access == Access::kAtomic) return 0;
  std::uint64_t repeated = 0;
  for (const Interval& interval : touched_)
    for (std::uint64_t sector = interval.begin / kSectorBytes; sector <= (interval.end - 1) / kSectorBytes; ++sector) {
      const std::uint64_t begin = std::max(interval.begin, sector * kSectorBytes) % kSectorBytes / 2;
      const std::uint64_t end = (std::min(interval.end, (sector + 1) * kSectorBytes) - sector * kSectorBytes + 1) / 2;
      const auto mask = static_cast<std::uint16_t>((0xffffu >> (16 - (end - begin))) << begin);
      std::uint16_t& known = known_to_warp_[sector * kWarpSize + static_cast<std::uint64_t>(warp) +
                                            (static_cast<std::uint64_t>(block_) << 48)];
      if (access == Access::kRead)
        repeated += 2 * static_cast<std::uint64_t>(std::popcount(static_cast<std::uint16_t>(known & mask)));
      known |= mask;
    }
  return repeated;
}

void LaunchCounter::end_block() { known_to_warp_.clear(); }

void LaunchCounter::end_launch(Report& report) {
  now_.static_shared_bytes = report.static_shared_bytes;
  now_.blocks = report.blocks;
  now_.threads = report.threads;
  now_.barriers = report.barriers;
  now_.warp_operations = report.warp_operations;
  now_.bf16_products = report.bf16_products;
  now_.tf32_products = report.tf32_products;
  now_.matrix_loads = report.matrix_loads;
  now_.asynchronous_copies = report.asynchronous_copies;
  now_.read_sectors = words_.read_sectors();
  now_.written_sectors = words_.written_sectors();
  now_.read_sectors_of_grid = words_.read_sectors_of_grid();
  std::sort(now_.sites.begin(), now_.sites.end(),
            [](const SiteCounts& a, const SiteCounts& b) { return a.site < b.site; });
  for (Finding& finding : findings_) report.findings.push_back(std::move(finding));
  findings_.clear();
  launches_.push_back(std::move(now_));
}

void LaunchCounter::find_race(int warp, const SiteCounts& site) {
  const BlockWords::Conflict conflict = words_.touch(block_, warp, touched_, site.access, site.bytes > 1);
  if (!conflict.found) return;
  const std::string other =
      conflict.other_block < 0 ? "several blocks" : "block " + std::to_string(conflict.other_block);
  const char* verb = site.access == Access::kRead ? "reads" : site.access == Access::kWrite ? "writes" : "updates";
  add_finding(
      FindingKind::kBlockRace, site,
      "block " + std::to_string(block_) + " " + verb + " global memory that " + other +
          (conflict.other_wrote ? " wrote" : " read") +
          " in the same launch, not both atomically and with no handover between: a fence, an atomic update, an "
          "update of the same word by the other block, a fence");
}

void LaunchCounter::add_finding(FindingKind kind, const SiteCounts& site, std::string text) {
  for (const Told& told : told_)
    if (told.kind == kind && told.site == site.site) return;
  told_.push_back({kind, site.site});
  findings_.push_back(
      {kind, now_.kernel, block_index_, -1, -1, -1, place_of(site.site).text() + ": " + std::move(text)});
}

}  // namespace twinbench::kernels::simt
