// energy_flow.flow_movement, optimized on CUDA: one kernel a pass, no read, nothing allocated.
#include "optimized/common/cuda.h"
#include "optimized/energy_flow/flow_movement/step.h"

namespace twinbench::energy_flow::flow_movement {
namespace {

class CudaStep final : public Step<float> {
 public:
  CudaStep(const NamedTensors& inputs, const Setting& setting) : Step(inputs, setting) {
    tally_ = counters(setting.size("samples") * kOutcomes + 1);
    forward_.tally = data<std::int32_t>(tally_);
  }

 private:
  void move(const ForwardArguments<float>& a) override { launch_forward(a, stream()); }
  void move_back(const BackwardArguments<float>& a) override { launch_backward(a, stream()); }

  at::Tensor tally_;
};

}  // namespace

std::unique_ptr<Runnable> make_cuda(const NamedTensors& inputs, const Setting& setting) {
  return make_on_device<CudaStep>(inputs, setting);
}

}  // namespace twinbench::energy_flow::flow_movement
