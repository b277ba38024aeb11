// Where flows are and what they carry; and the first of them, placed over a real batch.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "scenarios/runner/config.h"

namespace twinbench::energy_flow {

struct FlowState {
  at::Tensor position;    // [flows, 3], normalised coordinates
  at::Tensor energy;      // [flows]
  at::Tensor hidden;      // [layers, flows, hidden]
  at::Tensor sample_key;  // [flows], int64
  at::Tensor local_id;    // [flows], int64

  std::int64_t flows() const { return position.size(0); }
  // The first flows in tensors of their own, floating ones in fp64 where the dtype is kFp64.
  FlowState first(std::int64_t count, Dtype dtype, c10::Device device) const;
};

// One flow a sample and surface cell, in (sample, y, x) order, at the start level, hidden state zero (C09): the first
// pairs of the dataset, mapped to surface energies by the optimized mapper. Throws Error: kInputOutput,
// kDimensionMismatch, kOutOfRange.
FlowState placed_flows(const ScenarioConfig& config);

}  // namespace twinbench::energy_flow
