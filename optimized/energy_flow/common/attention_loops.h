// Attention on the CPU: tiles of queries in vector lanes, keys in blocks, online softmax; forward and back.
#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/energy_flow/common/attention.h"
#include "optimized/common/rows.h"

namespace twinbench::energy_flow {

// Set up once for sizes and threads; runs allocate nothing. Results do not depend on the number of threads.
template <class Real>
class AttentionLoops {
 public:
  // `width` of a head; at most `keys` keys and queries.
  AttentionLoops(std::int64_t heads_of_all, std::int64_t queries, std::int64_t keys, std::int64_t width, bool backward);

  void forward(const Attention<Real>& attention) const;
  void backward(const Attention<Real>& attention) const;  // after forward() with largest and denominator

 private:
  std::int64_t tiles_;  // of a head's queries
  Pieces tile_pieces_, head_pieces_;
  std::int64_t floats_;  // of a piece
  at::Tensor scratch_;
};

}  // namespace twinbench::energy_flow
