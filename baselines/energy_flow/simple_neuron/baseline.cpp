// Baseline of energy_flow.simple_neuron: one flow at a time, nine operators each, every one with its own temporary.
#include <ATen/ATen.h>

#include "baselines/common/tape.h"

namespace twinbench::energy_flow::simple_neuron {
namespace {

class Baseline : public TapeBaseline {
 public:
  Baseline(const NamedTensors& inputs, const Setting& setting) : TapeBaseline(inputs, setting) { make_leaves(); }

 private:
  // position [1, 3], energy [1, 1] -> features [1, outputs]
  at::Tensor one_flow(const at::Tensor& position, const at::Tensor& energy) const {
    const at::Tensor coordinates = linear(position, "coordinate_weight", "coordinate_bias");
    const at::Tensor state = at::cat({coordinates, energy}, 1);
    const at::Tensor first = at::gelu(layer_norm(linear(state, "weight_1", "bias_1"), "gain_1", "shift_1"));
    const at::Tensor second = at::gelu(layer_norm(linear(first, "weight_2", "bias_2"), "gain_2", "shift_2"));
    return linear(second, "weight_3", "bias_3");
  }

  void compute() override {
    const at::Tensor &position = inputs_["position"], &energy = inputs_["energy"];
    if (position.size(0) == 0)
      return result("features", position.new_empty({0, setting_.size("outputs")}).requires_grad_(backward_));
    const auto positions = position.split(1), energies = energy.split(1);  // views; one node each on the tape
    std::vector<at::Tensor> rows;
    for (std::size_t flow = 0; flow < positions.size(); ++flow)
      rows.push_back(one_flow(positions[flow], energies[flow]));
    result("features", at::cat(rows, 0));
  }
};

}  // namespace

std::unique_ptr<Runnable> make_baseline(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Baseline>(inputs, setting);
}

}  // namespace twinbench::energy_flow::simple_neuron
