// Launches the stop's kernel.
//
// version | idea                                            | state
// 1       | a block a batch, state in place, a pinned flag   | in use: a launch a step
// Predicted for 64 samples: 3 KB moved and one division in double; so a launch.
#include "kernels/common/simt_device.h"
#include "kernels/energy_flow/adaptive_stop/kernel.h"

namespace twinbench::energy_flow::adaptive_stop {

void launch_decide(const Arguments& a, kernels::Stream stream) {
  if (a.samples > 0) simt::launch(Decide{}, simt::grid(1), kThreads, 0, stream, a);
}

}  // namespace twinbench::energy_flow::adaptive_stop
