// Arguments and launchers of energy_flow.surface_collection's kernels. No CUDA headers, so that optimized/ stays
// host-compiled.
#pragma once

#include <cstdint>

#include "kernels/common/arguments.h"

namespace twinbench::energy_flow::surface_collection {

// Entries of flow storage, slots of a sample side by side. Both passes read all of it but z.
struct Arguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  int batch = 0, width = 0, height = 0, slots = 0;
  std::int32_t forward = 0;
  const float* energy = nullptr;             // [batch, slots]
  const float* position = nullptr;           // [batch, 3, slots]
  const float* distance = nullptr;           // [batch, slots]
  const std::int32_t* age = nullptr;         // [batch, slots]
  const std::uint8_t* status = nullptr;      // [batch, slots]
  const std::int32_t* forward_id = nullptr;  // [batch, slots]
  const float* grad_surface = nullptr;       // [batch, cells]; null: forward
  float* grad_energy = nullptr;              // [batch, slots]
  float* surface = nullptr;                  // [batch, cells]
  std::int32_t* cell = nullptr;              // [batch, slots]: s = iy * width + ix, -1 where nothing is collected
  // Of kernels in several passes: [batch, cells] each.
  float* largest_weight = nullptr;
  unsigned* magnitude = nullptr;
  unsigned long long *shares = nullptr, *energies = nullptr;

  TWINBENCH_HOST_DEVICE int cells() const { return width * height; }
};

// One kernel. Throws CudaError if the launch is refused. No sample: nothing is launched.
void launch(const Arguments& arguments, kernels::Stream stream);
// Four kernels, the cells' sums in device memory.
void launch_in_passes(const Arguments& arguments, kernels::Stream stream);

}  // namespace twinbench::energy_flow::surface_collection
