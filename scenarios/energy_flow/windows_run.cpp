// Training run energy_flow.windows: gradients of the flow model over a real batch of flows, and an update a window.
#include "scenarios/energy_flow/flow_keys.h"
#include "scenarios/energy_flow/flow_window.h"

namespace twinbench::energy_flow::windows {
namespace {

class WindowWorkload final : public Workload {
 public:
  explicit WindowWorkload(const ScenarioConfig& config) : config_(config), start_(placed_flows(config)) {
    const auto most = config.sizes.at("window_flows");
    if (most > 0 && most < start_.flows()) start_ = start_.first(most, Dtype::kFp32, c10::DeviceType::CPU);
  }
  std::int64_t items() const override { return start_.flows(); }
  std::unique_ptr<TrainingRun> make(const RunSetting& setting) const override {
    const auto count = setting.items == 0 ? items() : std::min(setting.items, items());
    return make_flow_window(config_, setting, start_.first(count, setting.dtype, setting.device));
  }

 private:
  ScenarioConfig config_;
  FlowState start_;
};

std::unique_ptr<Workload> prepare(const ScenarioConfig& config) { return std::make_unique<WindowWorkload>(config); }

}  // namespace

RunSource make_source() {
  RunSource source;
  source.summary = "gradients of neuron, carrier and heads over a real batch of flows, summed over a window, and SGD";
  take_flow_keys(source);
  source.sizes.push_back(count_key("window_flows", 0, 1e9, "only the first flows of the batch; 0: all").or_else(0));
  source.options.push_back(real_key("learning_rate", 0, 100, "of plain gradient descent"));
  source.losses = {"loss"};
  source.gives_windows = true;
  source.step_tolerance = {Tolerance::Kind::kBound, {1e-4, 1e-5}, {3e-2, 1e-2}, "step"};
  source.prepare = prepare;
  return source;
}

}  // namespace twinbench::energy_flow::windows
