// Optimized energy_flow.fused_attention on CUDA: one kernel forward, two back, no matrix of scores in memory.
#include "optimized/common/cuda.h"
#include "kernels/energy_flow/fused_attention/arguments.h"
#include "optimized/energy_flow/fused_attention/attention.h"

namespace twinbench::energy_flow::fused_attention {
namespace {

class CudaAttention final : public FusedAttention<float> {
 public:
  using FusedAttention::FusedAttention;
  void run_forward() override { launch(attention_, stream()); }
  void run_backward() override { launch_backward(attention_, stream()); }
};

}  // namespace

std::unique_ptr<Runnable> make_cuda(const NamedTensors& inputs, const Setting& setting) {
  return make_on_device<CudaAttention>(inputs, setting);
}

}  // namespace twinbench::energy_flow::fused_attention
