// What the CUDA path asks of its device, announced as it happens, for an engine to count: on a card and on simt.
#pragma once

#include <atomic>
#include <string>

namespace twinbench {

// A kernel on its own, a product of the library, work recorded as a graph, such a graph started.
enum class DeviceEvent { kLaunch, kProduct, kCapture, kGraphLaunch };

// Told of every event while something counts, else null. `name`: the kernel's, graph's, or product's shape and type.
using DeviceEventObserver = void (*)(DeviceEvent event, const std::string& name);
inline std::atomic<DeviceEventObserver> device_event_observer{nullptr};

// `name` is called only where somebody listens.
template <class Name>
void announce(DeviceEvent event, const Name& name) {
  if (const DeviceEventObserver observer = device_event_observer.load(std::memory_order_relaxed))
    observer(event, name());
}

}  // namespace twinbench
