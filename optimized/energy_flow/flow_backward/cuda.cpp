// energy_flow.flow_backward, optimized on CUDA: both halves of the pass, or the first one alone without its tape.
#include "optimized/energy_flow/common/cuda_flow_pass.h"
#include "optimized/energy_flow/flow_backward/plan.h"

namespace twinbench::energy_flow::flow_backward {
namespace {

class CudaBackward final : public Plan {
 public:
  CudaBackward(const NamedTensors& inputs, const Setting& setting)
      : Plan(setting), pass_(inputs, setting, places(inputs)) {}

  void run() override {
    pass_.forward(samples_);
    if (backward_) pass_.backward();
  }

  NamedTensors outputs() override {
    if (backward_) pass_.unpack(results_, pass_.sums());
    return results_;
  }

 private:
  CudaFlowPass pass_;
};

}  // namespace

std::unique_ptr<Runnable> make_cuda(const NamedTensors& inputs, const Setting& setting) {
  return make_on_device<CudaBackward>(inputs, setting);
}

}  // namespace twinbench::energy_flow::flow_backward
