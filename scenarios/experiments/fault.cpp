// Kind `fault`: NaN, infinity or a huge value planted in some items of the state; judged by what it reaches.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "scenarios/runner/experiment.h"
#include "scenarios/runner/observe.h"
#include "src/common/error.h"

namespace twinbench::experiments::fault {
namespace {

double planted_value(const std::string& word) {
  if (word == "inf") return std::numeric_limits<double>::infinity();
  if (word == "-inf") return -std::numeric_limits<double>::infinity();
  if (word == "huge") return 1e30;
  return std::numeric_limits<double>::quiet_NaN();
}

at::Tensor indices(const ScenarioConfig& config) {
  const auto items = config.counts("items");
  return at::tensor(at::ArrayRef<std::int64_t>(items), at::kLong);
}

// The state with every element of those items replaced.
NamedTensors planted(TrainingRun& run, const ScenarioConfig& config) {
  const auto name = config.text("plant");
  auto tensor = run.state()[name].clone();
  const auto axis = run.item_axis(name);
  if (!axis)
    throw Error(ErrorKind::kOutOfRange, config.file + ": plant", name, "it has no items; plant in one that has");
  const auto last = indices(config).max().item<std::int64_t>();
  if (last >= tensor.size(*axis))
    throw Error(ErrorKind::kOutOfRange, config.file + ": items", std::to_string(last),
                "the run has " + std::to_string(tensor.size(*axis)) + " items");
  tensor.index_fill_(*axis, indices(config).to(tensor.device()), planted_value(config.text("value")));
  return {{name, tensor}};
}

// Items, other than the planted ones, of which any state or output differs in its bits from the clean run's.
double changed_elsewhere(TrainingRun& clean, TrainingRun& faulty, const ScenarioConfig& config) {
  auto changed = at::zeros({clean.items()}, at::kBool);
  bool everywhere = false;
  const auto names = config.texts("compared");
  const auto look = [&](const NamedTensors& left, const NamedTensors& right) {
    for (const auto& [name, tensor] : left) {
      if (!names.empty() && std::find(names.begin(), names.end(), name) == names.end()) continue;
      if (const auto axis = clean.item_axis(name))
        changed.logical_or_(changed_items(tensor, right[name], *axis));
      else
        everywhere |= mismatched_bits({{name, tensor}}, {{name, right[name]}}) > 0;
    }
  };
  look(clean.state(), faulty.state());
  look(clean.outputs(), faulty.outputs());
  if (everywhere) changed.fill_(true);
  changed.index_fill_(0, indices(config), false);
  return changed.sum().item<double>();
}

void judge_variant(const Trial& trial, const Workload& workload, Variant variant, Findings& findings) {
  const auto& config = trial.config;
  const auto clean = workload.make(trial.setting(variant)), faulty = workload.make(trial.setting(variant));
  for (auto* one : {clean.get(), faulty.get()})
    for (std::int64_t i = 0; i < config.count("at_step"); ++i) one->step();
  faulty->set_state(planted(*faulty, config));
  const NamedTensors before = faulty->state();
  const bool rejoins = config.count("rejoins") != 0;

  const auto prefix = to_string(variant) + ".";
  VariantRow row{variant, faulty->items(), 1, {}, {}, nlohmann::json::array()};
  std::vector<double> poisoned;  // elements of state and outputs, a value a step
  double elsewhere = 0;
  for (std::int64_t i = 0; i < config.count("steps"); ++i) {
    clean->step();
    row.samples_s.push_back(timed_step(*faulty, trial.device));
    poisoned.push_back(non_finite(faulty->outputs()) + non_finite(faulty->state()));
    if (rejoins && i == 0)
      clean->set_state(faulty->state());
    else
      elsewhere = std::max(elsewhere, changed_elsewhere(*clean, *faulty, config));
    if (i == 0)
      for (const auto& [name, tensor] : faulty->state())
        findings.measures[prefix + "moved." + name] = {
            static_cast<double>(mismatched_bits({{name, tensor}}, {{name, before[name]}})), ""};
    if (i == 0)
      for (const auto& [name, tensor] : faulty->outputs())
        findings.measures[prefix + "non_finite." + name] = {non_finite(tensor), ""};
  }
  for (const auto& [name, tensor] : faulty->state())
    findings.measures[prefix + "non_finite_at_end." + name] = {non_finite(tensor), ""};
  for (const auto& [name, value] : faulty->counters()) findings.measures[prefix + "run." + name] = {value, ""};
  for (const auto& [name, value] : faulty->losses())
    findings.measures[prefix + "non_finite." + name] = {std::isfinite(value) ? 0.0 : 1.0, ""};
  findings.measures[prefix + "changed_elsewhere"] = {elsewhere, ""};
  findings.measures[prefix + "clean_non_finite"] = {non_finite(clean->outputs()) + non_finite(clean->state()), ""};
  row.timelines.push_back({{"name", "non_finite_elements"}, {"unit", ""}, {"values", poisoned}});
  row.counters = counted(*faulty, 1, trial.device);
  findings.variants.push_back(to_json(row));
}

Findings run(const Trial& trial) {
  const auto workload = trial.source.prepare(trial.config);
  Findings findings;
  for (const auto variant : {Variant::kBaseline, Variant::kOptimized})
    judge_variant(trial, *workload, variant, findings);
  return findings;
}

void check(const ScenarioConfig& config) {
  if (config.count("rejoins") != 0 && config.count("steps") < 2)
    throw Error(ErrorKind::kOutOfRange, config.file + ": steps", std::to_string(config.count("steps")),
                "give at least 2: nothing is compared before the runs have rejoined");
}

}  // namespace

Experiment make_experiment() {
  Experiment kind;
  kind.proves = "a planted fault: what it reaches, what stays as in the clean run, whether it heals";
  kind.keys = {
      text_key("plant", "the state tensor that the fault is planted in"),
      choice_key("value", {"nan", "inf", "-inf", "huge"}, "nan, inf, -inf or huge (1e30)"),
      counts_key("items", 0, 1e9, 1, "the items that get it"),
      texts_key("compared", 0, "the outputs and state tensors whose other items are; none: all")
          .or_else(nlohmann::json::array()),
      count_key("at_step", 0, 100000, "steps before it is planted").or_else(0),
      count_key("steps", 1, 100000, "steps after it").or_else(1),
      count_key("rejoins", 0, 1,
                "1: after the first of these the clean run goes on from the state of the other, and from there "
                "on they are compared")
          .or_else(0)};
  for (const auto half : {Half::kBaseline, Half::kOptimized}) {
    const std::string variant = to_string(half);
    const bool required = half == Half::kOptimized;
    kind.measures.push_back({variant + ".changed_elsewhere", half,
                             "items without the fault that differ in any bit from the clean run", required});
    kind.measures.push_back({variant + ".non_finite.*", half, "NaN and Inf in an output of the first step", true});
    kind.measures.push_back({variant + ".non_finite_at_end.*", half, "NaN and Inf in the state after the last step"});
    kind.measures.push_back({variant + ".moved.*", half, "elements of a state tensor that the first step changed"});
    kind.measures.push_back({variant + ".clean_non_finite", half, "NaN and Inf of the run without the fault"});
    kind.measures.push_back({variant + ".run.*", half, "what the run counts itself", false, Values::kAny});
  }
  kind.needs_state = true;
  kind.check = check;
  kind.run = run;
  return kind;
}

}  // namespace twinbench::experiments::fault
