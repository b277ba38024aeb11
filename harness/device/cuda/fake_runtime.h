// For tests only: a CUDA runtime without a card, linked in the place of the real one. Streams queue what they are given
// and do it when somebody waits for them, the default stream last, so that a missing order shows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace twinbench::fake {

struct CudaRuntime {
  // What the device says of itself.
  bool kills_long_kernels = false;  // a display's watchdog
  std::size_t cache_bytes = 1 << 20;
  // The error that the next cudaGetLastError gives, as an earlier kernel leaves it behind; 0: none.
  int pending_error = 0;
  std::string refuse;  // a function that fails whenever it is called, by name
  // A stream under capture refuses to be waited for, as the real one does.
  bool capturing = false;

  // What was asked of it.
  std::map<std::string, int> calls;
  std::vector<std::uint64_t> hold_limits_ns;
  std::vector<std::size_t> dirty_at_start;  // bytes of the cache that wait for their way to memory, at each start mark
  bool illegal_address = false;             // a kernel followed an index out of its memory
  int graphs = 0, executables = 0, blocks = 0, events = 0;  // alive; blocks: of memory
};

CudaRuntime& cuda_runtime();
void reset_cuda_runtime();  // as new; nothing queued

// A kernel launch of the test's own, on a stream.
void queue_kernel(void* stream);

}  // namespace twinbench::fake
