// What an experiment kind is: the keys it takes, what it measures, what a scenario of it must judge, and how it runs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "scenarios/runner/config.h"
#include "scenarios/runner/criterion.h"
#include "scenarios/runner/training_run.h"

namespace twinbench {

// Which half of the proof a measure belongs to: what the baseline shows, or what the optimized run does not.
enum class Half { kBaseline, kOptimized, kNeither };

// What the names of a half's measures begin with.
inline std::string to_string(Half half) {
  return half == Half::kBaseline ? "baseline" : half == Half::kOptimized ? "optimized" : "";
}

constexpr double kInfinite = 1e30;  // stands for infinity in a record

// The loosest relative tolerance that a key may give: at 1, zeros would be right.
constexpr double kLoosestRelative = 0.5;

// What a family's members are called after: losses alone are known by name before anything has run.
enum class Names { kAny, kLosses };

struct MeasureSpec {
  std::string name;  // "speedup.lower"; "optimized.growth.*" stands for a family
  Half half = Half::kNeither;
  std::string meaning;
  bool required = false;  // a scenario of this kind must judge it (of a family: one of it)
  Values values = Values::kNonNegative;
  Names members = Names::kAny;
};

// A scenario about to run.
struct Trial {
  const ScenarioConfig& config;
  const RunSource& source;
  Device device;
  bool quick = false;

  RunSetting setting(Variant variant, std::int64_t items = 0) const { return {variant, config.dtype, device, items}; }
  RunSetting oracle(std::int64_t items = 0) const {
    return {Variant::kBaseline, Dtype::kFp64, c10::Device(c10::DeviceType::CPU), items};
  }
};

struct Findings {
  Measures measures;
  nlohmann::json configuration = nlohmann::json::object();  // beside the file's sizes, options and keys
  nlohmann::json variants = nlohmann::json::array();        // rows of the record's scenario section
  nlohmann::json speedup;                                   // null where none was measured
};

// scenarios/experiments/<name>.cpp: what a scenario file calls `experiment: <name>`.
struct Experiment {
  std::string name;    // of its path
  std::string proves;  // one sentence
  std::vector<Key> keys;
  std::vector<MeasureSpec> measures;
  bool needs_state = false, needs_losses = false, needs_windows = false;  // of the training run
  void (*check)(const ScenarioConfig& config) = nullptr;  // what no key can say of itself; throws at load
  Findings (*run)(const Trial& trial) = nullptr;
};

}  // namespace twinbench
