// Arguments and launchers of sem.complex_adamw's kernels. No CUDA headers, so that optimized/ stays host-compiled.
#pragma once

#include <cstdint>

#include "kernels/common/arguments.h"
#include "kernels/sem/complex_adamw/math.h"

namespace twinbench::sem::complex_adamw {

// A piece of the arena that one block (and one thread of the CPU) takes: neighbouring elements of one kind.
struct alignas(16) Piece {
  std::int64_t first = 0;    // element of the arena
  std::int64_t second = 0;   // its second moment
  std::int64_t partner = 0;  // how far the imaginary part lies behind the real one; 0: plain
  std::int64_t element = 0;  // of its tensor, where the noise needs to know
  std::int32_t count = 0;
  std::uint32_t stream = 0;  // of the tensor's noise; the partner's is the next one
};

using kernels::kMostNormBlocks;

// One step.
struct Arguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  const Piece* pieces = nullptr;  // [count]
  std::int64_t count = 0;
  Rule rule = {};
  bool clears = true;
  std::uint64_t seed = 0;
  float *parameters = nullptr, *gradients = nullptr, *first_moment = nullptr, *second_moment = nullptr;
  const float *learning_rate = nullptr, *loss = nullptr;  // [1]
  std::int64_t *counts = nullptr, *status = nullptr;      // [3], [1]
  double *norm = nullptr, *coefficient = nullptr;         // [1]
  double* partial = nullptr;                              // [kMostNormBlocks]
  unsigned* arrived = nullptr;                            // [1], 0 between launches
  Step* step = nullptr;                                   // [1]: what the first kernel leaves to the second
};

// Two kernels, the second none where there are no pieces: the norm and the decision, then the update, which clears or
// clips the gradients. Nothing is read by the host. Throws CudaError if a launch is refused.
void launch(const Arguments& arguments, kernels::Stream stream);

}  // namespace twinbench::sem::complex_adamw
