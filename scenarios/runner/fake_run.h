// A training run of a few numbers with planted mistakes, and scenario files around it: what the kinds' tests judge.
#pragma once

#include <ATen/ATen.h>

#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "scenarios/runner/judge.h"
#include "src/common/error.h"
#include "src/rounding.h"

namespace twinbench::fake {

// Mistakes of the optimized run. The baseline has the sins that a scenario's first half shows: it reads a scalar back
// for every item and allocates. A test plants one mistake, or takes a sin from the baseline, and sees the verdict.
struct Plan {
  double drift = 0;                // added to the optimized energies at each step
  double drift_from = 0;           // first step that drifts
  bool leaks = false;              // every step keeps a tensor
  bool grows_dispatches = false;   // one operator more at every step
  bool spreads = false;            // an item that is not finite reaches its neighbour
  bool passes_poison_on = false;   // it is kept in the state
  bool forgets_velocity = false;   // state() lacks what the next step needs
  bool per_item = false;           // the optimized run dispatches and reads for every item
  bool baseline_is_clean = false;  // the baseline commits no sin
  bool stands_still = false;       // neither run changes anything
  bool breaks_rule = false;        // the optimized run breaks a rule of its own
  bool harmless_mistake = false;   // the mistake that a scenario plants changes nothing
  bool another_mistake = false;    // or gives a constant
  bool slows_down = false;         // the optimized run takes time by the square of its items
  std::int64_t close = 0;  // of so many items, the first, a decision is close: the optimized run's goes the other way
  bool decides_wrongly = false;    // and the last item's, which is not close
  double busy_share = 0.5;         // of a step's time that the optimized run's device works
  double idle_step = 0;            // in this step it does not work at all
  std::int64_t items_of_step = 0;  // 0: a step takes all items
  double drags = 0;                // every step takes so much of the first one's time longer than the one before
};
inline Plan plan;

// energy += velocity, velocity *= 0.9; with NaN replaced by 0 at the end of a step.
class FakeRun final : public TrainingRun {
 public:
  FakeRun(std::int64_t items, bool mistaken, const RunSetting& setting) : setting_(setting), mistaken_(mistaken) {
    const auto type = setting.dtype == Dtype::kFp64 ? at::kDouble : at::kFloat;
    energy_ = at::arange(items, at::TensorOptions().dtype(type)).mul_(0.125);
    velocity_ = at::ones({items}, energy_.options());
    raw_ = energy_.clone();
  }
  void step() override {
    const bool optimized = setting_.variant == Variant::kOptimized;
    ++steps_;
    if (!plan.stands_still) energy_.add_(velocity_);
    velocity_.mul_(0.9);
    if (optimized && plan.drift != 0 && steps_ > plan.drift_from) energy_.add_(plan.drift);
    if (mistaken_ && !plan.harmless_mistake) plan.another_mistake ? energy_.fill_(2.5) : energy_.mul_(1.5);
    for (std::int64_t i = 0; i < items(); ++i) decide(i, i < plan.close, optimized);
    raw_.copy_(energy_);
    if (optimized && plan.spreads) energy_.slice(0, 1).add_(raw_.slice(0, 0, items() - 1).mul(0.0));
    if (!(optimized && plan.passes_poison_on)) energy_.nan_to_num_(0.0, 0.0, 0.0);
    if (optimized ? plan.per_item : !plan.baseline_is_clean && setting_.dtype != Dtype::kFp64)
      for (std::int64_t i = 0; i < items(); ++i) sum_ += at::add(energy_[i], 1.0).item<double>();
    if (optimized && plan.leaks) kept_.push_back(at::zeros({100}));
    for (std::int64_t i = 0; optimized && plan.slows_down && i < items() * items() / 64; ++i) raw_.mul_(1.0);
    time_.wall_s += 0.001 * (1 + (optimized ? plan.drags * static_cast<double>(steps_) : 0));
    if (steps_ != plan.idle_step) time_.busy_s += 0.001 * (optimized ? plan.busy_share : 0.25);
    for (int i = 0; optimized && plan.grows_dispatches && i < steps_; ++i) raw_.mul_(1.0);
  }
  NamedTensors state() override {
    NamedTensors state = {{"energy", energy_.clone()}};
    if (!plan.forgets_velocity) state.set("velocity", velocity_.clone());
    return state;
  }
  void set_state(const NamedTensors& state) override {
    for (const auto& [name, tensor] : state) (name == "energy" ? energy_ : velocity_).copy_(tensor);
  }
  NamedTensors outputs() override { return {{"raw", raw_}, {"energy", energy_}}; }
  std::optional<std::int64_t> item_axis(const std::string&) const override { return 0; }
  std::int64_t items() const override { return energy_.size(0); }
  std::int64_t items_of_step() const override { return plan.items_of_step > 0 ? plan.items_of_step : items(); }
  // It falls as the energies rise, ever more slowly.
  Readings losses() override { return {{"loss", 1 / (1 + (items() == 0 ? 0 : energy_.mean().item<double>()))}}; }
  std::optional<DeviceTime> device_time() override { return time_; }
  Readings readings() override { return {{"largest", items() == 0 ? 0 : energy_.max().item<double>()}}; }
  std::vector<std::string> broken_rules() override {
    if (mistaken_ && !plan.harmless_mistake) return {"the sum is conserved: it is not"};
    if (plan.breaks_rule && setting_.variant == Variant::kOptimized) return {"the sum is conserved: no longer"};
    return {};
  }

