// What a card does and the host does in its place, while it does it: only then may device memory be touched.
#pragma once

#include <atomic>

namespace twinbench {

// Told when such work begins (true) and ends (false) while something watches; null otherwise.
using DeviceTurnObserver = void (*)(bool begins);
inline std::atomic<DeviceTurnObserver> device_turn_observer{nullptr};

// Around a kernel's run on the host, and around what stands there for a call of a library.
class DeviceTurn {
 public:
  DeviceTurn() : observer_(device_turn_observer.load(std::memory_order_relaxed)) {
    if (observer_ != nullptr) observer_(true);
  }
  ~DeviceTurn() {
    if (observer_ != nullptr) observer_(false);
  }
  DeviceTurn(const DeviceTurn&) = delete;
  DeviceTurn& operator=(const DeviceTurn&) = delete;

 private:
  const DeviceTurnObserver observer_;
};

}  // namespace twinbench
