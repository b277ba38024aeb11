// Optimized energy_flow.optimizer on CUDA: two kernels a window; decision and schedule stay on the device, 0 reads.
#include "optimized/common/cuda.h"
#include "optimized/energy_flow/optimizer/plan.h"

namespace twinbench::energy_flow::optimizer {
namespace {

class CudaWindows final : public Plan {
 public:
  using Plan::Plan;

  void take(const Arguments& a) override { launch(a, stream()); }
};

}  // namespace

std::unique_ptr<Runnable> make_cuda(const NamedTensors& inputs, const Setting& setting) {
  return make_on_device<CudaWindows>(inputs, setting);
}

}  // namespace twinbench::energy_flow::optimizer
