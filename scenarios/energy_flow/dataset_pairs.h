// The first valid sentence pairs of the dataset that a scenario names.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/runner/config.h"

namespace twinbench::energy_flow {

struct DatasetPairs {
  at::Tensor input, target;                                      // [pairs, width], fp32 on the CPU
  std::vector<std::string> input_texts = {}, target_texts = {};  // of the pairs
  std::vector<std::int64_t> rows = {};                           // of the file, those of the pairs; empty: 0, 1, ...

  std::int64_t row(std::int64_t pair) const { return rows.empty() ? pair : rows[static_cast<std::size_t>(pair)]; }
};

// As many pairs as the scenario's size `pairs` says, their embeddings as wide as its size `width`. "default" is the
// dataset that `twinbench data make` writes, anything else a user's own file of any format. Rows that validation
// refuses are left out (C01). Throws Error: those of the readers, naming the dataset; kInputOutput, kDimensionMismatch
// and kOutOfRange, naming the scenario's file and the size.
DatasetPairs dataset_pairs(const ScenarioConfig& config, const std::string& pairs, const std::string& width);

// At load: whether the dataset is whole and has so many pairs, so wide. Throws the same errors. The default dataset may
// be made between reading a scenario and running it: while it is missing nothing is said.
void check_dataset(const ScenarioConfig& config, const std::string& pairs, const std::string& width);

// Which rows of the dataset are left out, in a sentence; empty where all are valid or it is missing.
std::string rows_left_out(const ScenarioConfig& config);

}  // namespace twinbench::energy_flow
