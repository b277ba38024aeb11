// Runnables of one component behind the interface of training runs.
#include "scenarios/runner/component_source.h"

#include <ATen/ops/sum.h>

#include <algorithm>

#include "harness/compare/inputs.h"
#include "harness/parity/reference.h"
#include "scenarios/runner/config.h"
#include "src/inputs.h"
#include "src/registry.h"
#include "src/stepwise.h"

namespace twinbench {
namespace {

class ComponentRun : public TrainingRun {
 public:
  ComponentRun(const Component& component, const Setting& setting, Variant variant, NamedTensors inputs,
               ReadResults read)
      : component_(component),
        read_(read),
        setting_(completed(component.spec.signature, setting)),
        inputs_(std::move(inputs)),
        runnable_(component.make(variant, inputs_, setting)) {}

  void step() override { runnable_->run(); }
  NamedTensors state() override { return {}; }
  void set_state(const NamedTensors&) override {}
  // Without those that are measurements of the run itself, which differ by nature.
  NamedTensors outputs() override { return without_measured(outputs_declared(), runnable_->outputs()); }
  std::optional<std::int64_t> item_axis(const std::string& tensor) const override {
    for (const auto& output : outputs_declared())
      if (output.name == tensor) return output.batch_axis;
    return std::nullopt;
  }
  std::int64_t items() const override {
    return component_.spec.batch_size.empty() ? 1 : setting_.size(component_.spec.batch_size);
  }
  Readings counters() override {
    Readings sums;
    const NamedTensors outputs = runnable_->outputs();
    for (const auto& output : outputs_declared())
      if (output.tolerance.kind == Tolerance::Kind::kMeasured)
        sums[output.name] = at::sum(outputs[output.name].to(at::kCPU, at::kDouble)).item<double>();
    return sums;
  }
  std::vector<std::string> broken_rules() override {
    std::vector<std::string> broken;
    if (setting_.backward()) return broken;
    const NamedTensors inputs = on_host(inputs_), results = on_host(runnable_->outputs());
    for (const auto& rule : component_.spec.invariants)
      if (const std::string how = rule.broken(inputs, results, setting_); !how.empty())
        broken.push_back(rule.name + ": " + how);
    return broken;
  }

  Readings readings() override {
    return read_ ? read_(on_host(inputs_), on_host(runnable_->outputs()), setting_) : Readings();
  }

 protected:
  Runnable& runnable() { return *runnable_; }

 private:
  static NamedTensors on_host(const NamedTensors& tensors) {
    NamedTensors copies;
    for (const auto& [name, tensor] : tensors) copies.set(name, tensor.cpu());
    return copies;
  }
  std::vector<OutputSpec> outputs_declared() const { return output_specs(component_.spec, setting_); }

  const Component& component_;
  ReadResults read_;
  Setting setting_;
  NamedTensors inputs_;
  std::unique_ptr<Runnable> runnable_;
};

// The component's steps one by one.
class StepwiseRun final : public ComponentRun {
 public:
  StepwiseRun(const Component& component, const Setting& setting, Variant variant, const NamedTensors& inputs,
              ReadResults read)
      : ComponentRun(component, setting, variant, inputs, read), steps_(dynamic_cast<Stepwise*>(&runnable())) {
    if (steps_ == nullptr)
      throw Error(ErrorKind::kInternal, component.spec.id(), to_string(variant), "its source says that it is Stepwise");
    steps_->begin();
  }

  void step() override { steps_->step(); }
  NamedTensors state() override { return steps_->state(); }
  void set_state(const NamedTensors& state) override { steps_->set_state(state); }
  NamedTensors outputs() override {
    NamedTensors all = ComponentRun::outputs();
    for (const auto& [name, tensor] : state()) all.set(name, tensor);
    return all;
  }

