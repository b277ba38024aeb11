// Optimized energy_flow.losses on CUDA: one kernel, which leaves all losses on the device; 0 reads.
#include "optimized/common/cuda.h"
#include "optimized/energy_flow/losses/plan.h"

namespace twinbench::energy_flow::losses {
namespace {

class CudaLosses final : public Plan<float> {
 public:
  CudaLosses(const NamedTensors& inputs, const Setting& setting)
      : Plan(inputs, setting),
        partial_(at::empty({2 * kMostLossBlocks}, inputs["surface"].options().dtype(at::kDouble))),
        arrived_(at::zeros({1}, inputs["surface"].options().dtype(at::kInt))),
        arguments_{.energy = energy_,
                   .encoder = encoder_,
                   .weight = weight_,
                   .upstream = upstream_,
                   .losses = places_,
                   .partial = data<double>(partial_),
                   .arrived = reinterpret_cast<unsigned*>(data<std::int32_t>(arrived_))} {}

  // The texts are the host's: what it makes of them travels with the launch.
  void run() override {
    arguments_.decoder = overlap_.loss();
    launch(arguments_, stream());
  }

 private:
  at::Tensor partial_, arrived_;
  SurfaceLossArguments arguments_;
};

}  // namespace

std::unique_ptr<Runnable> make_cuda(const NamedTensors& inputs, const Setting& setting) {
  return make_on_device<CudaLosses>(inputs, setting);
}

}  // namespace twinbench::energy_flow::losses
