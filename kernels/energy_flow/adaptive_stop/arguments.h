// Arguments and launcher of the stop's kernel (C15). No CUDA headers, so that optimized/ stays host-compiled. The CPU
// path fills the same struct.
#pragma once

#include <cstdint>

#include "kernels/energy_flow/adaptive_stop/math.h"

namespace twinbench::energy_flow::adaptive_stop {

struct Arguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  StopRule rule = {};
  std::int64_t samples = 0;
  const std::int32_t* completed = nullptr;  // [max_steps + 1, samples]; likewise the next two
  const std::int32_t* created = nullptr;
  const std::int32_t* active = nullptr;
  StopStates states = {};
  std::int64_t* flow_steps = nullptr;  // [samples]
  // CUDA only: the step before which is decided; where `pass` is written once no sample goes on.
  std::int32_t step = 0, pass = 0;
  std::int32_t* all_finished = nullptr;

  TWINBENCH_HOST_DEVICE StopCounts counts(std::int32_t at_step, std::int64_t sample) const {
    const std::int64_t at = at_step * samples + sample;
    return {.completed = completed[at], .created = created[at], .active = active[at]};
  }
};

// Of one block, which strides: the documents' batches have 4 to 256 samples.
constexpr int kThreads = 64;

// One kernel. Throws CudaError if the launch is refused. No samples: nothing is launched.
void launch_decide(const Arguments& arguments, kernels::Stream stream);

}  // namespace twinbench::energy_flow::adaptive_stop
