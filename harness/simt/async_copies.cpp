// Asynchronous copies: their destination counts as written at the wait, by the thread that waits.
#include "harness/simt/async_copies.h"

#include <cstring>
#include <exception>
#include <span>

#include "harness/simt/executor.h"

namespace twinbench::kernels::simt {
namespace {

std::span<SharedRegion::Granule> granules(SharedRegion& region, std::int64_t offset, int bytes) {
  const std::int64_t first = offset / region.granule, last = (offset + bytes - 1) / region.granule;
  return std::span(region.granules)
      .subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first + 1));
}

}  // namespace

AsyncCopies::~AsyncCopies() {
  if (copies_.empty() || std::uncaught_exceptions() > 0) return;
  const Copy& first = copies_.front();
  executor_.add_finding(FindingKind::kAsyncCopy, thread_.rank, -1, first.offset, first.region->name,
                        "thread " + std::to_string(thread_.rank) +
                            " ends without waiting for its asynchronous copy to " + first.region->name + ", byte " +
                            std::to_string(first.offset));
}

void AsyncCopies::begin(SharedRegion& region, std::int64_t offset, const unsigned char* data, int bytes) {
  for (SharedRegion::Granule& granule : granules(region, offset, bytes)) granule.write = Touch{};
  Copy copy{&region, offset, bytes, committed_, {}};
  std::memcpy(copy.data, data, static_cast<std::size_t>(bytes));
  copies_.push_back(copy);
}

void AsyncCopies::wait(int groups) {
  for (; committed_ - arrived_ > groups; ++arrived_)
    std::erase_if(copies_, [&](const Copy& copy) {
      if (copy.group == arrived_) arrive(copy);
      return copy.group == arrived_;
    });
}

void AsyncCopies::arrive(const Copy& copy) {
  const Touch now{executor_.epoch(), thread_.clock[static_cast<std::size_t>(thread_.lane)],
                  static_cast<std::uint16_t>(thread_.rank), false, executor_.place_in_team()};
  for (SharedRegion::Granule& granule : granules(*copy.region, copy.offset, copy.bytes)) {
    if (granule.write.epoch != 0)
      executor_.add_finding(FindingKind::kAsyncCopy, thread_.rank, granule.write.thread, copy.offset, copy.region->name,
                            "thread " + std::to_string(granule.write.thread) + " writes " + copy.region->name +
                                ", byte " + std::to_string(copy.offset) + ", while a copy of thread " +
                                std::to_string(thread_.rank) + " to it is under way");
    granule.write = now;
  }
  std::memcpy(copy.region->bytes.data() + copy.offset, copy.data, static_cast<std::size_t>(copy.bytes));
}

}  // namespace twinbench::kernels::simt
