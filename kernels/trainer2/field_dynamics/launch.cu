// Launches trainer2.field_dynamics' kernel.
//
// version | idea                                                                  | state
// 1       | a row a block, the whole window on the chip, each force computed once | in use: bound by shared memory
// Predicted at 8 x 8 cells, 16 x 16 numbers and 64 steps: 16 blocks of 1,024 complex numbers; a step reads five and
// writes one of 8 bytes for each, 12 wavefronts a warp of elements, so 384 cycles, and two barriers: 64 steps in about
// 15 us. Modelled: 36 us (H200), bound by instruction issue on 16 of 132 multiprocessors; next: columns on more blocks.
#include "kernels/common/simt_device.h"
#include "kernels/trainer2/field_dynamics/kernel.h"

namespace twinbench::trainer2::field_dynamics {

void launch(const Arguments& a, kernels::Stream stream) {
  simt::launch(Window{}, simt::grid(a.dimension), kThreads, shared_bytes(a.width, a.height, a.dimension), stream, a);
}

}  // namespace twinbench::trainer2::field_dynamics
