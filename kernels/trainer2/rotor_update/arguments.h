// Arguments and launcher of trainer2.rotor_update's kernel. No CUDA headers, so that optimized/ stays host-compiled.
#pragma once

#include <cstdint>

#include "kernels/common/arguments.h"

namespace twinbench::trainer2::rotor_update {

// One update. The plane table, the velocity and the change stay on the device: nothing is read by the host.
struct Arguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  std::int64_t planes = 0;
  float rate = 0;                             // eta_update / beta_nudge / 100
  const std::int32_t* first_axis = nullptr;   // [planes]
  const std::int32_t* second_axis = nullptr;  // [planes]
  const float* velocity = nullptr;            // [axes], every velocity_stride-th element
  std::int64_t velocity_stride = 1;
  const float* lior_change = nullptr;  // [1]
  float* theta = nullptr;              // [planes], advanced in place
  std::int64_t* updates = nullptr;     // [1]: planes that moved
  float* mean_change = nullptr;        // [1]: mean |change| of those, before the wrap; 0 for none
};

// One kernel of one block. Throws CudaError if the launch is refused.
void launch(const Arguments& arguments, kernels::Stream stream);

}  // namespace twinbench::trainer2::rotor_update
