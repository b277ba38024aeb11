// Training run trainer2.window: two-phase windows of the trainer, without masks, in the document's default modes.
#include "scenarios/trainer2/trainer_model.h"
#include "src/common/error.h"

namespace twinbench::trainer2::window {
namespace {

class WindowWorkload final : public Workload {
 public:
  explicit WindowWorkload(const ScenarioConfig& config) : config_(config), start_(trainer_start(config)) {}
  std::int64_t items() const override { return config_.sizes.at("batch"); }
  std::unique_ptr<TrainingRun> make(const RunSetting& setting) const override {
    return make_trainer_run(config_, setting, start_.placed(setting.dtype, setting.device));
  }

 private:
  ScenarioConfig config_;
  TrainerStart start_;
};

std::unique_ptr<Workload> prepare(const ScenarioConfig& config) { return std::make_unique<WindowWorkload>(config); }

void check(const ScenarioConfig& config) {
  const auto sequences = config.sizes.at("sequences"), batch = config.sizes.at("batch");
  if (sequences < batch)
    throw Error(ErrorKind::kOutOfRange, config.file + ": sizes.sequences", std::to_string(sequences),
                "give at least one batch of " + std::to_string(batch));
}

}  // namespace

RunSource make_source() {
  constexpr double kMost = 1 << 20;
  RunSource source;
  source.summary = "two-phase windows of the trainer: free, nudged, update of metric and angles, commit to the bank";
  source.sizes = {count_key("batch", 1, kMost, "samples of a window"),
                  count_key("tokens", 1, kMost, "of a sample"),
                  count_key("width", 1, 65536, "of a state"),
                  count_key("hidden", 1, 65536, "of the forward stand-in"),
                  count_key("vocabulary", 1, kMost, "tokens that there are"),
                  count_key("axes", 2, 32, "coordinates of a state"),
                  count_key("planes", 1, 64, "of the rotor"),
                  count_key("capacity", 0, kMost, "slots of the bank"),
                  count_key("grid_width", 1, 1024, "cells of the field"),
                  count_key("grid_height", 1, 1024, "cells of the field"),
                  count_key("dimension", 1, 256, "of a cell's tensor"),
                  count_key("steps", 1, 100000, "of a phase"),
                  count_key("sequences", 1, kMost, "of the data set; a last partial batch is dropped")};
  source.options = {real_key("symplectic_dt", 1e-6, 1, "length of a step").or_else(0.005),
                    real_key("retrieval_beta", 1e-6, 1e30, "sharpness of the soft-min").or_else(5),
                    real_key("update_rate", 1e-6, 1e6, "eta_update / beta_nudge").or_else(10)};
  source.components = {"trainer2.fused_retrieval", "trainer2.field_dynamics", "trainer2.metric_update",
                       "trainer2.rotor_update"};
  source.outputs = {"act_mean_free", "act_last_free", "act_mean_nudged", "act_last_nudged", "lior_free", "lior_nudged",
                    "curvature",     "length",        "query",           "nudge",           "metric",    "theta"};
  source.step_tolerance = {Tolerance::Kind::kBound, {1e-5, 1e-5}, {1e-5, 1e-5}, "EQ2"};
  source.check = check;
  source.prepare = prepare;
  return source;
}

}  // namespace twinbench::trainer2::window
