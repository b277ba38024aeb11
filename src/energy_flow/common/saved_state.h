// What a checkpoint of energy-flow training holds (C30): its tensors as sections, and the configuration's fields.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "src/common/parameter_arena.h"
#include "src/formats/checkpoint_fields.h"
#include "src/named_tensors.h"

namespace twinbench::energy_flow {

inline constexpr std::array<const char*, 7> kCriticalFields = {"lattice_width",  "lattice_height", "lattice_depth",
                                                               "carrier_hidden", "carrier_layers", "neuron_hidden",
                                                               "neuron_output"};
inline constexpr std::array<const char*, 4> kBehaviourFields = {"exploration_noise", "spawn_threshold", "learning_rate",
                                                                "gradient_clip_norm"};

// Places in the tensors `counts` and `schedule`.
enum SavedCount { kEpoch, kAttempt, kGlobalStep, kCursor, kAppliedUpdates, kSavedCounts };
enum SavedSchedule { kLearningRate, kBestLoss, kBadEpochs, kLossScale, kSavedSchedule };

// In the order in which they lie in a file. Only the first three are cut into sections, by parameter tensor.
inline constexpr std::array<const char*, 8> kSavedTensors = {"parameters", "first_moment", "second_moment", "frozen",
                                                             "counts",     "schedule",     "history",       "metrics"};
inline constexpr std::size_t kSavedArenas = 3;

// One section of a file: a stretch of one of the saved tensors.
struct SavedSection {
  std::string name;    // "first_moment/3"
  std::string tensor;  // "first_moment"
  TensorPlace place;
};

// All of them, in order. Throws what tensor_places throws.
inline std::vector<SavedSection> saved_sections(const NamedTensors& live, const at::Tensor& offsets) {
  const std::vector<TensorPlace> places = tensor_places(offsets, live["parameters"].numel());
  std::vector<SavedSection> sections;
  for (std::size_t t = 0; t < kSavedTensors.size(); ++t) {
    const std::string tensor = kSavedTensors[t];
    if (t >= kSavedArenas) sections.push_back({tensor, tensor, {0, live[tensor].numel()}});
    for (std::size_t i = 0; t < kSavedArenas && i < places.size(); ++i)
      sections.push_back({tensor + "/" + std::to_string(i), tensor, places[i]});
  }
  return sections;
}

// The configuration that saves (inputs `critical` and `behaviour`), or the one that restores ("restore_...").
inline std::vector<CheckpointField> configuration_of(const NamedTensors& inputs, const std::string& prefix = "") {
  const at::Tensor critical = inputs[prefix + "critical"].contiguous(),
                   behaviour = inputs[prefix + "behaviour"].contiguous();
  std::vector<CheckpointField> fields;
  for (std::size_t i = 0; i < kCriticalFields.size(); ++i)
    fields.push_back({kCriticalFields[i], std::to_string(critical.const_data_ptr<std::int64_t>()[i]), true});
  for (std::size_t i = 0; i < kBehaviourFields.size(); ++i) {
    char text[40];
    std::snprintf(text, sizeof text, "%.17g", behaviour.const_data_ptr<double>()[i]);
    fields.push_back({kBehaviourFields[i], text, false});
  }
  return fields;
}

}  // namespace twinbench::energy_flow
