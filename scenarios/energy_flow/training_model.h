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

}  // namespace twinbench::energy_flow
