// Run energy_flow.training: optimizer windows of the whole training step over real sentence pairs.
#include <algorithm>

#include "scenarios/energy_flow/training_model.h"
#include "scenarios/runner/component_source.h"
#include "src/common/error.h"
#include "src/registry.h"

namespace twinbench::energy_flow::training {
namespace {

class TrainingWorkload final : public Workload {
 public:
  explicit TrainingWorkload(const ScenarioConfig& config)
      : config_(config), pairs_(dataset_pairs(config, "pairs", "embedding")) {}
  std::int64_t items() const override { return config_.sizes.at("pairs"); }
  std::unique_ptr<TrainingRun> make(const RunSetting& setting) const override {
    const auto& known = find_component("energy_flow.train_step").spec.dtypes;
    if (setting.dtype != Dtype::kFp64 && std::find(known.begin(), known.end(), setting.dtype) == known.end())
      throw Error(ErrorKind::kBadDtype, config_.file + ": dtype", to_string(setting.dtype),
                  "energy_flow.train_step has no such mode yet: give fp32");
    return make_training_run(config_, setting, pairs_);
  }

 private:
  const ScenarioConfig config_;
  const DatasetPairs pairs_;
};

std::unique_ptr<Workload> prepare(const ScenarioConfig& config) { return std::make_unique<TrainingWorkload>(config); }

}  // namespace

RunSource make_source() {
  const ComponentSpec& spec = find_component("energy_flow.train_step").spec;
  RunSource source;
  source.summary = "windows of the whole training step over real sentence pairs, epoch after epoch";
  source.sizes = size_keys(spec);
  source.sizes.push_back(count_key("pairs", 1, 1e9, "the first so many of the dataset: whole windows"));
  for (Key& key : option_keys(spec)) {
    const OptionSpec& option = *spec.signature.find_option(key.name);
    // A run starts at its first window, on the dataset's own rows.
    if (!option.of_inputs) source.options.push_back(std::move(key));
  }
  source.options.push_back(
      count_key("shuffled", 0, 1, "every epoch goes through the pairs in another order").or_else(1));
  source.options.push_back(
      count_key("baseline_sanitises", 0, 1, "0: the baseline takes embeddings as they are").or_else(1));
  source.components = {"energy_flow.train_step"};
  source.gives_losses = true;
  source.step_tolerance = {Tolerance::Kind::kBound, {1e-4, 1e-5}, {6e-2, 3e-2}, "C24"};
  source.prepare = prepare;
  return source;
}

}  // namespace twinbench::energy_flow::training
