// The asynchronous copies that one thread of the host run has under way.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "harness/simt/shared_memory.h"

namespace twinbench::kernels::simt {

class AsyncCopies {
 public:
  AsyncCopies(Executor& executor, HostThread& thread) : executor_(executor), thread_(thread) {}
  AsyncCopies(const AsyncCopies&) = delete;
  AsyncCopies& operator=(const AsyncCopies&) = delete;
  ~AsyncCopies();  // copies that nobody waited for are a finding

  // From now until the wait nobody has written the destination.
  template <class Chunk>
  void add(const SharedPointer<Chunk>& to, const unsigned char* data, int bytes) {
    begin(to.region(), to.offset(), data, bytes);
  }
  void commit();
  void wait(int groups);  // until at most so many are under way

 private:
  struct Copy {
    SharedRegion* region;
    std::int64_t offset;
    int bytes;
    unsigned char data[16];
  };
  void begin(SharedRegion& region, std::int64_t offset, const unsigned char* data, int bytes);

  Executor& executor_;
  HostThread& thread_;
  std::vector<Copy> open_;
  std::deque<std::vector<Copy>> groups_;
};

}  // namespace twinbench::kernels::simt
