// energy_flow.energy_carrier, library: LibTorch's own gru_cell over all flows at once, guards as tensor operators.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "src/component.h"
#include "src/rounding.h"

namespace twinbench::energy_flow::energy_carrier {
namespace {

constexpr double kGuardLimit = 10.0;

at::Tensor guarded(const at::Tensor& values) { return at::nan_to_num(values, 0.0).clamp_(-kGuardLimit, kGuardLimit); }

class LibraryCarrier final : public Runnable {
 public:
  LibraryCarrier(const NamedTensors& inputs, const Setting& setting)
      : layers_(setting.size("layers")), round_(setting.dtype == Dtype::kBf16) {
    for (const auto& [name, tensor] : inputs)
      inputs_.set(name, (round_ && name.starts_with("weight") ? rounded(tensor, Dtype::kBf16) : tensor).contiguous());
  }

  void run() override {
    const at::NoGradGuard no_grad;
    const at::Tensor raw = at::cat({inputs_["features"], inputs_["energy"].unsqueeze(1)}, 1);
    const at::Tensor& hidden = inputs_["hidden"];
    guard_hits_ = at::isnan(raw).sum(1).add_(at::isnan(hidden).sum(at::IntArrayRef{0, 2})).to(at::kInt);
    at::Tensor x = guarded(raw);
    const at::Tensor h = guarded(hidden);
    std::vector<at::Tensor> next;
    for (std::int64_t l = 0; l < layers_; ++l) {
      x = cell(x, h.select(0, l), std::to_string(l));
      next.push_back(x);
    }
    next_hidden_ = guarded(at::stack(next));
  }

  NamedTensors outputs() override {
    return {
        {"output", next_hidden_.select(0, layers_ - 1)}, {"next_hidden", next_hidden_}, {"guard_hits", guard_hits_}};
  }

 private:
  at::Tensor cell(const at::Tensor& x, const at::Tensor& h, const std::string& layer) const {
    const at::Tensor& weight_input = inputs_["weight_input_" + layer];
    const at::Tensor& weight_hidden = inputs_["weight_hidden_" + layer];
    const at::Tensor& bias_input = inputs_["bias_input_" + layer];
    const at::Tensor& bias_hidden = inputs_["bias_hidden_" + layer];
    if (!round_) return at::gru_cell(x, h, weight_input, weight_hidden, bias_input, bias_hidden);
    // gru_cell cannot round the products' operand and keep the fp32 state: the same operators, spelled out.
    auto from_input = at::linear(rounded(x, Dtype::kBf16), weight_input, bias_input).chunk(3, 1);
    auto from_hidden = at::linear(rounded(h, Dtype::kBf16), weight_hidden, bias_hidden).chunk(3, 1);
    const at::Tensor reset = from_hidden[0].add_(from_input[0]).sigmoid_();
    const at::Tensor update = from_hidden[1].add_(from_input[1]).sigmoid_();
    const at::Tensor candidate = from_input[2].add(from_hidden[2].mul_(reset)).tanh_();
    return (h - candidate).mul_(update).add_(candidate);
  }

  std::int64_t layers_;
  bool round_;
  NamedTensors inputs_;
  at::Tensor next_hidden_, guard_hits_;
};

}  // namespace

std::unique_ptr<Runnable> make_library(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<LibraryCarrier>(inputs, setting);
}

}  // namespace twinbench::energy_flow::energy_carrier
