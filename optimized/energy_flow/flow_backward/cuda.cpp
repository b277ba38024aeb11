// energy_flow.flow_backward, optimized on CUDA: both halves of the pass, or the first one alone without its tape.
#include "optimized/energy_flow/common/cuda_flow_pass.h"
#include "src/energy_flow/common/flow_work.h"

namespace twinbench::energy_flow::flow_backward {
namespace {

class CudaBackward final : public Runnable {
 public:
  CudaBackward(const NamedTensors& inputs, const Setting& setting)
      : samples_(setting.size("samples")),
        backward_(setting.backward()),
        results_(zero_results(setting)),
        pass_(inputs, setting, places(inputs)) {}

  void run() override {
    pass_.forward(samples_);
    if (backward_) pass_.backward();
  }

  NamedTensors outputs() override {
    if (backward_) pass_.unpack(results_, pass_.sums());
    return results_;
  }

 private:
  FlowPlaces places(const NamedTensors& inputs) const {
    FlowPlaces of{.initial_energy = inputs["initial_energy"].contiguous(),
                  .sample_key = inputs["sample_key"].contiguous()};
    if (backward_)
      of.grad_surface = inputs["grad_surface"].contiguous(), of.grad_initial_energy = results_["grad_initial_energy"],
      of.tape_bytes = results_["work"].narrow(0, kTapeBytes, 1);
    else
      of.surface = results_["surface"], of.margin = results_["margin"];
    return of;
  }

  const std::int64_t samples_;
  const bool backward_;
  NamedTensors results_;
  CudaFlowPass pass_;
};

}  // namespace

std::unique_ptr<Runnable> make_cuda(const NamedTensors& inputs, const Setting& setting) {
  return make_on_device<CudaBackward>(inputs, setting);
}

}  // namespace twinbench::energy_flow::flow_backward
