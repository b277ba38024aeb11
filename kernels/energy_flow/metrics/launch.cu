// Launches energy_flow.metrics' kernel.
//
// version | idea                                                                     | state
// 1       | a lane a slot of the record; the window's last launch writes to the host | in use: a launch a micro-step
// Predicted at 16 samples: 700 bytes read; so a launch, and once a window 256 bytes over the bus, which nobody awaits.
#include "kernels/common/simt_device.h"
#include "kernels/energy_flow/metrics/kernel.h"

namespace twinbench::energy_flow::metrics {

void launch(const RecordArguments& a, kernels::Stream stream) {
  simt::launch(MicroStepRecord{}, simt::grid(1), kRecordThreads, 0, stream, a);
}

}  // namespace twinbench::energy_flow::metrics
