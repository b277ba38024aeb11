// Launches energy_flow.optimizer's kernels.
//
// version | idea                                                                        | state
// 1       | norm and decision by the last block; a block a piece, loads before its stores | in use: bound by memory
// Predicted at 18 M parameters: 72 MB read for the norm, 576 MB moved by the update (gradients are written too,
// clipped or cleared), 648 MB in all: 151 us at an H200's 4.3 TB/s, 418 us at 1.55 TB/s; two launches of about 3 us
// beside that. Modelled: 171 and 424 us; the floors are 134 and 372.
#include "kernels/common/simt_device.h"
#include "kernels/energy_flow/optimizer/kernel.h"

namespace twinbench::energy_flow::optimizer {

void launch(const Arguments& a, kernels::Stream stream) {
  // One block at least: without a piece the window is decided all the same.
  const std::int64_t blocks = a.count < 1 ? 1 : a.count < kernels::kMostNormBlocks ? a.count : kernels::kMostNormBlocks;
  simt::launch(Norm{}, simt::grid(blocks), kThreads, 0, stream, a);
  simt::launch(Update{}, simt::grid(a.count), kThreads, 0, stream, a);
}

}  // namespace twinbench::energy_flow::optimizer
