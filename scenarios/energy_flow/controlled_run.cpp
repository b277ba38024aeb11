// Run energy_flow.controlled: training whose windows end in gradient control and update by themselves, so that a fault
// can lie in the gradients that a window begins with.
#include <ATen/ATen.h>

#include <limits>

#include "harness/compare/inputs.h"
#include "scenarios/energy_flow/training_model.h"
#include "scenarios/runner/carried_state.h"
#include "src/energy_flow/common/optimizer_rule.h"
#include "src/energy_flow/common/training_window.h"
#include "src/registry.h"

namespace twinbench::energy_flow::controlled {
namespace {

constexpr double kNoLossYet = 1e300;  // the best of the schedule
constexpr const char *kStep = "energy_flow.train_step", *kUpdate = "energy_flow.optimizer";

// A window's gradients come from the training step with its clip off and its update unused; what the window before has
// left of its own is added; the optimizer's component clips, tests and updates.
class ControlledRun final : public TrainingRun {
 public:
  ControlledRun(const ScenarioConfig& config, const RunSetting& run, const DatasetPairs& pairs)
      : config_(config),
        run_(run),
        pairs_(pairs),
        step_{{}, run.dtype, run.device},
        update_{{}, run.dtype, run.device} {
    step_.input_case.name = update_.input_case.name = config.name;
    step_.input_case.sizes = training_sizes(config);
    step_.input_case.options = config.options;
    for (const char* of_update : {"documented_order", "weight_decay"}) step_.input_case.options.erase(of_update);
    step_.input_case.options["clip"] = 0;
    const ComponentSpec& spec = find_component(kStep).spec;
    whole_ = completed(spec.signature, step_);
    inputs_ = placed_inputs(generated_inputs(spec, step_, config.seed), run.dtype, run.device);
    rows_ = rows_of_window(config, whole_, config.sizes.at("pairs"));
    std::vector<std::int64_t> offsets = {0}, has_gradient;
    for (const InputSpec& one : train_step::trained_parameters(whole_)) {
      offsets.push_back(offsets.back() + inputs_[one.name].numel());
      has_gradient.push_back(train_step::has_gradient(one.name, whole_) ? 1 : 0);
    }
    const at::Tensor arena = trained_of(inputs_, whole_);
    tables_ = {{"offsets", at::tensor(offsets, at::kLong)}, {"has_gradient", at::tensor(has_gradient, at::kLong)}};
    update_.input_case.sizes = {{"tensors", static_cast<std::int64_t>(has_gradient.size())},
                                {"elements", arena.numel()},
                                {"epochs", 1},
                                {"windows", 1}};
    update_.input_case.options = {{"weight_decay", config.options.at("weight_decay")},
                                  {"clip", config.options.at("clip")}};
    if (run.variant == Variant::kBaseline)
      update_.input_case.options["documented_order"] = config.options.at("documented_order");
    state_ = {
        {"parameters", arena},
        {"first_moment", at::zeros_like(arena)},
        {"second_moment", at::zeros_like(arena)},
        {"gradients", at::zeros_like(arena)},  // that the next window begins with
        {"counts", at::zeros({3}, at::kLong).to(arena.device())},
        {"schedule", at::tensor({config.options.at("learning_rate"), kNoLossYet}, at::kDouble).to(arena.device())},
        {"window", at::zeros({1}, at::kLong)}};
  }

  void step() override {
    const NamedTensors told = trained();
    loss_ = told["loss"].item<double>();
    const at::Tensor gradients = at::add(told["gradients"], state_["gradients"]);
    const auto options = gradients.options();
    NamedTensors inputs = {
        {"gradients", gradients.unsqueeze(0)},
        {"gradient_factor", at::ones({1}, options)},
        // No epoch ends: a mean that is no number is left out of the schedule.
        {"epoch_loss", at::full({1}, std::numeric_limits<double>::quiet_NaN(), options.dtype(at::kDouble))},
        {"micro_steps", at::ones({1}, options.dtype(at::kLong))}};
    for (const auto& [name, table] : tables_) inputs.set(name, table.to(gradients.device()));
    for (const char* name : {"parameters", "first_moment", "second_moment", "counts", "schedule"})
      inputs.set(name, state_[name]);
    const auto update = find_component(kUpdate).make(run_.variant, inputs, update_);
    update->run();
    const NamedTensors results = update->outputs();
    for (const char* name : {"parameters", "first_moment", "second_moment", "counts", "schedule"})
      state_[name].copy_(results[name]);
    state_["gradients"].copy_(results["gradients"].select(0, 0));
    state_["window"].add_(1);
  }

