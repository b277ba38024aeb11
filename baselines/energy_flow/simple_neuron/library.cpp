// energy_flow.simple_neuron, library: LibTorch's own operators over all flows at once.
#include <ATen/ATen.h>

#include "baselines/common/tape.h"

namespace twinbench::energy_flow::simple_neuron {
namespace {

class Library final : public TapeBaseline {
 public:
  Library(const NamedTensors& inputs, const Setting& setting) : TapeBaseline(inputs, setting, Way::kLibrary) {
    make_leaves();
  }

 private:
  void compute() override {
    const at::Tensor coordinates = linear(inputs_["position"], "coordinate_weight", "coordinate_bias");
    const at::Tensor state = at::cat({coordinates, inputs_["energy"]}, 1);
    const at::Tensor first = at::gelu(layer_norm(linear(state, "weight_1", "bias_1"), "gain_1", "shift_1"));
    const at::Tensor second = at::gelu(layer_norm(linear(first, "weight_2", "bias_2"), "gain_2", "shift_2"));
    result("features", linear(second, "weight_3", "bias_3"));
  }
};

}  // namespace

std::unique_ptr<Runnable> make_library(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Library>(inputs, setting);
}

}  // namespace twinbench::energy_flow::simple_neuron
