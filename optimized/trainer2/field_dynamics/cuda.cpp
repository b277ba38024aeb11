// Optimized trainer2.field_dynamics on CUDA: one kernel a window, 0 reads.
#include "optimized/common/cuda.h"
#include "optimized/trainer2/field_dynamics/window.h"

namespace twinbench::trainer2::field_dynamics {
namespace {

class CudaWindow final : public WindowState {
 public:
  CudaWindow(const NamedTensors& inputs, const Setting& setting) : WindowState(inputs, setting) {
    const std::int64_t elements = setting.size("width") * setting.size("height") * setting.size("dimension");
    if (elements > kMostElements)
      throw Error(ErrorKind::kOutOfRange, "width * height * dimension", std::to_string(elements),
                  "at most " + std::to_string(kMostElements) + ": a block holds one row of the field");
  }

  void run() override { launch(arguments(), stream()); }
};

}  // namespace

std::unique_ptr<Runnable> make_cuda(const NamedTensors& inputs, const Setting& setting) {
  return make_on_device<CudaWindow>(inputs, setting);
}

}  // namespace twinbench::trainer2::field_dynamics
