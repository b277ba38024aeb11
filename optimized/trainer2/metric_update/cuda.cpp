// Optimized trainer2.metric_update on CUDA: one kernel an update decides, updates and reports; 0 reads.
#include "optimized/common/cuda.h"
#include "optimized/trainer2/metric_update/plan.h"

namespace twinbench::trainer2::metric_update {
namespace {

class CudaUpdate final : public Plan {
 public:
  using Plan::Plan;

  void update(const Arguments& a) override { launch(a, stream()); }
};

}  // namespace

std::unique_ptr<Runnable> make_cuda(const NamedTensors& inputs, const Setting& setting) {
  return make_on_device<CudaUpdate>(inputs, setting);
}

}  // namespace twinbench::trainer2::metric_update
