// Optimized trainer2.field_dynamics on CUDA: one kernel a window, 0 reads.
#include "optimized/common/cuda.h"
#include "optimized/trainer2/field_dynamics/window.h"

namespace twinbench::trainer2::field_dynamics {
namespace {

class CudaWindow final : public WindowState {
 public:
  using WindowState::WindowState;

  void run() override { launch(arguments(), stream()); }
};

}  // namespace

std::unique_ptr<Runnable> make_cuda(const NamedTensors& inputs, const Setting& setting) {
  return make_on_device<CudaWindow>(inputs, setting);
}

}  // namespace twinbench::trainer2::field_dynamics
