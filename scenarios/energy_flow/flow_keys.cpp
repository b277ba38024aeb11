// What a scenario file may say of the flow model.
#include "scenarios/energy_flow/flow_keys.h"

#include "scenarios/energy_flow/dataset_pairs.h"
#include "src/registry.h"

namespace twinbench::energy_flow {

void take_flow_keys(RunSource& source) {
  constexpr double kWidest = 65536;
  source.sizes = {count_key("lattice_width", 2, kWidest, "cells along x; the mapping to [-1, 1] divides by one less"),
                  count_key("lattice_height", 2, kWidest, "cells along y"),
                  count_key("lattice_depth", 2, kWidest, "levels along z"),
                  count_key("batch", 1, 1e6, "text pairs; one flow a pair and cell"),
                  count_key("embedding_width", 1, kWidest, "of the dataset's embeddings"),
                  count_key("neuron_hidden", 1, kWidest, "of the neuron's inner layers"),
                  count_key("neuron_output", 1, kWidest, "features of a flow"),
                  count_key("carrier_hidden", 2, kWidest, "of each recurrent layer"),
                  count_key("carrier_layers", 1, 64, "recurrent layers"),
                  count_key("max_spawn_per_step", 0, 1024, "children a flow may ask for")};
  source.options = {real_key("exploration_noise", 0, 10, "standard deviation of the noise on a move"),
                    real_key("spawn_threshold", 1e-6, 10, "length of a move that asks for children")};
  source.components = {"energy_flow.embedding_mapper", "energy_flow.simple_neuron", "energy_flow.energy_carrier",
                       "energy_flow.carrier_heads"};
  for (const OutputSpec& output : find_component("energy_flow.carrier_heads").spec.signature.outputs)
    source.outputs.push_back(output.name);
  source.check = [](const ScenarioConfig& config) { check_dataset(config, "batch", "embedding_width"); };
  source.remark = rows_left_out;
}

}  // namespace twinbench::energy_flow