  NamedTensors state() override { return copies_of(state_); }
  void set_state(const NamedTensors& given) override { put_in_place(state_, given); }
  NamedTensors outputs() override { return {{"left_gradients", state_["gradients"]}}; }
  std::optional<std::int64_t> item_axis(const std::string& tensor) const override {
    if (tensor == "gradients") return 0;
    return std::nullopt;
  }
  std::int64_t items() const override { return state_["gradients"].numel(); }
  Readings losses() override { return {{"loss", loss_}}; }
  Readings counters() override {
    const at::Tensor counts = state_["counts"].cpu();
    return {{"applied", counts[0].item<double>()},
            {"skipped_steps", counts[1].item<double>()},
            {"windows", state_["window"].item<double>()}};
  }

 private:
  // One window of the training step from the present parameters.
  NamedTensors trained() {
    const std::int64_t window = state_["window"].item<std::int64_t>(),
                       first = window % (config_.sizes.at("pairs") / rows_) * rows_;
    // A window may lack the component's last rows.
    inputs_["input"].narrow(0, 0, rows_).copy_(pairs_.input.narrow(0, first, rows_));
    inputs_["target"].narrow(0, 0, rows_).copy_(pairs_.target.narrow(0, first, rows_));
    for (std::int64_t row = 0; row < rows_; ++row) inputs_["sample_key"][row].fill_(pairs_.row(first + row));
    at::Tensor counts = at::zeros({train_step::kCounts}, at::kLong);
    counts[train_step::kApplied].copy_(state_["counts"][0]);
    counts[train_step::kAttempts].fill_(window);
    counts[train_step::kScaleExponent].fill_(train_step::kFirstExponent);
    at::Tensor(inputs_["counts"]).copy_(counts);
    set_trained(inputs_, whole_, state_["parameters"]);
    const auto step = find_component(kStep).make(run_.variant, inputs_, step_);
    step->run();
    NamedTensors told;
    for (const char* name : {"loss", "gradients"}) told.set(name, step->outputs()[name].clone());
    return told;
  }

  const ScenarioConfig config_;
  const RunSetting run_;
  const DatasetPairs pairs_;
  Setting step_, update_, whole_;  // whole_: step_, completed
  std::int64_t rows_ = 0;
  NamedTensors inputs_, tables_, state_;
  double loss_ = 0;
};

class ControlledWorkload final : public Workload {
 public:
  explicit ControlledWorkload(const ScenarioConfig& config)
      : config_(config), pairs_(dataset_pairs(config, "pairs", "embedding")) {}
  std::int64_t items() const override { return ControlledRun(config_, {}, pairs_).items(); }
  std::unique_ptr<TrainingRun> make(const RunSetting& setting) const override {
    return std::make_unique<ControlledRun>(config_, setting, pairs_);
  }

 private:
  const ScenarioConfig config_;
  const DatasetPairs pairs_;
};

std::unique_ptr<Workload> prepare(const ScenarioConfig& config) { return std::make_unique<ControlledWorkload>(config); }

}  // namespace

RunSource make_source() {
  RunSource source;
  source.summary = "training whose windows end in gradient control and update by themselves";
  take_training_keys(source);
  source.options.push_back(
      count_key("documented_order", 0, 1, "of the baseline: clip, then look, as documented").or_else(0));
  source.components = {kStep, kUpdate};
  source.outputs = {"left_gradients"};
  source.prepare = prepare;
  return source;
}

}  // namespace twinbench::energy_flow::controlled
