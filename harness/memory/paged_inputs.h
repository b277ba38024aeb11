// Inputs at the edge of pages that nobody may touch: one element too far is seen, read or written, used or not.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/simt/guarded_buffer.h"
#include "src/named_tensors.h"

namespace twinbench {

// Copies of CPU tensors, each in memory of its own that ends, or begins, where a forbidden page does. While it lives,
// touching such a page is recorded and the run goes on (a read gives zeros). One at a time in a process.
class PagedInputs {
 public:
  enum class Edge { kStart, kEnd };
  PagedInputs(const NamedTensors& inputs, Edge edge);
  PagedInputs(const PagedInputs&) = delete;
  PagedInputs& operator=(const PagedInputs&) = delete;

  const NamedTensors& tensors() const { return tensors_; }  // contiguous; they may not outlive this
  // Empty, or what was touched since the last call: "input 'x' is read 4 bytes past its end".
  std::string touched();

 private:
  std::vector<std::unique_ptr<kernels::simt::GuardedMemory>> memory_;
  NamedTensors tensors_;
  kernels::simt::GuardWatch watch_;
};

}  // namespace twinbench
