// Launches trainer2.metric_update's kernel.
//
// version | idea                                                             | state
// 1       | one warp; mean, layers of planes and decision in shared memory | in use: bound by launch and load latency
// Predicted: one launch; a load of each input, one barrier a layer (two at 8 axes and 6 planes), three warp
// reductions: about 3 us, of which 2 are the launch.
#include "kernels/common/simt_device.h"
#include "kernels/trainer2/metric_update/kernel.h"

namespace twinbench::trainer2::metric_update {

void launch(const Arguments& a, kernels::Stream stream) {
  simt::launch(Update{}, simt::grid(1), kThreads, 0, stream, a);
}

}  // namespace twinbench::trainer2::metric_update
