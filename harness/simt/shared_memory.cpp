// Race and initialisation checks of shared memory: two touches conflict unless a barrier or warp barrier orders them.
#include "harness/simt/shared_memory.h"

#include <algorithm>
#include <cstring>

#include "harness/simt/access_observer.h"
#include "harness/simt/executor.h"

namespace twinbench::kernels::simt {
namespace {

// Blocks of a cluster are ordered by its barrier alone.
bool is_ordered_before(const Touch& touch, const HostThread& now, std::uint32_t epoch) {
  if (touch.block != now.executor->place_in_team()) return touch.epoch < now.executor->epoch_of_team();
  if (touch.epoch != epoch || touch.thread == now.rank) return true;
  if (touch.thread / kWarpSize != now.warp) return false;
  return now.clock[touch.thread % kWarpSize] >= touch.clock;
}

const char* verb(Access access) {
  return access == Access::kRead ? "reads" : access == Access::kWrite ? "writes" : "updates atomically";
}

void report_race(Executor& executor, const HostThread& thread, const SharedRegion& region, std::int64_t offset,
                 int size, Access access, const Touch& earlier, const char* earlier_verb) {
  const std::int64_t element = offset / size;
  executor.add_finding(FindingKind::kRace, thread.rank, earlier.thread, element, region.name,
                       "thread " + std::to_string(thread.rank) + " " + verb(access) + " " + region.name + " element " +
                           std::to_string(element) + ", which thread " + std::to_string(earlier.thread) + " " +
                           earlier_verb + " with no barrier between");
}

void remember_read(SharedRegion::Granule& granule, const Touch& touch, std::uint32_t epoch) {
  auto& [first, second] = granule.reads;
  const auto replaceable = [&](const Touch& slot) {
    return (slot.epoch != epoch && slot.block == touch.block) || slot.epoch == 0 ||
           slot.thread / kWarpSize == touch.thread / kWarpSize;
  };
  if (replaceable(first)) {
    first = touch;
  } else {
    second = touch;
  }
}

// False if the access is out of bounds.
bool touch(Executor& executor, HostThread& thread, SharedRegion& region, std::int64_t offset, int size, Access access,
           const void* site) {
  if (offset < 0 || offset + size > static_cast<std::int64_t>(region.bytes.size())) {
    executor.add_finding(FindingKind::kSharedOutOfBounds, thread.rank, -1, offset / size, region.name,
                         "thread " + std::to_string(thread.rank) + " " + verb(access) + " " + region.name +
                             " element " + std::to_string(offset / size) + " (byte " + std::to_string(offset) + " of " +
                             std::to_string(region.bytes.size()) + ")");
    return false;
  }
  if (AccessObserver* observer = executor.observer())
    observer->touch_shared(site, region, offset, static_cast<std::uint32_t>(size), access);
  const std::uint32_t epoch = executor.epoch();
  const Touch now{epoch, thread.clock[thread.lane], static_cast<std::uint16_t>(thread.rank), access == Access::kAtomic,
                  executor.place_in_team()};
  region.each_piece(offset, size, [&](SharedRegion::Granule& piece) {
    if (access != Access::kWrite && piece.write.epoch < executor.first_epoch_of_block()) {
      executor.add_finding(FindingKind::kUninitialisedRead, thread.rank, -1, offset / size, region.name,
                           "thread " + std::to_string(thread.rank) + " " + verb(access) + " " + region.name +
                               " element " + std::to_string(offset / size) + ", which nobody wrote");
      piece.write = now;  // one report is enough
      return;
    }
    const bool both_atomic = now.atomic && piece.write.atomic;
    if (!both_atomic && !is_ordered_before(piece.write, thread, epoch)) {
      report_race(executor, thread, region, offset, size, access, piece.write,
                  piece.write.atomic ? "updated atomically" : "wrote");
    }
    if (access == Access::kRead) return remember_read(piece, now, epoch);
    for (const Touch& read : piece.reads) {
      if (!is_ordered_before(read, thread, epoch)) {
        report_race(executor, thread, region, offset, size, access, read, "read");
        break;
      }
    }
    piece.write = now;
  });
  return true;
}

}  // namespace

// 0xff bytes: unwritten floats are NaN, so they also show in the results.
SharedRegion::SharedRegion(std::string name, std::size_t size, int granule)
    : name(std::move(name)),
      bytes(size, 0xff),
      granule(granule),
      granules((size + static_cast<std::size_t>(granule) - 1) / static_cast<std::size_t>(granule)),
      divided(size / kLine + 1, kLine) {}

void SharedRegion::judge_bytes() {
  if (granule == 1) return;
  std::vector<Granule> single(bytes.size());
  for (std::size_t i = 0; i < single.size(); ++i) single[i] = granules[i / static_cast<std::size_t>(granule)];
  granules = std::move(single);
  granule = 1;
}

void SharedRegion::divide(std::int64_t line, std::int64_t bounds) {
  const int whole = divided[static_cast<std::size_t>(line)];
  const int part = std::max(granule, static_cast<int>(bounds & -bounds));
  divided[static_cast<std::size_t>(line)] = static_cast<std::uint8_t>(part);
  for (std::int64_t i = 0; i < kLine; i += part) {
    const auto at = static_cast<std::size_t>((line * kLine + i) / granule);
    if (i % whole != 0 && at < granules.size())
      granules[at] = granules[static_cast<std::size_t>((line * kLine + i / whole * whole) / granule)];
  }
}

bool read_shared(Executor& executor, HostThread& thread, SharedRegion& region, std::int64_t offset, void* value,
                 int size) {
  if (!touch(executor, thread, region, offset, size, Access::kRead, __builtin_return_address(0))) return false;
  std::memcpy(value, region.bytes.data() + offset, static_cast<std::size_t>(size));
  return true;
}

bool write_shared(Executor& executor, HostThread& thread, SharedRegion& region, std::int64_t offset, const void* value,
                  int size) {
  if (!touch(executor, thread, region, offset, size, Access::kWrite, __builtin_return_address(0))) return false;
  std::memcpy(region.bytes.data() + offset, value, static_cast<std::size_t>(size));
  return true;
}

bool begin_shared_update(Executor& executor, HostThread& thread, SharedRegion& region, std::int64_t offset, void* old,
                         int size) {
  if (!touch(executor, thread, region, offset, size, Access::kAtomic, __builtin_return_address(0))) return false;
  std::memcpy(old, region.bytes.data() + offset, static_cast<std::size_t>(size));
  return true;
}

void finish_shared_update(SharedRegion& region, std::int64_t offset, const void* changed, int size) {
  std::memcpy(region.bytes.data() + offset, changed, static_cast<std::size_t>(size));
}

}  // namespace twinbench::kernels::simt
