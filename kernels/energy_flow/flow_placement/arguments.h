// Arguments and launchers of the placement's kernels (C09). No CUDA headers, so that optimized/ stays host-compiled.
// The CPU path fills the same structs, in double too.
#pragma once

#include <cstdint>

#include "kernels/common/arguments.h"
#include "kernels/energy_flow/flow_placement/math.h"

namespace twinbench::energy_flow::flow_placement {

struct Lattice {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  std::int64_t samples = 0;
  std::int32_t width = 2, height = 2, depth = 2;
  std::int32_t placed = 0;  // flows of a sample: its first cells, row by row

  TWINBENCH_HOST_DEVICE std::int32_t cells() const { return width * height; }
};

template <class Real>
struct ForwardArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  Lattice lattice = {};
  const Real* surface = nullptr;             // [samples, cells]
  const std::int64_t* sample_key = nullptr;  // [samples]
  Real* position = nullptr;                  // [samples, placed, 3]
  Real* energy = nullptr;                    // [samples, placed]; likewise the rest
  std::int32_t* sample = nullptr;            // place in the batch
  std::int32_t* local_id = nullptr;          // number in the sample
  std::int64_t* uid = nullptr;
};

template <class Real>
struct BackwardArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  Lattice lattice = {};
  const Real* grad_energy = nullptr;  // [samples, placed]
  Real* grad_surface = nullptr;       // [samples, cells]
};

constexpr int kThreads = 64;  // a flow each

// One kernel each. Throw CudaError if the launch is refused. No samples: nothing is launched.
void launch_forward(const ForwardArguments<float>& arguments, kernels::Stream stream);
void launch_backward(const BackwardArguments<float>& arguments, kernels::Stream stream);

}  // namespace twinbench::energy_flow::flow_placement
