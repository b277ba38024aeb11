// How a whole forward pass of flows says that it ran, and for how many samples: what the counters of repeated forwards
// count. Torch-free.
#pragma once

#include <cstdint>

#include "src/common/forward_call.h"

namespace twinbench::energy_flow {

// At its start; of no sample it is none.
inline void announce_flow_forward(std::int64_t samples) {
  if (samples > 0) announce_forward_call("energy_flow.flow_forward");
  for (std::int64_t b = 0; b < samples; ++b) announce_forward_call("energy_flow.flow_sample");
}

}  // namespace twinbench::energy_flow