 private:
  // An item stays where it is, or goes one further.
  void decide(std::int64_t item, bool close, bool optimized) {
    const bool last = item + 1 == items();
    if (!close && !last) return;
    const std::int64_t other = optimized && (close || plan.decides_wrongly) ? 1 : 0;
    if (decided(other, 1 - other, close ? 1e-3 : 0.5) == 1) energy_[item].add_(1.0);
  }

  RunSetting setting_;
  bool mistaken_;
  at::Tensor energy_, velocity_, raw_;
  std::vector<at::Tensor> kept_;
  double sum_ = 0;
  std::int64_t steps_ = 0;
  DeviceTime time_;
};

class FakeWorkload final : public Workload {
 public:
  FakeWorkload(std::int64_t items, bool mistaken) : items_(items), mistaken_(mistaken) {}
  std::int64_t items() const override { return items_; }
  std::unique_ptr<TrainingRun> make(const RunSetting& setting) const override {
    return std::make_unique<FakeRun>(setting.items == 0 ? items_ : std::min(setting.items, items_), mistaken_, setting);
  }

 private:
  std::int64_t items_;
  bool mistaken_;
};

inline std::unique_ptr<Workload> prepare(const ScenarioConfig& config) {
  return std::make_unique<FakeWorkload>(config.sizes.at("items"), config.options.at("mistaken") != 0);
}

// The real kinds over the fake run "energy_flow.fake", and over one that gives no state.
inline Catalogue fake_catalogue() {
  Catalogue all;
  all.experiments = catalogue().experiments;
  RunSource source;
  source.pipeline = "energy_flow";
  source.name = "fake";
  source.sizes = {count_key("items", 0, 1e6, "how many")};
  source.options = {count_key("mistaken", 0, 1, "energies grow by half at every step").or_else(0)};
  source.step_tolerance = {Tolerance::Kind::kBound, {1e-4, 1e-5}, {3e-2, 1e-2}, "step"};
  source.prepare = prepare;
  source.tells_device_time = true;
  source.outputs = {"raw", "energy"};
  source.losses = {"loss"};
  all.runs.push_back(source);
  source.tells_device_time = false;
  source.name = "stateless";
  source.gives_state = false;
  all.runs.push_back(source);
  return all;
}

// A scenario of that kind: its own lines and criteria ("measure: x, equals: 0"), the rest as it must be.
inline std::string scenario(const std::string& kind, const std::string& lines,
                            const std::vector<std::string>& criteria) {
  std::string text = "name: planted\nexperiment: " + kind + R"(
run: energy_flow.fake
source: energy_flow SC21
tier: smoke
summary: A planted run
shows: {baseline: the sin, optimized: none of it}
seed: 1
dtype: fp32
sizes: {items: 8}
)" + lines + "\ncriteria:\n";
  for (const auto& criterion : criteria) text += "  - {" + criterion + ", why: it is so}\n";
  return text;
}

// Reads `text` as a scenario file; the file is gone afterwards.
inline ScenarioConfig read(const std::string& text, const Catalogue& all = fake_catalogue()) {
  const auto path = std::filesystem::temp_directory_path() / ("planted_" + std::to_string(getpid()) + ".yaml");
  std::ofstream(path) << text;
  struct Remove {
    std::filesystem::path path;
    ~Remove() { std::filesystem::remove(path); }
  } remove{path};
  return read_scenario(path.string(), all);
}

// Runs it with those mistakes planted; returns the row.
inline nlohmann::json run(const std::string& text, const Plan& planted = {}) {
  plan = planted;
  const auto config = read(text);
  auto row = run_scenario(config, fake_catalogue(), c10::Device(c10::DeviceType::CPU), true);
  plan = {};
  return row;
}

// "pass", or the failing criteria.
inline std::string verdict(const nlohmann::json& row) {
  return row["verdict"] == "pass" ? "pass" : row["reason"].get<std::string>();
}

}  // namespace twinbench::fake
