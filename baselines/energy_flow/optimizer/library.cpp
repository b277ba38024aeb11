// Library variant of energy_flow.optimizer: LibTorch's clipping over lists of tensors and its fused AdamW.
#include "baselines/energy_flow/common/windows_in_turn.h"

namespace twinbench::energy_flow::optimizer {
namespace {

class Library final : public WindowsInTurn {
 public:
  Library(const NamedTensors& inputs, const Setting& setting) : WindowsInTurn(inputs, setting) { reset(); }

 protected:
  void arranged() override {
    updates_ = at::zeros({}, arena().values.options().dtype(at::kFloat));
    counts_.assign(arena().value.size(), updates_);
  }

  // Accumulated in fp64 as specified, for which ATen copies every tensor first. In fp32 it would be faster, miss the
  // bound of the norm, and overflow from 1e19 on.
  double norm_of(std::int64_t window) override {
    return at::linalg_vector_norm(at::stack(at::_foreach_norm(gradients(window), 2, at::kDouble)), 2).item<double>();
  }
  void scale(std::int64_t window, double by) override { at::_foreach_mul_(gradients(window), by); }
  void clear(std::int64_t window) override { at::_foreach_zero_(gradients(window)); }

  void update(std::int64_t window) override {
    updates_.fill_(static_cast<double>(applied()));
    at::_fused_adamw_(arena().value, gradients(window), arena().first, arena().second, {}, counts_, rate(), kBetaFirst,
                      kBetaSecond, weight_decay(), kAdamEpsilon, /*amsgrad=*/false, /*maximize=*/false);
  }

 private:
  at::Tensor updates_;              // how many have been applied
  std::vector<at::Tensor> counts_;  // the same for every tensor
};

}  // namespace

std::unique_ptr<Runnable> make_library(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Library>(inputs, setting);
}

}  // namespace twinbench::energy_flow::optimizer
