// What a configuration and a checkpoint must have in common: critical fields decide shapes, others behaviour.
#pragma once

#include <string>
#include <vector>

#include "src/formats/checkpoint_layout.h"

namespace twinbench {

struct CheckpointField {
  std::string name, value;  // "lattice_width", "50"
  bool critical = false;
};

// As metadata: "config.lattice_width" -> "50".
void add_checkpoint_fields(CheckpointMetadata& metadata, const std::vector<CheckpointField>& fields);

// Against the fields of the run that restores. A critical one of another value, or that the checkpoint lacks, is an
// Error(kDimensionMismatch) naming it; the others are returned, a sentence each, or with `strict` are an
// Error(kBadArgument) naming the first.
std::vector<std::string> check_checkpoint_fields(const CheckpointMetadata& metadata,
                                                 const std::vector<CheckpointField>& run, bool strict);

}  // namespace twinbench
