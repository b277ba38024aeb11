// One rank of a data-parallel run: gradients into one arena, reduced bucket by bucket while the backward pass goes on.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "src/common/parameter_arena.h"
#include "src/energy_flow/common/window_rows.h"
#include "src/process_group.h"

namespace twinbench::energy_flow {

struct RankRule {
  double clip = 0.1, learning_rate = 2.5e-5, weight_decay = 1e-5;
  std::int64_t bucket_bytes = std::int64_t{25} << 20;
};

// Stretches of the arena that travel together, the last parameters first: whole tensors, up to the bytes or one alone.
std::vector<TensorPlace> buckets_of(const std::vector<TensorPlace>& tensors, std::int64_t bucket_bytes);

class RankTrainer {
 public:
  // `group` outlives it; null: nobody else.
  RankTrainer(ProcessGroup* group, const std::vector<TensorPlace>& tensors, std::int64_t elements, RankRule rule);

  // Adds a micro-step's gradient, the mean over its rows [elements]; where there are none nothing of it is read. The
  // last one of a window is added in the order of a backward pass, and what is complete is on its way at once.
  void micro_step(const float* gradient, std::int64_t rows, bool first, bool last);
  // Waits for the sum over all ranks; averages, clips and updates in one pass, or skips, as all ranks do.
  WindowEnd finish_window(float* parameters, float* first, float* second, std::int64_t all_rows, std::int64_t update);

  at::Tensor mean_gradient() const;            // of the last window, over all its rows
  double overlap() const { return overlap_; }  // share of the buckets reduced before the backward pass was over

 private:
  ProcessGroup* group_;
  RankRule rule_;
  at::Tensor sums_;
  std::vector<TensorPlace> buckets_;
  std::vector<at::Tensor> parts_;  // of the sums, by bucket
  std::vector<double> squares_;    // of the sums, by piece
  double overlap_ = 0, mean_of_sum_ = 1;
};

}  // namespace twinbench::energy_flow
