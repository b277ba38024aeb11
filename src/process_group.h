// Ranks that add up tensors, on the host of one machine: processes, by c10d over Gloo, or all of one thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace twinbench {

// One rank of several. All ask for the same in the same order, with tensors of the same sizes. A rank that is gone or
// late is an Error(kInputOutput) in all the others, after timeout_s at most: nobody waits for ever.
class ProcessGroup {
 public:
  // Processes: they meet by way of `file`, which none of them has made. Starts threads: not before a fork. One at a
  // time in a process: c10d's flight recorder, which all groups share, is written under each group's own lock. The
  // process ignores SIGPIPE: Gloo may write to a rank that has ended.
  ProcessGroup(const std::string& file, int rank, int ranks, double timeout_s);
  // All ranks of one thread, by the place in the list: it begins the same for each of them, and only then waits. Sums
  // are formed in the order of ranks, on this thread: the same bits and the same counts in every run.
  static std::vector<std::unique_ptr<ProcessGroup>> loop_back(int ranks);
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  // Replaces the tensor by the sum over all ranks, the same bits in each. A tensor of a card travels by the host.
  void all_reduce(const at::Tensor& tensor);
  // The same, of a contiguous tensor on the host, while the caller goes on; wait_all() waits for all that was begun.
  void begin_all_reduce(const at::Tensor& tensor);
  // The same of several in one call: Gloo packs them.
  void begin_all_reduce_together(const std::vector<at::Tensor>& tensors);
  // Replaces the tensor, contiguous and on the host, by rank 0's.
  void begin_broadcast(const at::Tensor& tensor);
  std::int64_t done() const;  // of those that were begun
  void wait_all();

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  // What was asked of all_reduce so far.
  std::int64_t calls() const { return calls_; }
  std::int64_t bytes() const { return bytes_; }

 private:
  struct Calls;
  ProcessGroup(std::unique_ptr<Calls> calls, int rank, int ranks);
  void count(const at::Tensor& tensor);

  std::unique_ptr<Calls> c10d_;
  int rank_, ranks_;
  std::int64_t calls_ = 0, bytes_ = 0;
};

}  // namespace twinbench
