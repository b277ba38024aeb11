// energy_flow.flow_placement, optimized on CUDA: one kernel a pass, no read, nothing allocated.
#include "optimized/common/cuda.h"
#include "optimized/energy_flow/flow_placement/placement.h"

namespace twinbench::energy_flow::flow_placement {
namespace {

class CudaPlacement final : public Placement<float> {
 public:
  using Placement::Placement;

 private:
  void place(const ForwardArguments<float>& a) override { launch_forward(a, stream()); }
  void place_back(const BackwardArguments<float>& a) override { launch_backward(a, stream()); }
};

}  // namespace

std::unique_ptr<Runnable> make_cuda(const NamedTensors& inputs, const Setting& setting) {
  return make_on_device<CudaPlacement>(inputs, setting);
}

}  // namespace twinbench::energy_flow::flow_placement
