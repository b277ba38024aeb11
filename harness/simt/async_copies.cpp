// Asynchronous copies: their destination counts as written at the wait, by the thread that waits.
#include "harness/simt/async_copies.h"

#include <cstring>
#include <exception>

#include "harness/simt/executor.h"

namespace twinbench::kernels::simt {

AsyncCopies::~AsyncCopies() {
  if (copies_.empty() || std::uncaught_exceptions() > 0) return;
  const Copy& first = copies_.front();
  executor_.add_finding(FindingKind::kAsyncCopy, thread_.rank, -1, first.offset, first.region->name,
                        "thread " + std::to_string(thread_.rank) +
                            " ends without waiting for its asynchronous copy to " + first.region->name + ", byte " +
                            std::to_string(first.offset));
}

void AsyncCopies::begin(SharedRegion& region, std::int64_t offset, const unsigned char* data, int bytes) {
  executor_.count_asynchronous_copy();
  region.each_piece(offset, bytes, [](SharedRegion::Granule& piece) { piece.write = Touch{}; });
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
  copy.region->each_piece(copy.offset, copy.bytes, [&](SharedRegion::Granule& piece) {
    if (piece.write.epoch != 0)
      executor_.add_finding(FindingKind::kAsyncCopy, thread_.rank, piece.write.thread, copy.offset, copy.region->name,
                            "thread " + std::to_string(piece.write.thread) + " writes " + copy.region->name +
                                ", byte " + std::to_string(copy.offset) + ", while a copy of thread " +
                                std::to_string(thread_.rank) + " to it is under way");
    piece.write = now;
  });
  std::memcpy(copy.region->bytes.data() + copy.offset, copy.data, static_cast<std::size_t>(copy.bytes));
}

}  // namespace twinbench::kernels::simt
