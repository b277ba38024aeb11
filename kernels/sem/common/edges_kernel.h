// The edges' part of a kernel (sem C06, C02): from the product of a step's factors to the parameters' gradients.
#pragma once

#include "kernels/common/simt_handover.h"
#include "kernels/common/vectors.h"
#include "kernels/sem/common/edges.h"

namespace twinbench::sem {

// A lane a scale.
template <class Block>
TWINBENCH_DEVICE void mix_backward(Block& block, const EdgeArguments& a, unsigned blocks) {
  if (kernels::simt::warp(block) != 0) return;
  const int scale = kernels::simt::lane(block);
  float sum = 0.0f, share = 0.0f;
  if (scale < a.scales) {
    share = a.shares[scale];
    for (unsigned i = 0; i < blocks; ++i) sum += a.share_terms[std::int64_t{i} * a.scales + scale];
  }
  const float mean = kernels::simt::warp_sum(block, share * sum);
  if (scale < a.scales) a.grad_mix[scale] = share * (sum - mean);
}

// Block `index` of edge_blocks, kEdgeThreads threads each, a thread an edge; each block leaves its terms of the shares,
// the last one adds them up.
template <class Block>
TWINBENCH_DEVICE void edges_backward(Block& block, const EdgeArguments& a, unsigned index, unsigned blocks) {
  const std::int64_t edge = std::int64_t{index} * kEdgeThreads + kernels::simt::thread_rank(block);
  float of_share = 0.0f;
  int scale = -1;
  if (edge < a.edges) {
    const auto pair = kernels::load<2>(a.nodes + 2 * edge);
    const float across = across_edge<float>(a.product, a.dim, pair.of[0], pair.of[1]);
    a.grad_theta[edge] = a.of_theta[edge] * across;
    of_share = a.of_share[edge] * across;
    scale = a.scale[edge];
  }
  for (int s = 0; s < a.scales; ++s) {
    const float sum = kernels::simt::block_sum(block, scale == s ? of_share : 0.0f);
    if (kernels::simt::thread_rank(block) == 0) a.share_terms[std::int64_t{index} * a.scales + s] = sum;
  }
  if (kernels::simt::is_last_block(block, a.finished, blocks)) mix_backward(block, a, blocks);
}

}  // namespace twinbench::sem
