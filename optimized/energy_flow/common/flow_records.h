// The state of a pass between two steps, on the host, where either path reads and writes it (flow_standing.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "optimized/common/tensors.h"
#include "src/energy_flow/common/flow_standing.h"

namespace twinbench::energy_flow::flow_forward {

// One sample's, by its flows' numbers: position [quota, 3], hidden [quota, layers * width].
struct FlowRecords {
  float *position = nullptr, *energy = nullptr, *distance = nullptr, *hidden = nullptr;
  std::int32_t *age = nullptr, *standing = nullptr, *stats = nullptr, *stop = nullptr;
  std::int64_t hidden_floats = 0;

  // `state` is in fp32, contiguous, on the host, and outlives it.
  static FlowRecords of(const NamedTensors& state, std::int64_t sample) {
    const auto floats = [&](const char* name) { return data<float>(state[name]) + sample * state[name].stride(0); };
    const auto integers = [&](const char* name) {
      return data<std::int32_t>(state[name]) + sample * state[name].stride(0);
    };
    return {.position = floats("position"),
            .energy = floats("energy"),
            .distance = floats("distance"),
            .hidden = floats("hidden"),
            .age = integers("age"),
            .standing = integers("standing"),
            .stats = integers("stats"),
            .stop = integers("stop"),
            .hidden_floats = state["hidden"].size(2) * state["hidden"].size(3)};
  }
};

// What another variant gave, as FlowRecords reads it.
inline NamedTensors in_floats(const NamedTensors& state) {
  NamedTensors floats;
  for (const auto& [name, tensor] : state)
    floats.set(name, tensor.to(at::kCPU, tensor.is_floating_point() ? at::kFloat : tensor.scalar_type()).contiguous());
  return floats;
}

}  // namespace twinbench::energy_flow::flow_forward
