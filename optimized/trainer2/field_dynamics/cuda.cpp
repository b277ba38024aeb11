// Optimized trainer2.field_dynamics on CUDA: one kernel a window, 0 reads.
#include <ATen/ATen.h>

#include "optimized/common/cuda.h"
#include "optimized/trainer2/field_dynamics/window.h"

namespace twinbench::trainer2::field_dynamics {
namespace {

class CudaWindow final : public WindowState {
 public:
  CudaWindow(const NamedTensors& inputs, const Setting& setting)
      : WindowState(inputs, setting), launched_(arguments()) {
    launched_.split = Split::of(launched_.width, launched_.height, launched_.dimension);
    const auto floats = inputs["force"].options();
    part_sums_ = at::empty({launched_.dimension, launched_.split.parts, launched_.steps, 2}, floats);
    finished_ = at::zeros({launched_.dimension}, floats.dtype(at::kInt));
    launched_.part_sums = data<float>(part_sums_);
    launched_.finished = reinterpret_cast<unsigned*>(data<std::int32_t>(finished_));
  }

  void run() override { launch(launched_, stream()); }

 private:
  at::Tensor part_sums_, finished_;
  Arguments launched_;
};

}  // namespace

std::unique_ptr<Runnable> make_cuda(const NamedTensors& inputs, const Setting& setting) {
  return make_on_device<CudaWindow>(inputs, setting);
}

}  // namespace twinbench::trainer2::field_dynamics
