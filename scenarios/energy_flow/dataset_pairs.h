// The first sentence pairs of the dataset that a scenario names.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "scenarios/runner/config.h"

namespace twinbench::energy_flow {

struct DatasetPairs {
  at::Tensor input, target;                                      // [pairs, width], fp32 on the CPU
  std::vector<std::string> input_texts = {}, target_texts = {};  // of the pairs
};

// As many pairs as the scenario's size `pairs` says, their embeddings as wide as its size `width`. "default" is the
// dataset that `twinbench data make` writes, anything else a user's own file of any format. Throws Error: those of
// the readers; kInputOutput, kDimensionMismatch and kOutOfRange, naming the scenario's file and the size.
DatasetPairs dataset_pairs(const ScenarioConfig& config, const std::string& pairs, const std::string& width);

// At load: whether the dataset has so many pairs, so wide. Throws the same errors. The default dataset may be made
// between reading a scenario and running it: while it is missing nothing is said.
void check_dataset(const ScenarioConfig& config, const std::string& pairs, const std::string& width);

}  // namespace twinbench::energy_flow
