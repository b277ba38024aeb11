// Run energy_flow.training: optimizer windows of the whole training step over real sentence pairs.
#include "scenarios/energy_flow/training_model.h"
#include "src/common/error.h"

namespace twinbench::energy_flow::training {
namespace {

class TrainingWorkload final : public Workload {
 public:
  explicit TrainingWorkload(const ScenarioConfig& config)
      : config_(config), pairs_(dataset_pairs(config, "pairs", "embedding")) {}
  std::int64_t items() const override { return config_.sizes.at("pairs"); }
  std::unique_ptr<TrainingRun> make(const RunSetting& setting) const override {
    return make_training_run(config_, setting, pairs_);
  }

 private:
  const ScenarioConfig config_;
  const DatasetPairs pairs_;
};

std::unique_ptr<Workload> prepare(const ScenarioConfig& config) { return std::make_unique<TrainingWorkload>(config); }

}  // namespace

RunSource make_source() {
  RunSource source;
  source.summary = "windows of the whole training step over real sentence pairs, epoch after epoch";
  take_training_keys(source);
  source.options.push_back(
      count_key("shuffled", 0, 1, "every epoch goes through the pairs in another order").or_else(1));
  source.options.push_back(
      count_key("baseline_sanitises", 0, 1, "0: the baseline takes embeddings as they are").or_else(1));
  source.losses.push_back(kLossOfTexts);
  source.check = [alone = source.check](const ScenarioConfig& config) {
    alone(config);
    for (std::size_t i = 0; i < config.criteria.size(); ++i)
      if (config.options.at("text_bridge") == 0 &&
          config.criteria[i].measure.ends_with("." + std::string(kLossOfTexts)))
        throw Error(ErrorKind::kOutOfRange, config.file + ": criteria[" + std::to_string(i) + "]: measure",
                    config.criteria[i].measure, "no text is encoded: give text_bridge: 1 under 'options'");
  };
  source.components = {"energy_flow.train_step"};
  source.prepare = prepare;
  return source;
}

}  // namespace twinbench::energy_flow::training
