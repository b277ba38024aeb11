// Launches flow storage's kernel.
//
// version | idea                                                      | state
// 1       | 32 slots a block, a warp a row of hidden state            | replaced: 156 blocks, modelled 2.3x the floor
// 2       | 16 slots a block; a tag says whose a slot is, so that a   | in use: bound by hidden states
//         | forward begins without a launch                           |
// Modelled for three steps of 16 samples of 312 slots, 2 x 512 of hidden state: 29 / 63 us (H200 / RTX 5090), floor
// 15.4 / 42.7; stored in bf16 24 / 49 us, floor 13.0 / 36.1.
#include "kernels/common/grid.h"
#include "kernels/common/simt_device.h"
#include "kernels/energy_flow/flow_storage/kernel.h"

namespace twinbench::energy_flow::flow_storage {

void launch_step(const Step& a, kernels::Stream stream) {
  simt::launch(StoreStep{}, simt::grid(kernels::blocks_of(a.extents.capacity(), kSlots)), kThreads, 0, stream, a);
}

}  // namespace twinbench::energy_flow::flow_storage
