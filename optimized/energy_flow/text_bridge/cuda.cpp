// energy_flow.text_bridge, optimized on CUDA: the parts' kernels, one part after another on one stream; the host reads
// nothing between them.
#include "optimized/energy_flow/text_bridge/bridge.h"

namespace twinbench::energy_flow::text_bridge {

std::unique_ptr<Runnable> make_cuda(const NamedTensors& inputs, const Setting& setting) {
  const Device path = setting.device.takes_cuda_path() ? setting.device : Device::simt();
  return std::make_unique<Bridge>(inputs, setting, path);
}

}  // namespace twinbench::energy_flow::text_bridge
