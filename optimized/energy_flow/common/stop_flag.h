// The flag by which a host learns without waiting that the device has finished a loop of steps (C15).
#pragma once

#include <atomic>
#include <cstdint>

#include "optimized/common/runtime.h"

namespace twinbench::energy_flow {
inline namespace TWINBENCH_FORM {

// In pinned memory, to which a card writes while the host goes on. What is written is the number of the pass: kernels
// of an earlier one may still run when the next has begun, and theirs is another.
class StopFlag {
 public:
  std::int32_t next_pass() { return ++pass_; }
  std::int32_t* where() const { return flag_.where(); }
  // A load: what the device has written by now.
  bool raised() const { return std::atomic_ref(*where()).load(std::memory_order_relaxed) == pass_; }

 private:
  IntegerOfBoth flag_;
  std::int32_t pass_ = 0;
};

}  // namespace TWINBENCH_FORM
}  // namespace twinbench::energy_flow
