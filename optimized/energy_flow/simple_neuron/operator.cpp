// twinbench::energy_flow_simple_neuron: position and energy of every flow to its features.
#include <ATen/ATen.h>

#include "optimized/common/operators.h"

namespace twinbench::energy_flow::simple_neuron {
namespace {

NamedTensors empty_results(const NamedTensors& inputs) {
  const at::Tensor& position = inputs["position"];
  return {{"features", at::empty_symint({position.sym_size(0), inputs["weight_3"].sym_size(0)}, position.options())}};
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(twinbench, library) {
  register_operator(library,
                    {"energy_flow.simple_neuron",
                     "Tensor position, Tensor energy, Tensor coordinate_weight, Tensor coordinate_bias, Tensor weight_1, "
                     "Tensor bias_1, Tensor gain_1, Tensor shift_1, Tensor weight_2, Tensor bias_2, Tensor gain_2, "
                     "Tensor shift_2, Tensor weight_3, Tensor bias_3, *, bool bf16_products=False",
                     "Tensor features",
                     {},
                     &empty_results});
}

}  // namespace twinbench::energy_flow::simple_neuron
