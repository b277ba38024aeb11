// What flow storage does with one slot in one step (C12): nothing, a flow's birth, or its update in place. Host and
// device.
#pragma once

#include <cstdint>

#include "src/common/host_device.h"

namespace twinbench::energy_flow::flow_storage {

constexpr std::uint8_t kActive = 1, kDoneZ0 = 2, kDoneZD = 3;  // 0: free; 4: dead

// A slot's flow in the forward that has this tag: older contents belong to nobody, whatever they say.
TWINBENCH_HOST_DEVICE bool is_active(std::int32_t forward_id, std::uint8_t status, std::int32_t forward) {
  return (forward_id == forward) & (status == kActive);
}
TWINBENCH_HOST_DEVICE bool is_completed(std::uint8_t status) { return (status == kDoneZ0) | (status == kDoneZD); }

}  // namespace twinbench::energy_flow::flow_storage
