// Training, window by window, over the component energy_flow.train_step.
#pragma once

#include <memory>

#include "scenarios/energy_flow/dataset_pairs.h"
#include "scenarios/runner/training_run.h"

namespace twinbench::energy_flow {

// A step is an optimizer window of `micro_steps` micro-batches. An epoch goes through all pairs once, in an order of
// its own where `shuffled` is on; it holds whole windows only (throws kOutOfRange otherwise). State: parameters and
// moments, counts, the pairs themselves, the number of the next window. Items are the pairs.
std::unique_ptr<TrainingRun> make_training_run(const ScenarioConfig& config, const RunSetting& setting,
                                               const DatasetPairs& pairs);

constexpr const char* kLossOfTexts = "encoder_loss";  // a loss of its runs, where text_bridge is on

// What every run over that component has: its sizes, `pairs`, the options that are not of its inputs, its tolerance.
void take_training_keys(RunSource& source);

// The component's sizes: the scenario's, and 0 for those of texts that it says nothing of.
Sizes training_sizes(const ScenarioConfig& config);

// Rows of a window. Throws kOutOfRange where there are none, or where `pairs` are no whole windows.
std::int64_t rows_of_window(const ScenarioConfig& config, const Setting& setting, std::int64_t pairs);

// The trained parameters among the component's inputs as one vector, in the order of its arena, and from one.
at::Tensor trained_of(const NamedTensors& inputs, const Setting& setting);
void set_trained(const NamedTensors& inputs, const Setting& setting, const at::Tensor& parameters);

}  // namespace twinbench::energy_flow
