// twinbench::energy_flow_energy_carrier: the gated recurrent unit of all flows, one step, any number of layers.
#include <ATen/ATen.h>

#include "optimized/common/operators.h"

namespace twinbench::energy_flow::energy_carrier {
namespace {

NamedTensors empty_results(const NamedTensors& inputs) {
  const at::Tensor& hidden = inputs["hidden"];
  const c10::SymInt flows = hidden.sym_size(1), width = hidden.sym_size(2);
  return {{"output", at::empty_symint({flows, width}, hidden.options())},
          {"next_hidden", at::empty_symint({hidden.sym_size(0), flows, width}, hidden.options())},
          {"guard_hits", at::empty_symint({flows}, hidden.options().dtype(at::kInt))}};
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(twinbench, library) {
  register_operator(library, {"energy_flow.energy_carrier",
                              "Tensor features, Tensor energy, Tensor hidden, Tensor[] weight_input, Tensor[] weight_hidden, "
                              "Tensor[] bias_input, Tensor[] bias_hidden, *, bool bf16_products=False",
                              "Tensor output, Tensor next_hidden, Tensor guard_hits",
                              {"guard_hits"},
                              &empty_results});
}

}  // namespace twinbench::energy_flow::energy_carrier
