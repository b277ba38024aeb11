// Kind `resume`: a run saved to a file, loaded into a fresh one and continued, against the uninterrupted run.
#include "harness/command/tensor_file.h"
#include "scenarios/runner/experiment.h"
#include "scenarios/runner/observe.h"
#include "src/common/error.h"
#include "src/formats/checkpoint_file.h"

namespace twinbench::experiments::resume {
namespace {

// Through a checkpoint on disk, so that only what it holds can reach the resumed run; by way of safetensors, as Python
// writes and reads it.
NamedTensors through_a_file(const NamedTensors& state) {
  const TemporaryDirectory folder;
  TensorFile file;
  for (const auto& [name, tensor] : state) file.outputs.set(name, tensor.cpu().contiguous());
  write_tensor_file(folder.file("saved.safetensors"), file);
  checkpoint_from_safetensors(folder.file("saved.safetensors"), folder.file("run.efck"), SectionCodec::kPlanes);
  checkpoint_to_safetensors(CheckpointFile(folder.file("run.efck")).view(), folder.file("loaded.safetensors"));
  return read_tensor_file(folder.file("loaded.safetensors")).outputs;
}

NamedTensors without(const NamedTensors& state, const std::string& left_out) {
  NamedTensors rest;
  state[left_out];  // throws, with the names there are
  for (const auto& [name, tensor] : state)
    if (name != left_out) rest.set(name, tensor);
  return rest;
}

// Bits by which a run that begins with `state` differs after `steps` from the one that went on.
double mismatches(const Workload& workload, const RunSetting& setting, const NamedTensors& state, std::int64_t steps,
                  TrainingRun& straight) {
  const auto resumed = workload.make(setting);
  resumed->set_state(state);
  for (std::int64_t i = 0; i < steps; ++i) resumed->step();
  return static_cast<double>(mismatched_bits(straight.state(), resumed->state()) +
                             mismatched_bits(straight.outputs(), resumed->outputs()));
}

Findings run(const Trial& trial) {
  const auto& config = trial.config;
  const auto workload = trial.source.prepare(config);
  const auto after = config.count("steps_after");
  Findings findings;
  for (const auto variant : {Variant::kBaseline, Variant::kOptimized}) {
    const auto setting = trial.setting(variant);
    const auto straight = workload->make(setting);
    for (std::int64_t i = 0; i < config.count("steps_before"); ++i) straight->step();
    const auto saved = through_a_file(straight->state());
    VariantRow row{variant, straight->items(), 1, {}, {}, nlohmann::json::array()};
    for (std::int64_t i = 0; i < after; ++i) row.samples_s.push_back(timed_step(*straight, trial.device));
    const auto prefix = to_string(variant) + ".";
    findings.measures[prefix + "mismatches"] = {mismatches(*workload, setting, saved, after, *straight), ""};
    findings.measures[prefix + "mismatches_when_forgetting"] = {
        mismatches(*workload, setting, without(saved, config.text("forget")), after, *straight), ""};
    row.counters = counted(*straight, 1, trial.device);
    findings.variants.push_back(to_json(row));
  }
  return findings;
}

}  // namespace

Experiment make_experiment() {
  Experiment kind;
  kind.proves = "saved, loaded into a fresh run, continued: bit for bit the uninterrupted run";
  kind.keys = {count_key("steps_before", 1, 100000, "steps before the save"),
               count_key("steps_after", 1, 100000, "steps after it"),
               text_key("forget", "the state tensor that the control leaves out of its checkpoint: it must be missed")};
  const std::string forgetting = "elements that differ where the checkpoint lacks the tensor named by `forget`";
  kind.measures = {
      {"baseline.mismatches", Half::kNeither, "elements of state and outputs that differ after resuming", true},
      {"optimized.mismatches", Half::kOptimized, "elements of state and outputs that differ after resuming", true},
      {"baseline.mismatches_when_forgetting", Half::kBaseline, forgetting, true},
      {"optimized.mismatches_when_forgetting", Half::kNeither, forgetting}};
  kind.needs_state = true;
  kind.run = run;
  return kind;
}

}  // namespace twinbench::experiments::resume
