// Asynchronous copies: the destination counts as written at the wait, by the thread that waits.
#include "harness/simt/async_copies.h"

#include <algorithm>
#include <cstring>
#include <exception>

#include "harness/simt/executor.h"

namespace twinbench::kernels::simt {

AsyncCopies::~AsyncCopies() {
  if ((open_.empty() && groups_.empty()) || std::uncaught_exceptions() > 0) return;
  const Copy& first = groups_.empty() ? open_.front() : groups_.front().front();
  executor_.add_finding(FindingKind::kAsyncCopy, thread_.rank, -1, first.offset, first.region->name,
                        "thread " + std::to_string(thread_.rank) + " ends without waiting for its asynchronous copy to " +
                            first.region->name + ", byte " + std::to_string(first.offset));
}

void AsyncCopies::begin(SharedRegion& region, std::int64_t offset, const unsigned char* data, int bytes) {
  if (!touch_shared(executor_, thread_, region, offset, bytes, Access::kWrite)) return;
  std::memset(region.bytes.data() + offset, 0xff, static_cast<std::size_t>(bytes));
  const std::int64_t last = (offset + bytes - 1) / SharedRegion::kGranule;
  for (std::int64_t g = offset / SharedRegion::kGranule; g <= last; ++g)
    region.granules[static_cast<std::size_t>(g)].write = Touch{};
  Copy copy{&region, offset, bytes, {}};
  std::memcpy(copy.data, data, static_cast<std::size_t>(bytes));
  open_.push_back(copy);
}

void AsyncCopies::commit() {
  groups_.push_back(std::move(open_));
  open_.clear();
}

void AsyncCopies::wait(int groups) {
  while (static_cast<int>(groups_.size()) > groups) {
    for (const Copy& copy : groups_.front()) {
      touch_shared(executor_, thread_, *copy.region, copy.offset, copy.bytes, Access::kWrite);
      std::memcpy(copy.region->bytes.data() + copy.offset, copy.data, static_cast<std::size_t>(copy.bytes));
    }
    groups_.pop_front();
  }
}

}  // namespace twinbench::kernels::simt
