// twinbench::energy_flow_carrier_heads: energy, displacement, noisy position and spawn count of every flow.
//
// A pure function of its arguments: the noise is the counter-based generator's at (seed, attempt, sample_key, local_id,
// step), all of them arguments. The spawn gate decides a count and is not trained: its weights have no gradient.
#include <ATen/ATen.h>

#include "optimized/common/operators.h"

namespace twinbench::energy_flow::carrier_heads {
namespace {

NamedTensors empty_results(const NamedTensors& inputs) {
  const at::Tensor& position = inputs["position"];
  const auto scalars = [&] { return at::empty_symint({position.sym_size(0)}, position.options()); };
  const auto vectors = [&] { return at::empty_symint({position.sym_size(0), 3}, position.options()); };
  return {{"energy", scalars()},        {"displacement", vectors()},
          {"delta", vectors()},         {"raw", vectors()},
          {"spawn_measure", scalars()}, {"spawn_count", at::empty_symint({position.sym_size(0)}, position.options().dtype(at::kInt))},
          {"child_energy", scalars()}};
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(twinbench, library) {
  register_operator(
      library,
      {"energy_flow.carrier_heads",
       "Tensor carried, Tensor position, Tensor sample_key, Tensor local_id, "
       "Tensor energy_hidden_weight, Tensor energy_hidden_bias, Tensor energy_out_weight, Tensor energy_out_bias, "
       "Tensor displacement_hidden_weight, Tensor displacement_hidden_bias, Tensor displacement_out_weight, "
       "Tensor displacement_out_bias, Tensor gate_hidden_weight, Tensor gate_hidden_bias, Tensor gate_out_weight, "
       "Tensor gate_out_bias, Tensor child_weight, Tensor child_bias, *, bool gate=False, float noise=0., "
       "bool noise_on_z=True, int seed=1234, int attempt=0, int step=0, float scale=1., float smallest_scale=1., "
       "int global_step=0, float movement_threshold=0.15, float gate_threshold=0.6, int most_spawned=3, "
       "bool bf16_products=False",
       "Tensor energy, Tensor displacement, Tensor delta, Tensor raw, Tensor spawn_measure, Tensor spawn_count, "
       "Tensor child_energy",
       {"sample_key", "local_id", "gate_hidden_weight", "gate_hidden_bias", "gate_out_weight", "gate_out_bias",
        "spawn_measure", "spawn_count"},
       &empty_results});
}

}  // namespace twinbench::energy_flow::carrier_heads
