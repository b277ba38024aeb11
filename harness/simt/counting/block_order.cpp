// Handovers between blocks.
#include "harness/simt/counting/block_order.h"

#include <algorithm>

namespace twinbench::kernels::simt {
namespace {

constexpr int kWarpBits = 5;
constexpr std::uint32_t kLatest = ~std::uint32_t{0} >> kWarpBits;  // times stop here: later ones are not ordered

}  // namespace

void BlockOrder::Coverage::add(const Coverage& other) {
  all_before = std::max(all_before, other.all_before);
  for (const auto& [warp, time] : other.warp_before) {
    std::uint32_t& own = warp_before[warp];
    own = std::max(own, time);
  }
}

void BlockOrder::begin_launch() {
  blocks_.clear();
  releases_.clear();
}

std::uint32_t BlockOrder::stamp(std::uint32_t block, int warp) {
  return std::min(blocks_[block].time, kLatest) << kWarpBits | static_cast<std::uint32_t>(warp);
}

void BlockOrder::pass_barrier(std::uint32_t block) {
  Block& own = blocks_[block];
  own.barrier = ++own.time;
}

void BlockOrder::fence(std::uint32_t block, int warp) {
  Block& own = blocks_[block];
  own.fences[warp] = {++own.time, own.barrier};
  for (const auto& [address, count] : own.met) {
    const std::vector<Seen>& releases = releases_[address];
    for (std::size_t i = 0; i < count; ++i)
      if (releases[i].block != block) own.acquired[releases[i].block].add(releases[i].coverage);
  }
  own.met.clear();
}

void BlockOrder::update(std::uint32_t block, int warp, std::uint64_t address) {
  Block& own = blocks_[block];
  Coverage coverage;
  for (const auto& [fenced, fence] : own.fences)
    if (fenced == warp || fence.time < own.barrier) coverage.add({fence.all_before, {{fenced, fence.time}}});
  const auto found = releases_.find(address);
  if (found != releases_.end()) own.met.emplace_back(address, found->second.size());
  if (coverage.all_before == 0) return;
  std::vector<Seen>& releases = releases_[address];
  releases.push_back({block, std::move(coverage)});
  for (const auto& [other, acquired] : own.acquired) releases.push_back({other, acquired});
}

void BlockOrder::join(std::uint32_t first, std::uint32_t count) {
  for (std::uint32_t block = first; block < first + count; ++block) pass_barrier(block);
  for (std::uint32_t block = first; block < first + count; ++block)
    for (std::uint32_t other = first; other < first + count; ++other)
      if (other != block) blocks_[block].acquired[other].add({blocks_[other].barrier, {}});
}

bool BlockOrder::is_ordered(std::uint32_t earlier, std::uint32_t stamp, std::uint32_t block) const {
  const auto own = blocks_.find(block);
  if (own == blocks_.end()) return false;
  const auto found = own->second.acquired.find(earlier);
  if (found == own->second.acquired.end()) return false;
  const std::uint32_t time = stamp >> kWarpBits;
  if (time == kLatest) return false;
  if (time < found->second.all_before) return true;
  const auto warp = found->second.warp_before.find(static_cast<int>(stamp & ((1u << kWarpBits) - 1)));
  return warp != found->second.warp_before.end() && time < warp->second;
}

bool BlockOrder::has_acquired(std::uint32_t earlier, std::uint32_t block) const {
  const auto own = blocks_.find(block);
  return own != blocks_.end() && own->second.acquired.count(earlier) != 0;
}

bool BlockOrder::has_acquired_all(std::uint32_t block) const {
  const auto own = blocks_.find(block);
  return own != blocks_.end() && own->second.acquired.size() + 1 >= blocks_.size();
}

}  // namespace twinbench::kernels::simt
