// Arguments and launcher of trainer2.metric_update's kernel. No CUDA headers, so that optimized/ stays host-compiled.
#pragma once

#include <cstdint>

#include "kernels/common/arguments.h"

namespace twinbench::trainer2::metric_update {

constexpr int kMostAxes = 1024;

// One update. Everything it decides on stays on the device: nothing is read by the host.
struct Arguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  int axes = 0, planes = 0;
  int layer = 0;  // planes of a layer, which share no axis; 1: in order
  bool blocks = false;
  std::int64_t batch = 0, most_rejects = 0;
  float rate = 0;
  const float* velocity = nullptr;  // [batch, axes], by these strides
  std::int64_t batch_stride = 0, axis_stride = 0;
  const float *lior_free = nullptr, *lior_nudged = nullptr;  // [1]
  const float* theta = nullptr;                              // [planes], every theta_stride-th element
  std::int64_t theta_stride = 1;
  const std::int32_t *first_axis = nullptr, *second_axis = nullptr;  // [planes]
  float *metric = nullptr, *coupling = nullptr;                      // [axes], [axes / 2], advanced in place
  std::int64_t* rejects = nullptr;                                   // [3]: all, in a row, frozen
  float* report = nullptr;  // [3]: change, mean |metric change| before the clamp, largest square
};

// One kernel of one block. Throws CudaError if the launch is refused.
void launch(const Arguments& arguments, kernels::Stream stream);

}  // namespace twinbench::trainer2::metric_update
