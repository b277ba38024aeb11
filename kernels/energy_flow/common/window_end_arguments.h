// What ends an optimizer window (C25, C26), and its launcher; in the namespace that had it first. No CUDA headers.
#pragma once

#include <cstdint>

#include "kernels/common/arguments.h"
#include "kernels/energy_flow/common/window_end.h"

namespace twinbench::energy_flow::optimizer {

// Neighbouring elements of the arena that have a gradient, at most kernels::kPieceElements.
struct alignas(16) Piece {
  std::int64_t first = 0;
  std::int32_t count = 0;
  std::int32_t unused = 0;
};

// One window's end.
struct Arguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  const Piece* pieces = nullptr;  // [count]
  std::int64_t count = 0;
  Rule rule = {};
  bool clears = true;
  float *parameters = nullptr, *gradients = nullptr, *first_moment = nullptr, *second_moment = nullptr;
  const float* factor = nullptr;                      // [1]
  const std::int64_t* micro_steps = nullptr;          // [1]
  const double* epoch_loss = nullptr;                 // [1] where the window is its epoch's last, else null
  double* schedule = nullptr;                         // [2]: learning rate, best loss
  std::int64_t *counts = nullptr, *status = nullptr;  // [3], [1]
  double *norm = nullptr, *coefficient = nullptr, *learning_rate = nullptr;  // [1]
  double* partial = nullptr;                                                 // [kernels::kMostNormBlocks]
  unsigned* arrived = nullptr;                                               // [1], 0 between launches
  Step* step = nullptr;  // [1]: what the first kernel leaves to the second
};

// What the end of a window leaves: counts, schedule, the window's results. `root_of_squares`: of the gradients as they
// lie there. Shared by CPU and GPU.
TWINBENCH_HOST_DEVICE Step end_window(const Arguments& a, double root_of_squares) {
  const Window window{*a.factor, *a.micro_steps};
  const double norm = kernels::absolute(static_cast<double>(window.factor)) * root_of_squares;
  Counts counts{a.counts[0], a.counts[1], a.counts[2]};
  Schedule schedule{a.schedule[0], a.schedule[1]};
  Outcome outcome{};
  const Step step = decided(a.rule, window, norm, schedule.rate, counts, outcome);
  *a.status = outcome.status;
  *a.norm = norm;
  *a.coefficient = outcome.coefficient;
  *a.learning_rate = schedule.rate;
  if (a.epoch_loss != nullptr) end_epoch(*a.epoch_loss, schedule, counts);
  a.counts[0] = counts.applied;
  a.counts[1] = counts.skipped;
  a.counts[2] = counts.bad_epochs;
  a.schedule[0] = schedule.rate;
  a.schedule[1] = schedule.best;
  return step;
}

// Two kernels, the second none where there are no pieces: the norm and the decision, then the update, which clears or
// clips the gradients. Nothing is read by the host. Throws CudaError if a launch is refused.
void launch(const Arguments& arguments, kernels::Stream stream);

}  // namespace twinbench::energy_flow::optimizer
