// Baseline of energy_flow.simple_neuron: one flow at a time, nine operators each, every one with its own temporary.
#include <ATen/ATen.h>

#include "baselines/common/autograd_baseline.h"

namespace twinbench::energy_flow::simple_neuron {
namespace {

constexpr double kLayerNormEpsilon = 1e-5;
const std::vector<std::string> kDifferentiable = {
    "position", "energy", "coordinate_weight", "coordinate_bias", "weight_1", "bias_1", "gain_1",
    "shift_1",  "weight_2", "bias_2",          "gain_2",          "shift_2",  "weight_3", "bias_3"};

class SimpleNeuronBaseline : public AutogradBaseline {
 public:
  SimpleNeuronBaseline(const NamedTensors& inputs, const Setting& setting)
      : AutogradBaseline(inputs, setting, "features", kDifferentiable), round_(setting.dtype == Dtype::kBf16) {
    if (round_)
      for (const char* name : {"coordinate_weight", "weight_1", "weight_2", "weight_3"}) inputs_.set(name, rounded_to_bf16(inputs_[name]));
    make_leaves();
  }

 private:
  at::Tensor linear(const at::Tensor& x, const char* weight, const char* bias) const {
    return baseline_linear(x, inputs_[weight], inputs_[bias], round_);
  }

  at::Tensor normalized(const at::Tensor& x, const char* gain, const char* shift) const {
    return at::layer_norm(x, {x.size(1)}, inputs_[gain], inputs_[shift], kLayerNormEpsilon);
  }

  // position [1, 3], energy [1, 1] -> features [1, outputs]
  at::Tensor one_flow(const at::Tensor& position, const at::Tensor& energy) const {
    const at::Tensor coordinates = linear(position, "coordinate_weight", "coordinate_bias");
    const at::Tensor state = at::cat({coordinates, energy}, 1);
    const at::Tensor first = at::gelu(normalized(linear(state, "weight_1", "bias_1"), "gain_1", "shift_1"));
    const at::Tensor second = at::gelu(normalized(linear(first, "weight_2", "bias_2"), "gain_2", "shift_2"));
    return linear(second, "weight_3", "bias_3");
  }

  at::Tensor result() override {
    const at::Tensor &position = inputs_["position"], &energy = inputs_["energy"];
    if (position.size(0) == 0) return position.new_empty({0, inputs_["weight_3"].size(0)}).requires_grad_(backward_);
    const auto positions = position.split(1), energies = energy.split(1);  // views; one node each on the tape
    std::vector<at::Tensor> rows;
    for (std::size_t flow = 0; flow < positions.size(); ++flow)
      rows.push_back(one_flow(positions[flow], energies[flow]));
    return at::cat(rows, 0);
  }

  const bool round_;
};

}  // namespace

std::unique_ptr<Runnable> make_baseline(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<SimpleNeuronBaseline>(inputs, setting);
}

}  // namespace twinbench::energy_flow::simple_neuron
