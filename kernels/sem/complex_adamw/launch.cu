// Launches sem.complex_adamw's kernels.
//
// version | idea                                                                        | state
// 1       | norm and decision by the last block; a block a piece, loads before its stores | in use: bound by memory
// Predicted at 29.9 M parameters: 120 MB read for the norm, 947 MB moved by the update, 1.07 GB in all: 248 us at an
// H200's 4.3 TB/s, 690 us at 1.55 TB/s; two launches of about 3 us beside that. Modelled: 285 and 700 us.
// With noise, two launches as well; a normal for every parameter is Philox' ten rounds for each four, two logarithms
// and turns, four roots and quotients. At 4.35 M parameters 49.1 us modelled instead of 43.0 (H200: 74 % of copy
// bandwidth, where 80 was asked; the schedulers' issue is the limit) and 103.8 instead of 102.1 (RTX 5090: 97 %).
#include "kernels/common/simt_device.h"
#include "kernels/sem/complex_adamw/kernel.h"

namespace twinbench::sem::complex_adamw {

void launch(const Arguments& a, kernels::Stream stream) {
  // One block at least: without a piece the step is decided all the same.
  const std::int64_t blocks = a.count < 1 ? 1 : a.count < kMostNormBlocks ? a.count : kMostNormBlocks;
  simt::launch(Norm{}, simt::grid(blocks), kThreads, 0, stream, a);
  if (a.rule.temperature > 0)
    simt::launch(NoisyUpdate{}, simt::grid(a.count), kThreads, 0, stream, a);
  else
    simt::launch(Update{}, simt::grid(a.count), kThreads, 0, stream, a);
}

}  // namespace twinbench::sem::complex_adamw
