// The asynchronous copies that one thread of the host run has under way.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/simt/shared_memory.h"

namespace twinbench::kernels::simt {

class AsyncCopies {
 public:
  AsyncCopies(Executor& executor, HostThread& thread) : executor_(executor), thread_(thread) {}
  AsyncCopies(const AsyncCopies&) = delete;
  AsyncCopies& operator=(const AsyncCopies&) = delete;
  ~AsyncCopies();  // copies that nobody waited for are a finding

  // From now until the wait nobody has written the destination. The write counts here, at the place in the kernel.
  template <int kBytes>
  TWINBENCH_ALWAYS_INLINE void add(SharedRegion& region, std::int64_t offset, const unsigned char* data) {
    static constexpr std::uint64_t kUnwritten[2] = {~std::uint64_t{0}, ~std::uint64_t{0}};
    if (write_shared(executor_, thread_, region, offset, kUnwritten, kBytes)) begin(region, offset, data, kBytes);
  }
  void commit() { ++committed_; }
  void wait(int groups);  // until at most so many are under way

 private:
  struct Copy {
    SharedRegion* region;
    std::int64_t offset;
    int bytes, group;
    unsigned char data[16];
  };
  void begin(SharedRegion& region, std::int64_t offset, const unsigned char* data, int bytes);
  void arrive(const Copy& copy);

  Executor& executor_;
  HostThread& thread_;
  std::vector<Copy> copies_;
  int committed_ = 0, arrived_ = 0;  // groups
};

}  // namespace twinbench::kernels::simt
