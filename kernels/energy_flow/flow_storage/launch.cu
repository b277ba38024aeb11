// Launches flow storage's kernel.
//
// version | idea                                                                    | state
// 1       | 32 slots a block, a warp a row of hidden state; a tag says whose a slot is | in use: bound by hidden states
#include "kernels/common/grid.h"
#include "kernels/common/simt_device.h"
#include "kernels/energy_flow/flow_storage/kernel.h"

namespace twinbench::energy_flow::flow_storage {

void launch_step(const Step& a, kernels::Stream stream) {
  simt::launch(StoreStep{}, simt::grid(kernels::blocks_of(a.extents.capacity(), kSlots)), kThreads, 0, stream, a);
}

}  // namespace twinbench::energy_flow::flow_storage
