// What one launch of a kernel did, counted: accesses by place in the kernel, and totals of the launch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/simt/report.h"
#include "harness/simt/shared_memory.h"

namespace twinbench::kernels::simt {

// One access of the kernel's code. Units are sectors of 32 bytes of global memory, wavefronts of shared memory.
struct SiteCounts {
  const void* site = nullptr;  // where in the code it returns to
  bool shared = false;
  Access access = Access::kRead;
  std::uint32_t bytes = 0;     // a lane's
  std::uint64_t requests = 0;  // of warps
  std::uint64_t lanes = 0;     // that took part, over all requests
  std::uint64_t units = 0, ideal = 0;
  std::uint64_t unique_bytes = 0;    // summed over the requests
  std::uint64_t repeated_bytes = 0;  // of global reads: those that the same warp had read or written before
  std::uint64_t misaligned = 0;      // lanes whose address is no multiple of `bytes`
  int most_on_one_address = 0;       // lanes of one request; of interest where they are atomic
};

struct LaunchCounts {
  std::string kernel;
  Index3 grid{}, block{};
  std::int64_t static_shared_bytes = 0, dynamic_shared_bytes = 0;
  std::uint64_t blocks = 0, threads = 0, barriers = 0, warp_operations = 0;
  std::uint64_t bf16_products = 0, tf32_products = 0, matrix_loads = 0;  // of warps, among the warp operations
  std::uint64_t asynchronous_copies = 0;                                 // of threads
  std::uint64_t read_sectors = 0, written_sectors = 0;                   // of global memory, each once (see BlockWords)
  double read_sectors_of_grid = 0;  // likewise, where the blocks that ran stand for all of the grid
  std::vector<SiteCounts> sites;    // ascending
};

}  // namespace twinbench::kernels::simt
