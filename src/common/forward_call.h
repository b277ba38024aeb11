// How a component says "my forward ran": one load and a branch while nobody counts. Torch-free.
#pragma once

#include <atomic>

namespace twinbench {

using ForwardCallObserver = void (*)(const char* component);

// Set by the counting harness while a scope is open; process-wide.
inline std::atomic<ForwardCallObserver> forward_call_observer{nullptr};

// Call once per forward, at its start, on any thread. `component` is a literal such as "energy_flow.flow_processor".
inline void announce_forward_call(const char* component) {
  if (const ForwardCallObserver observer = forward_call_observer.load(std::memory_order_relaxed)) observer(component);
}

}  // namespace twinbench
