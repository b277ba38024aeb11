// Launches trainer2.rotor_update's kernel.
//
// version | idea                                                           | state
// 1       | one warp, a lane a plane, wrap and report in the same pass    | in use: bound by launch and load latency
// Predicted: one launch, three dependent loads (axis, component, angle), two warp sums; about 3 us whatever the planes.
#include "kernels/common/simt_device.h"
#include "kernels/trainer2/rotor_update/kernel.h"

namespace twinbench::trainer2::rotor_update {

void launch(const Arguments& a, kernels::Stream stream) {
  simt::launch(Update{}, simt::grid(1), kThreads, 0, stream, a);
}

}  // namespace twinbench::trainer2::rotor_update
