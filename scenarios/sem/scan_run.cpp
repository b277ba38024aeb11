// Run sem.scan: one selective scan as a training step calls it, forward and backward, set up and given up every time.
#include "harness/compare/inputs.h"
#include "scenarios/runner/config.h"
#include "scenarios/runner/training_run.h"
#include "src/registry.h"

namespace twinbench::sem::scan {
namespace {

class ScanRun final : public TrainingRun {
 public:
  ScanRun(const Component& component, Setting setting, Variant variant, const NamedTensors& inputs)
      : component_(component), setting_(std::move(setting)), variant_(variant), inputs_(inputs) {}

  // Set up within the step: what a variant holds for its work counts as much as what its operators allocate.
  void step() override {
    outputs_ = {};
    for (const Pass pass : {Pass::kForward, Pass::kBackward}) {
      Setting setting = setting_;
      setting.input_case.pass = pass;
      NamedTensors inputs;
      for (const auto& [name, tensor] : inputs_)
        if (pass == Pass::kBackward || name != "grad_output") inputs.set(name, tensor);
      const auto runnable = component_.make(variant_, inputs, setting);
      runnable->run();
      for (const auto& [name, tensor] : runnable->outputs()) outputs_.set(name, tensor);
    }
  }
  NamedTensors state() override { return {}; }
  void set_state(const NamedTensors&) override {}
  NamedTensors outputs() override { return outputs_; }
  std::optional<std::int64_t> item_axis(const std::string& tensor) const override {
    if (tensor == "output" || tensor == "grad_input") return 1;
    if (tensor == "largest_state") return 0;
    return std::nullopt;
  }
  std::int64_t items() const override { return setting_.size("batch"); }

 private:
  const Component& component_;
  Setting setting_;
  Variant variant_;
  NamedTensors inputs_, outputs_;
};

class ScanWorkload final : public Workload {
 public:
  explicit ScanWorkload(const ScenarioConfig& config)
      : component_(find_component("sem.selective_scan")), seed_(config.seed) {
    case_.name = config.name;
    case_.sizes = config.sizes;
    case_.pass = Pass::kBackward;
  }
  std::int64_t items() const override { return case_.sizes.at("batch"); }
  std::unique_ptr<TrainingRun> make(const RunSetting& run) const override {
    Setting setting{case_, run.dtype, run.device};
    if (run.items > 0) setting.input_case.sizes["batch"] = std::min(run.items, items());
    const NamedTensors inputs = placed_inputs(generated_inputs(component_.spec, setting, seed_), run.dtype, run.device);
    return std::make_unique<ScanRun>(component_, setting, run.variant, inputs);
  }

 private:
  const Component& component_;
  std::uint64_t seed_;
  Case case_;
};

std::unique_ptr<Workload> prepare(const ScenarioConfig& config) { return std::make_unique<ScanWorkload>(config); }

}  // namespace

RunSource make_source() {
  constexpr double kMost = 1 << 20;
  RunSource source;
  source.summary = "one selective scan forward and backward on given inputs; nothing is trained";
  source.sizes = {count_key("batch", 1, kMost, "sequences"), count_key("steps", 1, kMost, "of a sequence"),
                  count_key("groups", 1, kMost, "groups of channels"),
                  count_key("width", 1, 4096, "channels of a group"),
                  count_key("states", 1, 65536, "states of a group")};
  source.components = {"sem.selective_scan"};
  source.gives_state = false;
  source.step_tolerance = {Tolerance::Kind::kBound, {2e-5, 2e-4}, {2e-5, 2e-4}, "C13"};
  source.prepare = prepare;
  return source;
}

}  // namespace twinbench::sem::scan
