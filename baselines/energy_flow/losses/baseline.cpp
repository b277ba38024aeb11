// Baseline of energy_flow.losses: difference, square and mean are operators of their own; the host reads every loss as
// soon as it is there, and once more for the log.
#include "baselines/energy_flow/common/taped_losses.h"

namespace twinbench::energy_flow::losses {
namespace {

class Baseline final : public TapedLosses {
 public:
  Baseline(const NamedTensors& inputs, const Setting& setting) : TapedLosses(inputs, setting, Way::kBaseline) {}

 private:
  at::Tensor mean_square(const at::Tensor& surface, const at::Tensor& target) const override {
    return at::mean(at::square(at::sub(surface, target)));
  }
  void computed(const at::Tensor& loss) override { latest_ = loss.item<double>(); }
  void log(const std::vector<at::Tensor>& losses) override {
    logged_.clear();
    for (const at::Tensor& loss : losses) logged_.push_back(loss.item<double>());
  }

  double latest_ = 0;
  std::vector<double> logged_;  // what the log would say
};

}  // namespace

std::unique_ptr<Runnable> make_baseline(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Baseline>(inputs, setting);
}

}  // namespace twinbench::energy_flow::losses
