// Library variant of energy_flow.losses: LibTorch's mse_loss and its tape; the host reads nothing.
#include "baselines/energy_flow/common/taped_losses.h"

namespace twinbench::energy_flow::losses {
namespace {

class Library final : public TapedLosses {
 public:
  Library(const NamedTensors& inputs, const Setting& setting) : TapedLosses(inputs, setting, Way::kLibrary) {}

 private:
  at::Tensor mean_square(const at::Tensor& surface, const at::Tensor& target) const override {
    return at::mse_loss(surface, target);
  }
};

}  // namespace

std::unique_ptr<Runnable> make_library(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Library>(inputs, setting);
}

}  // namespace twinbench::energy_flow::losses
