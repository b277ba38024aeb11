// Arguments and launchers of spawn admission's kernels (C14). No CUDA headers, so that optimized/ stays host-compiled.
// The CPU path fills the same structs, in double too.
#pragma once

#include "kernels/common/arguments.h"
#include "kernels/energy_flow/common/spawn_requests.h"
#include "kernels/energy_flow/spawn_admission/math.h"

namespace twinbench::energy_flow::spawn_admission {

// Who asks: what both passes read.
struct Asking {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  const std::uint8_t* status = nullptr;       // [samples, slots], after the step
  const std::int32_t* spawn_count = nullptr;  // [samples, slots], m of each flow
  const std::int32_t* created = nullptr;      // [samples], flows so far: their slots come first

  TWINBENCH_HOST_DEVICE std::int32_t requests(std::int64_t row) const {
    return spawn_requests(status[row], spawn_count[row]);
  }
};

template <class Real>
struct ForwardArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  Extents extents = {};
  Asking asking = {};
  const Real* position = nullptr;       // [samples, slots, 3], before the move
  const Real* child_energy = nullptr;   // [samples, slots], of a child of each flow
  std::int32_t* parent = nullptr;       // [samples, slots]: the parent's slot; -1 where no child was born in this step
  std::int32_t* new_created = nullptr;  // [samples]
  std::int32_t* dropped = nullptr;      // [samples]
  Real* born_position = nullptr;        // as position: a child's, else 0
  Real* born_energy = nullptr;          // as child_energy, likewise
};

// Rows of the given gradients in which no child was born are not read.
template <class Real>
struct BackwardArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  Extents extents = {};
  Asking asking = {};
  const Real* grad_born_position = nullptr;
  const Real* grad_born_energy = nullptr;
  Real* grad_position = nullptr;
  Real* grad_child_energy = nullptr;
};

constexpr int kThreads = 256;  // a slot each

// One kernel each. Throw CudaError if the launch is refused. No samples: nothing is launched.
void launch_forward(const ForwardArguments<float>& arguments, kernels::Stream stream);
void launch_backward(const BackwardArguments<float>& arguments, kernels::Stream stream);

}  // namespace twinbench::energy_flow::spawn_admission
