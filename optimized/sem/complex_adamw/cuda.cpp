// Optimized sem.complex_adamw on CUDA: two kernels a step; the decision stays on the device, 0 reads.
#include "optimized/common/cuda.h"
#include "optimized/sem/complex_adamw/plan.h"

namespace twinbench::sem::complex_adamw {
namespace {

class CudaSteps final : public Plan {
 public:
  using Plan::Plan;

  void take(const Arguments& a) override { launch(a, stream()); }
};

}  // namespace

std::unique_ptr<Runnable> make_cuda(const NamedTensors& inputs, const Setting& setting) {
  return make_on_device<CudaSteps>(inputs, setting);
}

}  // namespace twinbench::sem::complex_adamw
