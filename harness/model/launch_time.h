// Modelled times, not measured ones: of a kernel's launch from what was counted, of a library product from its shape.
//
// A launch takes its cost plus the longest of what the parts of a card need for it; which part that is, is the limiter.
// Accuracy: about 40 % (the constants; what a compiler merges or hoists; cache hits beyond those counted).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "harness/model/card.h"

namespace twinbench::model {

// What a launch does. Totals of the whole grid.
struct LaunchWork {
  double blocks = 0, threads_per_block = 0;
  double warps_per_multiprocessor = 0;  // occupancy: as many as registers and shared memory let be resident
  double memory_bytes = 0;              // that DRAM moves at least
  double sectors = 0;                   // of 32 bytes, that L2 moves
  double wavefronts = 0;                // of shared memory
  double instructions = 0, fma_instructions = 0, special_instructions = 0;  // of warps
  double load_requests = 0;                                                 // of warps, to global memory
  double loads_in_flight = 1;             // of one warp, before it waits for the first
  double copy_requests = 0;               // of warps: asynchronous copies of global to shared memory
  double copies_in_flight = 1;            // of one warp, before it waits for the first
  double bf16_flops = 0, tf32_flops = 0;  // of tensor-core instructions
  double barriers = 0;                    // of blocks
  double warp_operations = 0;             // shuffles, ballots, warp barriers
  double dependent_instructions = 0;      // the longest chain of arithmetic in one warp, where known
  std::vector<double> executions;         // by warps, of each piece of the machine code (ci/kernel_sass.json)
  double known_share = 1;                 // of the counted accesses, by words: those whose machine code is known
  bool in_l2 = false;                     // what it reads is still in L2
};

struct ModelledTime {
  double seconds = 0;
  std::string limiter;                                // of terms: the longest
  std::vector<std::pair<std::string, double>> terms;  // name -> seconds, without the launch's cost
};
ModelledTime time_of(const Card& card, const LaunchWork& work);

// A product [rows, inner] x [inner, columns], `batch` times; "bf16", "tf32" or "fp32" operands, fp32 results.
struct ProductWork {
  std::int64_t batch = 1, rows = 0, inner = 0, columns = 0;
  std::string dtype;
};
// The best tile and split of the inner axis, with the multiprocessors that the last wave leaves idle. Throws kBadDtype.
ModelledTime time_of(const Card& card, const ProductWork& work);

// From "mm 64x65x192 bf16" or "bmm 2x64x65x192 fp32". Throws kBadShape.
ProductWork product_of(const std::string& name);

}  // namespace twinbench::model