 private:
  Stepwise* const steps_;
};

class ComponentWorkload final : public Workload {
 public:
  ComponentWorkload(const std::string& id, const ScenarioConfig& config, Pass pass, ReadResults read, bool stepwise)
      : component_(find_component(id)), read_(read), stepwise_(stepwise), seed_(config.seed) {
    case_.pass = pass;
    case_.name = config.name;
    case_.sizes = config.sizes;
    case_.options = config.options;
  }
  std::int64_t items() const override {
    const auto& size = component_.spec.batch_size;
    return size.empty() ? 1 : case_.sizes.at(size);
  }
  std::unique_ptr<TrainingRun> make(const RunSetting& run) const override {
    const Setting setting = setting_of(run);
    const auto inputs = placed_inputs(generated_inputs(component_.spec, setting, seed_), run.dtype, run.device);
    if (stepwise_) return std::make_unique<StepwiseRun>(component_, setting, run.variant, inputs, read_);
    return std::make_unique<ComponentRun>(component_, setting, run.variant, inputs, read_);
  }
  // As parity does: by the component's own classes, whatever close decisions change set aside.
  std::optional<StepParity> judge(const RunSetting& run, const NamedTensors& outputs) const override {
    const Setting setting = completed(component_.spec.signature, setting_of(run));
    if (stepwise_ || !rounds_values(setting)) return std::nullopt;
    const Reference reference(component_, setting, generated_inputs(component_.spec, setting, seed_));
    NamedTensors all = outputs;  // measurements, which no run tells, are nobody's to judge
    for (const OutputSpec& output : reference.outputs())
      if (output.tolerance.kind == Tolerance::Kind::kMeasured)
        all.set(output.name, reference.baseline_run()[output.name]);
    CheckResult result;
    reference.judge(all, result);
    StepParity parity;
    if (result.in_comparison) parity.undecided = reference.no_case();
    if (!parity.undecided.empty()) return parity;
    if (result.verdict != CheckVerdict::kPass)
      parity.worst_ratio = 2, parity.reason = result.reason;  // rejected by a rule that may have no ratio
    for (const OutputRow& row : result.outputs)
      parity.worst_ratio = std::max(parity.worst_ratio, row.comparison.worst_ratio);
    parity.undecided = reference.left_out();  // what little is compared may be right
    return parity;
  }

 private:
  Setting setting_of(const RunSetting& run) const {
    Setting setting{case_, run.dtype, run.device};
    setting.rounding = run.rounding;
    if (run.items > 0 && !component_.spec.batch_size.empty())
      setting.input_case.sizes[component_.spec.batch_size] = std::min(run.items, items());
    return setting;
  }

  const Component& component_;
  ReadResults read_;
  bool stepwise_;
  std::uint64_t seed_;
  Case case_;
};

Key key_of(const OptionSpec& option) {
  switch (option.kind) {
    case OptionSpec::Kind::kReal:
      return real_key(option.name, option.low, option.high, option.meaning).or_else(option.otherwise);
    case OptionSpec::Kind::kChoice:
      return count_key(option.name, 0, static_cast<double>(option.choices.size()) - 1, option.meaning)
          .or_else(static_cast<std::int64_t>(option.otherwise));
    case OptionSpec::Kind::kSwitch:
      return count_key(option.name, 0, 1, option.meaning).or_else(static_cast<std::int64_t>(option.otherwise));
    case OptionSpec::Kind::kCount: break;
  }
  return count_key(option.name, option.low, option.high, option.meaning)
      .or_else(static_cast<std::int64_t>(option.otherwise));
}

}  // namespace

std::vector<Key> size_keys(const ComponentSpec& spec) {
  std::vector<Key> keys;
  for (const auto& size : spec.signature.sizes) {
    keys.push_back(
        count_key(size.name, static_cast<double>(size.low), static_cast<double>(size.high), "a size of " + spec.id()));
    if (!size.part_of.empty()) keys.back() = keys.back().or_else(std::int64_t{0});  // a run without says nothing of it
  }
  return keys;
}

std::vector<Key> option_keys(const ComponentSpec& spec) {
  std::vector<Key> keys;
  for (const auto& option : spec.signature.options) keys.push_back(key_of(option));
  return keys;
}

namespace {

RunSource source_of(const std::string& id, std::string summary, const Tolerance& step_tolerance, Pass pass,
                    ReadResults read, bool stepwise) {
  const ComponentSpec& spec = find_component(id).spec;
  RunSource source;
  source.summary = std::move(summary);
  source.sizes = size_keys(spec);
  source.options = option_keys(spec);
  source.components = {id};
  source.gives_state = stepwise;
  for (const OutputSpec& output : spec.signature.outputs)
    if (output.tolerance.kind != Tolerance::Kind::kMeasured) source.outputs.push_back(output.name);
  source.step_tolerance = step_tolerance;
  source.prepare = [id, pass, read, stepwise](const ScenarioConfig& config) {
    return std::make_unique<ComponentWorkload>(id, config, pass, read, stepwise);
  };
  return source;
}

}  // namespace

RunSource component_source(const std::string& id, std::string summary, const Tolerance& step_tolerance, Pass pass,
                           ReadResults read) {
  return source_of(id, std::move(summary), step_tolerance, pass, read, false);
}

RunSource stepwise_source(const std::string& id, std::string summary, const Tolerance& step_tolerance,
                          ReadResults read) {
  return source_of(id, std::move(summary), step_tolerance, Pass::kForward, read, true);
}

}  // namespace twinbench
