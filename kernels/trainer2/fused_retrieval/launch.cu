// Launches trainer2.fused_retrieval's kernel.
//
// version | idea                                                              | state
// 1       | a block a part of the candidates; eight samples share a part of   | in use: bound by DRAM (H200), by L2
//         | the bank; the last block of a tile of samples merges its parts    | (RTX 5090)
// Predicted at 64 samples, 512 tokens, 2,048 slots of 256 columns, before it was written: 36.8 MB must be read, which
// is 8.6 us (H200) and 24 us (RTX 5090), besides 2.6 MB of partial results written and read; 88 MFLOP are 1.3 us; one
// launch. About 13 us on the H200, for a warp has at most eight of its 32 loads in flight. Modelled: 14.7 us, and
// 10.0 us on the RTX 5090, whose L2 holds all of it between runs.
#include "kernels/common/simt_device.h"
#include "kernels/trainer2/fused_retrieval/kernel.h"

namespace twinbench::trainer2::fused_retrieval {

void launch(const Arguments& a, kernels::Stream stream) {
  const auto aligned = [](const void* where) { return reinterpret_cast<std::uintptr_t>(where) % 16 == 0; };
  const bool wide = a.width % 4 == 0 && aligned(a.token_states) && aligned(a.bank_states) && aligned(a.mix);
  const dim3 grid = simt::grid(a.split.blocks);
  const std::int64_t shared = shared_bytes(a.axes, a.split.chunk, wide ? 4 : 1);
  if (wide && a.stored == Stored::kFloat) simt::launch(Retrieve{}, grid, kThreads, shared, stream, a);
  if (wide && a.stored == Stored::kHalf) simt::launch(RetrieveHalf{}, grid, kThreads, shared, stream, a);
  if (wide && a.stored == Stored::kBfloat) simt::launch(RetrieveBfloat{}, grid, kThreads, shared, stream, a);
  if (wide) return;
  if (a.stored == Stored::kFloat) simt::launch(RetrieveAnyWidth{}, grid, kThreads, shared, stream, a);
  if (a.stored == Stored::kHalf) simt::launch(RetrieveHalfAnyWidth{}, grid, kThreads, shared, stream, a);
  if (a.stored == Stored::kBfloat) simt::launch(RetrieveBfloatAnyWidth{}, grid, kThreads, shared, stream, a);
}

}  // namespace twinbench::trainer2::fused_retrieval
