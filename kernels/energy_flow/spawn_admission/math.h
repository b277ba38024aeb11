// Where the flows of a sample lie (C14): a flow's slot is its number in the sample. Which requests are admitted stands
// in kernels/energy_flow/common/spawn_requests.h.
#pragma once

#include <cstdint>

#include "src/common/host_device.h"

namespace twinbench::energy_flow::spawn_admission {

struct Extents {
  std::int64_t samples = 0;
  std::int32_t slots = 0;  // of a sample: its quota

  TWINBENCH_HOST_DEVICE std::int64_t row(std::int64_t sample, std::int32_t slot) const { return sample * slots + slot; }
};

}  // namespace twinbench::energy_flow::spawn_admission
