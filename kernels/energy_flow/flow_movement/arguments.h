// Arguments and launchers of the flow step's kernels (C10). No CUDA headers, so that optimized/ stays host-compiled.
// The CPU path fills the same structs, in double too.
#pragma once

#include <cstdint>

#include "kernels/common/arguments.h"
#include "kernels/energy_flow/flow_movement/math.h"

namespace twinbench::energy_flow::flow_movement {

// What both passes read of the flows.
template <class Real>
struct FlowsRead {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  const Real* raw = nullptr;             // [flows, 3]: position + displacement + noise
  const Real* position = nullptr;        // [flows, 3], read where the sample has stopped; so is energy
  const std::int32_t* age = nullptr;     // [flows]
  const std::int32_t* sample = nullptr;  // [flows], below `samples`
  const bool* stopped = nullptr;         // [samples]
};

// In place: position, energy and age of `to` may be those that are read.
template <class Real>
struct ForwardArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  Rule rule = {};
  std::int64_t flows = 0, samples = 0;
  FlowsRead<Real> read = {};
  const Real* energy = nullptr;       // [flows], before the step
  const Real* next_energy = nullptr;  // [flows], the carrier's
  Real* new_position = nullptr;       // [flows, 3]
  Real* new_energy = nullptr;         // [flows]
  std::int32_t* new_age = nullptr;    // [flows]
  std::uint8_t* status = nullptr;     // [flows]
  Real* distance = nullptr;           // [flows]
  std::int32_t* counts = nullptr;     // [samples, kOutcomes]
  // CUDA only: counts so far [samples, kOutcomes], then finished blocks [1]; zeros between launches.
  std::int32_t* tally = nullptr;
};

template <class Real>
struct BackwardArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  Rule rule = {};
  std::int64_t flows = 0, samples = 0;
  FlowsRead<Real> read = {};
  const Real* grad_new_position = nullptr;  // [flows, 3], given; so is the next
  const Real* grad_new_energy = nullptr;    // [flows]
  Real* grad_raw = nullptr;                 // [flows, 3]
  Real* grad_position = nullptr;            // [flows, 3]
  Real* grad_energy = nullptr;              // [flows]
  Real* grad_next_energy = nullptr;         // [flows]
};

// A set-up refuses samples out of range; an operator that keeps a set-up gets new ones later. Such a flow moves, and no
// sample counts it.
TWINBENCH_HOST_DEVICE bool is_sample(std::int32_t sample, std::int64_t samples) {
  return sample >= 0 && sample < samples;
}

constexpr int kThreads = 64;                // a flow each: the documents' 20,000 flows give 313 blocks
constexpr std::int64_t kMostBlocks = 2112;  // sixteen on each of an H200's 132 multiprocessors: all resident at once

// One kernel each. Throw CudaError if the launch is refused. No flows: the counts alone are written.
void launch_forward(const ForwardArguments<float>& arguments, kernels::Stream stream);
void launch_backward(const BackwardArguments<float>& arguments, kernels::Stream stream);

}  // namespace twinbench::energy_flow::flow_movement
