// A scope in which device memory of simt is closed to the host, LibTorch's operators let in as a card's would be.
#pragma once

#include <ATen/record_function.h>

#include <string>

#include "harness/simt/host_access.h"
#include "src/named_tensors.h"

namespace twinbench {

// Over tensors that a GuardScope(Guard::kPages) has placed. One at a time in a process.
class DeviceOnly {
 public:
  DeviceOnly();
  ~DeviceOnly();
  DeviceOnly(const DeviceOnly&) = delete;
  DeviceOnly& operator=(const DeviceOnly&) = delete;

  // Empty, or: "the host reads input 'x' at byte 12: on a card that is a crash". `inputs` by their names.
  std::string touched(const NamedTensors& inputs) const;

 private:
  kernels::simt::HostAccessWatch watch_;
  at::CallbackHandle operators_;
};

}  // namespace twinbench
