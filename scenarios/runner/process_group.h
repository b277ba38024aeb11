// Processes that add up tensors: c10d over Gloo, on the host, of one machine.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>

namespace twinbench {

// One process of several. Every rank makes one with the same file, and calls all_reduce in the same order with tensors
// of the same sizes. A rank that is gone or late is an Error(kInputOutput) in all the others, after timeout_s at most:
// nobody waits for ever.
class ProcessGroup {
 public:
  // Meets the others by way of `file`, which none of them has made. Starts threads: not before a fork.
  ProcessGroup(const std::string& file, int rank, int ranks, double timeout_s);
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  // Replaces the tensor by the sum over all ranks, the same bits in each. A tensor of a card travels by the host.
  void all_reduce(const at::Tensor& tensor);

  // What was asked of all_reduce so far.
  std::int64_t calls() const { return calls_; }
  std::int64_t bytes() const { return bytes_; }

 private:
  struct Gloo;
  std::unique_ptr<Gloo> gloo_;
  int rank_;
  std::int64_t calls_ = 0, bytes_ = 0;
};

}  // namespace twinbench
