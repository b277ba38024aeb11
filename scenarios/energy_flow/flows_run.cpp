// Training run energy_flow.flows: every flow of a real batch steps through neuron, carrier and heads.
#include "scenarios/energy_flow/flow_model.h"

namespace twinbench::energy_flow::flows {
namespace {

class FlowWorkload final : public Workload {
 public:
  explicit FlowWorkload(const ScenarioConfig& config) : config_(config), start_(placed_flows(config)) {}
  std::int64_t items() const override { return start_.flows(); }
  std::unique_ptr<TrainingRun> make(const RunSetting& setting) const override {
    const auto count = setting.items == 0 ? items() : std::min(setting.items, items());
    return make_flow_run(config_, setting, start_.first(count, setting.dtype, setting.device));
  }

 private:
  ScenarioConfig config_;
  FlowState start_;
};

std::unique_ptr<Workload> prepare(const ScenarioConfig& config) { return std::make_unique<FlowWorkload>(config); }

}  // namespace

RunSource make_source() {
  constexpr double kWidest = 65536;
  RunSource source;
  source.summary =
      "every flow of a real batch through neuron, carrier and heads, state carried on; nothing ends a flow";
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
  source.step_tolerance = {Tolerance::Kind::kBound, {1e-4, 1e-5}, {3e-2, 1e-2}, "step"};
  source.prepare = prepare;
  return source;
}

}  // namespace twinbench::energy_flow::flows
