// energy_flow.flow_compaction, optimized on CUDA: three kernels, nothing read back, nothing allocated.
#include "optimized/common/cuda.h"
#include "optimized/energy_flow/flow_compaction/plan.h"

namespace twinbench::energy_flow::flow_compaction {
namespace {

class CudaCompaction final : public Plan {
 public:
  using Plan::Plan;
  void run() override { launch(arguments_, stream()); }
};

}  // namespace

std::unique_ptr<Runnable> make_cuda(const NamedTensors& inputs, const Setting& setting) {
  return make_on_device<CudaCompaction>(inputs, setting);
}

}  // namespace twinbench::energy_flow::flow_compaction
