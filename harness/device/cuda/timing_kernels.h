// Launchers of the timer's own kernels: hold the stream, stamp the clocks, walk a resident buffer, and load the units
// whose ceilings are measured. No CUDA headers. Each launch is asynchronous and throws CudaError where it is refused.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/stream.h"

namespace twinbench::cuda {

using kernels::Stream;

// In host memory that the device maps. The host writes `released`, the holding kernel `expired`; both are ticket
// numbers.
struct HoldFlags {
  std::uint32_t released = 0, expired = 0;
};

// One thread that waits until `released` reaches `ticket`, or until `limit_ns` is over: then it writes the ticket to
// `expired`.
void launch_hold(HoldFlags* device_flags, std::uint32_t ticket, std::uint64_t limit_ns, Stream stream);

// Both clocks as one multiprocessor reads them. A pair of stamps gives its mean clock rate between them.
struct ClockStamp {
  std::uint32_t taken = 0;  // 0: no block of the launch ran on multiprocessor 0
  std::uint64_t cycles = 0, nanoseconds = 0;
};

// `stamp` in device memory, its `taken` 0. Enough one-thread blocks that one of them lands on multiprocessor 0.
void launch_clock_stamp(ClockStamp* stamp, int multiprocessors, Stream stream);

// A ring of `lines` dependent reads past L1, each of the line that the one before named: chain[line * stride] is an
// index into chain. `end`: device memory, keeps the reads alive.
constexpr int kChainLines = 256, kChainStride = 1024;  // 256 lines in 1 MiB
void launch_chain_walk(const std::uint32_t* chain, int lines, std::uint32_t* end, Stream stream);

// Reads `bytes` (a multiple of 16) past L1. `end`: device memory, keeps the reads alive.
void launch_read(const void* memory, std::size_t bytes, int multiprocessors, std::uint32_t* end, Stream stream);

// Special functions: `blocks` blocks, `rounds` rounds. Does special_functions(blocks, rounds) base-two exponentials.
// `out`: one float in device memory.
void launch_special_functions(float* out, int blocks, int rounds, Stream stream);
double special_functions(int blocks, int rounds);

// Does nothing: the cost of a launch.
void launch_empty(Stream stream);

}  // namespace twinbench::cuda
