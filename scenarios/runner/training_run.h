// What a pipeline supplies: training runs that step, whose state can be taken and put back. Experiments judge them.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/runner/keys.h"
#include "src/component.h"

namespace twinbench {

struct ScenarioConfig;

using Readings = std::map<std::string, double>;  // {"loss": 0.31, "gradient_norm": 0.09}

// A device's clock, and how long of it the device has worked.
struct DeviceTime {
  double wall_s = 0, busy_s = 0;
};

// One run of one variant. It begins at the step 0 that the scenario's file describes; every run of one workload begins
// at the same, whatever its variant.
class TrainingRun {
 public:
  virtual ~TrainingRun() = default;

  // One step (a window, where a pipeline accumulates) from the present state, which it leaves advanced.
  virtual void step() = 0;

  // All that decides how the run goes on, as copies of their own: what a step reads and carries to the next one
  // (parameters, moments, hidden state, the next batch). Experiments save it, plant faults in it, exchange it.
  virtual NamedTensors state() = 0;
  // Puts tensors of those names in place; the others stay. Throws kUnknownName, kBadShape, kBadDtype.
  virtual void set_state(const NamedTensors& state) = 0;

  // Results of the last step. The next step may overwrite what is returned.
  virtual NamedTensors outputs() = 0;
  // Along which axis of a state or output tensor the items lie; none where it mixes them.
  virtual std::optional<std::int64_t> item_axis(const std::string& tensor) const = 0;
  virtual std::int64_t items() const = 0;  // flows, samples, rows: what cost and poison are told by
  // That a step takes: fewer where an epoch has several steps.
  virtual std::int64_t items_of_step() const { return items(); }

  virtual Readings losses() { return {}; }  // scalars of the last step
  virtual Readings counters() {
    return {};
  }  // what the run counts itself, since it was made: slots free, windows skipped
  // Figures of the last step's results by rules of its own: {"residual": 3e-7}.
  virtual Readings readings() { return {}; }
  // Since it was made, of a run that knows this itself, as on a simulated device; what runs on a card is traced.
  virtual std::optional<DeviceTime> device_time() { return std::nullopt; }
  // Rules of its own (a residual, a norm that is kept) that the results of the last step break, a sentence each.
  virtual std::vector<std::string> broken_rules() { return {}; }
};

// A run whose step is an optimizer's window over all its items, which can be taken in pieces: in micro-batches, and by
// several processes. Its state is its parameters; every window is over the same items.
class WindowRun : public TrainingRun {
 public:
  virtual void begin_window() = 0;  // gradients are zero
  // Adds the gradients of so many items. An item weighs 1 / items(), however the window is cut.
  virtual void micro_step(std::int64_t begin, std::int64_t count) = 0;
  virtual void finish_window() = 0;  // updates the parameters by the gradients
  // By parameter, in one order, not copies: what a reducer writes there is what finish_window() takes.
  virtual NamedTensors gradients() = 0;
  virtual NamedTensors parameters() = 0;

  void step() override {
    begin_window();
    micro_step(0, items());
    finish_window();
  }
};

struct RunSetting {
  Variant variant = Variant::kBaseline;
  Dtype dtype = Dtype::kFp32;
  Device device;
  std::int64_t items = 0;         // only the first so many; 0: all
  Dtype rounding = Dtype::kFp64;  // of an oracle of a component's steps: Setting::rounding
};

// Worst error / allowed over one step's outputs; 1 or below passes.
struct StepParity {
  double worst_ratio = 0;
  std::string reason;     // of outputs that are rejected
  std::string undecided;  // why no verdict on these inputs would mean anything; then nothing is rejected
};

// Data and sizes of one scenario, read once; makes any number of runs that start from them.
class Workload {
 public:
  virtual ~Workload() = default;
  virtual std::int64_t items() const = 0;
  virtual std::unique_ptr<TrainingRun> make(const RunSetting& setting) const = 0;
  // Where products' operands or stored states are rounded, what a correct first step gives hangs on roundings and
  // decisions that may go either way: `outputs`, a run's in that setting, by whoever knows which. Nothing where nothing
  // is rounded, or nobody knows: then the source's tolerance holds everywhere.
  virtual std::optional<StepParity> judge(const RunSetting&, const NamedTensors& /*outputs*/) const {
    return std::nullopt;
  }
};

// scenarios/<pipeline>/<name>_run.cpp: what a scenario file calls `run: <pipeline>.<name>`.
struct RunSource {
  std::string pipeline, name;           // of its path
  std::string summary;                  // one sentence
  std::vector<Key> sizes, options;      // of the blocks of that name in a scenario file
  std::vector<std::string> components;  // ids of those it is made of: it runs where all of them do
  std::vector<Variant> variants = {Variant::kBaseline, Variant::kOptimized};
  bool gives_state = true;           // state() is not empty
  bool gives_windows = false;        // its runs are WindowRuns
  bool tells_device_time = false;    // device_time() is there
  Tolerance step_tolerance;          // of one step's floating results, optimized against baseline
  std::vector<std::string> outputs;  // the names in outputs(), of a run that gives its state
  std::vector<std::string> losses;   // and in losses(), of any setting
  // What no key can say of itself: sizes that do not fit one another, or the dataset. Throws at load.
  std::function<void(const ScenarioConfig& config)> check;
  // What is unusual of what it will run on, in a sentence for its reader; empty: nothing.
  std::function<std::string(const ScenarioConfig& config)> remark;
  std::function<std::unique_ptr<Workload>(const ScenarioConfig& config)> prepare;

  std::string id() const { return pipeline + "." + name; }
};

}  // namespace twinbench
