// Training run energy_flow.flows: every flow of a real batch steps through neuron, carrier and heads.
#include "scenarios/energy_flow/flow_keys.h"
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
  RunSource source;
  source.summary =
      "every flow of a real batch through neuron, carrier and heads, state carried on; nothing ends a flow";
  take_flow_keys(source);
  source.outputs.insert(source.outputs.begin(), {"features", "carried", "next_hidden"});
  source.step_tolerance = {Tolerance::Kind::kBound, {1e-4, 1e-5}, {3e-2, 1e-2}, "step"};
  source.prepare = prepare;
  return source;
}

}  // namespace twinbench::energy_flow::flows
