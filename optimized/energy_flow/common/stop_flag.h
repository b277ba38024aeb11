// The flag by which a host learns without waiting that the device has finished a loop of steps (C15).
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>

#include <atomic>
#include <cstdint>

#include "optimized/common/runtime.h"
#include "optimized/common/tensors.h"

namespace twinbench::energy_flow {

// In pinned memory, to which a card writes while the host goes on. What is written is the number of the pass: kernels
// of an earlier one may still run when the next has begun, and theirs is another.
class StopFlag {
 public:
  StopFlag()
      : flag_(at::zeros({1}, at::TensorOptions().dtype(at::kInt).pinned_memory(!lies_there(c10::DeviceType::CPU)))) {}

  std::int32_t next_pass() { return ++pass_; }
  std::int32_t* where() const { return data<std::int32_t>(flag_); }
  // A load: what the device has written by now.
  bool raised() const { return std::atomic_ref(*where()).load(std::memory_order_relaxed) == pass_; }

 private:
  at::Tensor flag_;  // int32 [1]
  std::int32_t pass_ = 0;
};

}  // namespace twinbench::energy_flow
