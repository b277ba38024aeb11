// energy_flow.text_bridge, optimized on the CPU: one pass of flows, one of texts, one decode of the samples that are
// due.
#include "optimized/energy_flow/text_bridge/bridge.h"

namespace twinbench::energy_flow::text_bridge {

std::unique_ptr<Runnable> make_cpu(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Bridge>(inputs, setting, setting.device);
}

}  // namespace twinbench::energy_flow::text_bridge
