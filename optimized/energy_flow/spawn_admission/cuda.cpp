// energy_flow.spawn_admission, optimized on CUDA: one kernel a pass, no read, nothing allocated.
#include "optimized/common/cuda.h"
#include "optimized/energy_flow/spawn_admission/admitting.h"

namespace twinbench::energy_flow::spawn_admission {
namespace {

class CudaAdmitting final : public Admitting<float> {
 public:
  using Admitting::Admitting;

 private:
  void admit(const ForwardArguments<float>& a) override { launch_forward(a, stream()); }
  void admit_back(const BackwardArguments<float>& a) override { launch_backward(a, stream()); }
};

}  // namespace

std::unique_ptr<Runnable> make_cuda(const NamedTensors& inputs, const Setting& setting) {
  return make_on_device<CudaAdmitting>(inputs, setting);
}

}  // namespace twinbench::energy_flow::spawn_admission
