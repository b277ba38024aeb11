// Optimized energy_flow.text_encoder on the CPU: all texts at once and no padding.
#include "optimized/energy_flow/common/cpu_text_encoder.h"
#include "optimized/energy_flow/text_encoder/encoder.h"

namespace twinbench::energy_flow::text_encoder {

std::unique_ptr<Runnable> make_cpu(const NamedTensors& inputs, const Setting& setting) {
  if (setting.dtype == Dtype::kFp64) return std::make_unique<Encoder<CpuTextEncoder<double>>>(inputs, setting);
  return std::make_unique<Encoder<CpuTextEncoder<float>>>(inputs, setting);
}

}  // namespace twinbench::energy_flow::text_encoder
