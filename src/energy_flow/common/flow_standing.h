// The state of a pass between two of its steps (C16), as its variants exchange it: flows by sample and number.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>

#include <cstdint>

#include "src/named_tensors.h"
#include "src/setting.h"

namespace twinbench::energy_flow::flow_forward {

// Collected: on an output plane, where the surface has it from. Lost: it died, or was dropped.
enum Standing : std::int32_t { kNoFlow, kLiving, kCollected, kLost };

// Zeros, on the host. A collected flow has no z and no hidden state, a lost one nothing but its standing. stats as the
// pass returns them, their steps only where the sample has finished; stop: the most that had completed, and looks since
// then; steps: taken so far.
inline NamedTensors no_flows(const Setting& s, at::ScalarType real) {
  const std::int64_t samples = s.size("samples"), quota = s.size("quota");
  return {{"position", at::zeros({samples, quota, 3}, real)},
          {"energy", at::zeros({samples, quota}, real)},
          {"distance", at::zeros({samples, quota}, real)},
          {"hidden", at::zeros({samples, quota, s.size("layers"), s.size("hidden")}, real)},
          {"age", at::zeros({samples, quota}, at::kInt)},
          {"standing", at::zeros({samples, quota}, at::kInt)},
          {"stats", at::zeros({samples, s.size("statistics")}, at::kInt)},
          {"stop", at::zeros({samples, 2}, at::kInt)},
          {"steps", at::zeros({1}, at::kLong)}};
}

}  // namespace twinbench::energy_flow::flow_forward
