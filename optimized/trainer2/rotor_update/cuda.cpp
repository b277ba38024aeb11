// Optimized trainer2.rotor_update on CUDA: one kernel an update, 0 reads.
#include "optimized/common/cuda.h"
#include "optimized/trainer2/rotor_update/plan.h"

namespace twinbench::trainer2::rotor_update {
namespace {

class CudaUpdate final : public Plan {
 public:
  using Plan::Plan;

  void run() override {
    for (std::int64_t step = 0; step < steps(); ++step) launch(of_step(step), stream());
  }
};

}  // namespace

std::unique_ptr<Runnable> make_cuda(const NamedTensors& inputs, const Setting& setting) {
  return make_on_device<CudaUpdate>(inputs, setting);
}

}  // namespace twinbench::trainer2::rotor_update
