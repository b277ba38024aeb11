// Run energy_flow.logged_training: windows of the training step, each with its messages in the profile of production.
#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

#include "harness/timing/clock.h"
#include "scenarios/energy_flow/training_model.h"
#include "scenarios/runner/observe.h"
#include "src/inputs.h"
#include "src/registry.h"

namespace twinbench::energy_flow::logged_training {
namespace {

// What the run has beyond the training step: it goes to the messages.
ScenarioConfig without_messages(ScenarioConfig config) {
  config.sizes.erase("messages");
  for (const char* own : {"log_interval", "silent"}) config.options.erase(own);
  config.options["shuffled"] = config.options["baseline_sanitises"] = 1;
  return config;
}

// One step's messages by the variant that trains; they are made on the host, whatever trains.
std::unique_ptr<Runnable> make_messages(const ScenarioConfig& config, Variant variant) {
  const Component& component = find_component("energy_flow.gated_logging");
  Setting setting;
  setting.input_case.name = config.name;
  setting.input_case.sizes = {{"steps", 1}, {"messages", config.sizes.at("messages")}};
  setting.input_case.options = {{"log_profile", 0}, {"log_interval", config.options.at("log_interval")}};
  const Setting whole = completed(component.spec.signature, setting);
  return component.make(variant, generated_inputs(component.spec, whole, config.seed), setting);
}

class LoggedRun final : public TrainingRun {
 public:
  LoggedRun(const ScenarioConfig& config, const RunSetting& run, std::shared_ptr<const DatasetPairs> pairs)
      : config_(without_messages(config)),
        run_(run),
        pairs_(std::move(pairs)),
        training_(make_training_run(config_, run, *pairs_)),
        silent_(config.options.at("silent") != 0),
        messages_(make_messages(config, run.variant)) {}

  void step() override {
    training_->step();
    if (!silent_) messages_->run();
  }
  NamedTensors state() override { return training_->state(); }
  void set_state(const NamedTensors& state) override { training_->set_state(state); }
  NamedTensors outputs() override { return training_->outputs(); }
  std::optional<std::int64_t> item_axis(const std::string& tensor) const override {
    return training_->item_axis(tensor);
  }
  std::int64_t items() const override { return training_->items(); }
  std::int64_t items_of_step() const override { return training_->items_of_step(); }
  Readings losses() override { return training_->losses(); }
  Readings counters() override { return training_->counters(); }

  // Lines that the last step made and nobody sees, and what a step's messages take of the time of one without: both of
  // steps that are warm, the messages over as many steps that their rare lines have their share.
  Readings readings() override {
    const NamedTensors lines = messages_->outputs();
    const auto silent = make_training_run(config_, run_, *pairs_);
    double step_s = std::numeric_limits<double>::infinity();
    for (int i = 0; i < kWarmSteps; ++i) step_s = std::min(step_s, timed_step(*silent, run_.device));
    std::vector<double> series_s;
    SteadyClock clock;
    for (int i = 0; i < kSeries; ++i) {
      const auto start = clock.now();
      for (int step = 0; step < kLoggedSteps; ++step) messages_->run();
      series_s.push_back(seconds_between(start, clock.now()));
    }
    std::nth_element(series_s.begin(), series_s.begin() + kSeries / 2, series_s.end());
    const double logging_s = series_s[kSeries / 2] / kLoggedSteps;
    Readings all = training_->readings();
    all["unseen_lines"] = lines["formatted"].sum().item<double>() - lines["emitted"].sum().item<double>();
    all["logging_nanoseconds"] = logging_s * 1e9;
    all["logging_percent"] = 100 * logging_s / step_s;
    return all;
  }

 private:
  static constexpr int kWarmSteps = 3, kSeries = 9, kLoggedSteps = 100;

  const ScenarioConfig config_;
  const RunSetting run_;
  const std::shared_ptr<const DatasetPairs> pairs_;
  std::unique_ptr<TrainingRun> training_;
  const bool silent_;
  std::unique_ptr<Runnable> messages_;
};

class LoggedWorkload final : public Workload {
 public:
  explicit LoggedWorkload(const ScenarioConfig& config)
      : config_(config), pairs_(std::make_shared<const DatasetPairs>(dataset_pairs(config, "pairs", "embedding"))) {}
  std::int64_t items() const override { return config_.sizes.at("pairs"); }
  std::unique_ptr<TrainingRun> make(const RunSetting& setting) const override {
    return std::make_unique<LoggedRun>(config_, setting, pairs_);
  }

 private:
  const ScenarioConfig config_;
  const std::shared_ptr<const DatasetPairs> pairs_;
};

}  // namespace

RunSource make_source() {
  RunSource source;
  source.summary = "windows of the whole training step, each with a step's messages in production";
  take_training_keys(source);
  source.sizes.push_back(count_key("messages", 1, 1e5, "log calls of a window"));
  source.options.push_back(
      count_key("log_interval", 0, 1e9, "the basic metrics are said every so many steps; 0: never").or_else(10));
  source.options.push_back(count_key("silent", 0, 1, "1: no log call is there at all").or_else(0));
  source.check = [of_training = source.check](const ScenarioConfig& config) { of_training(without_messages(config)); };
  source.components = {"energy_flow.train_step"};  // which decides on devices; messages are made on the host anywhere
  source.prepare = [](const ScenarioConfig& config) { return std::make_unique<LoggedWorkload>(config); };
  return source;
}

}  // namespace twinbench::energy_flow::logged_training
