// Optimized energy_flow.text_encoder on CUDA: library products over the tokens of all texts, kernels between them.
#include "optimized/energy_flow/common/cuda_text_encoder.h"
#include "optimized/energy_flow/text_encoder/encoder.h"

namespace twinbench::energy_flow::text_encoder {

std::unique_ptr<Runnable> make_cuda(const NamedTensors& inputs, const Setting& setting) {
  return make_on_device<Encoder<CudaTextEncoder>>(inputs, setting);
}

}  // namespace twinbench::energy_flow::text_encoder
