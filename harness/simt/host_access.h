// Does the host touch memory of the device? On a card its pointers are none of the host's: to follow one is a crash.
#pragma once

#include <cstdint>
#include <string>

namespace twinbench::kernels::simt {

// While one of these lives, guarded memory is closed but in device turns (see src/common/device_turn.h). The host's
// first access is recorded, and all go on. Memory that is made meanwhile is open until the next turn ends. One at a
// time, on the thread that runs the device.
class HostAccessWatch {
 public:
  HostAccessWatch();
  ~HostAccessWatch();
  HostAccessWatch(const HostAccessWatch&) = delete;
  HostAccessWatch& operator=(const HostAccessWatch&) = delete;

  struct Access {
    std::string memory;  // its name; empty: there was none
    const void* address = nullptr;
    std::int64_t offset = 0;  // bytes from its start
    bool write = false;
  };
  Access first() const;
};

}  // namespace twinbench::kernels::simt
