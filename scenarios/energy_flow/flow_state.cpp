// Real pairs -> surface energies -> one flow a cell.
#include "scenarios/energy_flow/flow_state.h"

#include <ATen/ATen.h>

#include "harness/compare/inputs.h"
#include "scenarios/energy_flow/dataset_pairs.h"
#include "src/registry.h"

namespace twinbench::energy_flow {
namespace {

// Surface energies [batch, cells]; the mapper's own cells measure it.
at::Tensor surface_energies(const ScenarioConfig& config, const at::Tensor& embeddings) {
  const auto& mapper = find_component("energy_flow.embedding_mapper");
  Setting setting{*find_cell("energy_flow.embedding_mapper/optimized/cpu/fp32/train").input_case, config.dtype};
  auto& sizes = setting.input_case.sizes;
  sizes["rows"] = embeddings.size(0);
  sizes["embedding"] = embeddings.size(1);
  sizes["width"] = config.sizes.at("lattice_width");
  sizes["height"] = config.sizes.at("lattice_height");
  auto inputs = generated_inputs(mapper.spec, setting, config.seed);
  inputs.set("embedding", embeddings);
  const auto runnable = mapper.make(Variant::kOptimized, inputs, setting);
  runnable->run();
  return runnable->outputs()["surface"].clone();
}

}  // namespace

FlowState FlowState::first(std::int64_t count, Dtype dtype, c10::Device device) const {
  const auto own = [&](const at::Tensor& tensor, std::int64_t axis) {
    const auto type = dtype == Dtype::kFp64 && tensor.is_floating_point() ? at::kDouble : tensor.scalar_type();
    return tensor.narrow(axis, 0, count).to(device, type).contiguous().clone();
  };
  return {own(position, 0), own(energy, 0), own(hidden, 1), own(sample_key, 0), own(local_id, 0)};
}

FlowState placed_flows(const ScenarioConfig& config) {
  const auto pairs = dataset_pairs(config, "batch", "embedding_width");
  const auto surface = surface_energies(config, pairs.input);
  const auto width = config.sizes.at("lattice_width"), height = config.sizes.at("lattice_height");
  const auto depth = config.sizes.at("lattice_depth");
  const auto cells = width * height, flows = surface.size(0) * cells;
  FlowState state;
  state.position = at::empty({flows, 3});
  state.sample_key = at::empty({flows}, at::kLong);
  state.local_id = at::empty({flows}, at::kLong);
  auto position = state.position.accessor<float, 2>();
  const float z = 2.0f * static_cast<float>(depth / 2) / static_cast<float>(depth) - 1.0f;
  for (std::int64_t f = 0; f < flows; ++f) {
    const auto cell = f % cells;
    position[f][0] = 2.0f * static_cast<float>(cell % width) / static_cast<float>(width - 1) - 1.0f;
    position[f][1] = 2.0f * static_cast<float>(cell / width) / static_cast<float>(height - 1) - 1.0f;
    position[f][2] = z;
    state.sample_key.data_ptr<std::int64_t>()[f] = pairs.row(f / cells);
    state.local_id.data_ptr<std::int64_t>()[f] = cell;
  }
  state.energy = surface.reshape({flows}).contiguous();
  state.hidden = at::zeros({config.sizes.at("carrier_layers"), flows, config.sizes.at("carrier_hidden")});
  return state;
}

}  // namespace twinbench::energy_flow
