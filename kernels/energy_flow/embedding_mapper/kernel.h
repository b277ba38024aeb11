// The embedding mapper's last layer: a thread an element forward, a block a row and a thread a column backward.
#pragma once

#include "kernels/common/activation_rows.h"
#include "kernels/common/grid.h"
#include "kernels/energy_flow/embedding_mapper/arguments.h"
#include "kernels/energy_flow/embedding_mapper/math.h"

namespace twinbench::energy_flow::embedding_mapper {

namespace simt = kernels::simt;
using kernels::kElementThreads;
using kernels::kRowThreads;

// Grid strides.
struct Surface {
  static constexpr int kMaxThreads = kElementThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const SurfaceArguments<float>& a) const {
    for (std::int64_t i = simt::global_index(block); i < a.rows * a.width; i += simt::global_count(block)) {
      const std::int64_t cell = i % a.width;
      a.surface[i] =
          cell_energy(kernels::tanh(a.product.plain[i] + a.bias[cell]), *a.scale, *a.offset, a.cell_offset[cell]);
    }
  }
};

// Grid: rows.
struct SurfaceBackward {
  static constexpr int kMaxThreads = kRowThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const SurfaceArguments<float>& a) const {
    const int thread = simt::thread_rank(block);
    const std::int64_t row = block.index().x, start = row * a.width;
    float scale_term = 0.0f, offset_term = 0.0f;
    for (std::int64_t i = thread; i < a.width; i += kRowThreads) {
      const float gradient = a.gradient.at(row, i);
      const float bounded = kernels::tanh(a.product.plain[start + i] + a.bias[i]);
      scale_term = kernels::multiply_add(gradient, bounded, scale_term);
      offset_term += gradient;
      a.product.store(start + i, cell_gradient(gradient, bounded, *a.scale));
    }
    scale_term = simt::block_sum(block, scale_term);
    offset_term = simt::block_sum(block, offset_term);
    if (thread == 0) {
      a.scale_terms[row] = scale_term;
      a.offset_terms[row] = offset_term;
    }
  }
};

// A thread a column, and thread 0 of the grid the two scalars. With no rows the sums are zeros.
struct SurfaceColumns {
  static constexpr int kMaxThreads = kernels::kSumThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const SurfaceArguments<float>& a) const {
    if (simt::global_index(block) == 0) {
      float scale = 0.0f, offset = 0.0f;
      for (std::int64_t row = 0; row < a.rows; ++row) {
        scale += a.scale_terms[row];
        offset += a.offset_terms[row];
      }
      *a.grad_scale = scale;
      *a.grad_offset = offset;
    }
    kernels::sum_columns<2, 1>(
        block, a.rows, a.width,
        [&](std::int64_t row, std::int64_t column, float* sums) {
          sums[0] += a.product.plain[row * a.width + column];
          sums[1] += a.gradient.at(row, column);
        },
        [&](std::int64_t column, const float* sums) {
          a.grad_bias[column] = sums[0];
          a.grad_cell[column] = sums[1];
        });
  }
};

}  // namespace twinbench::energy_flow::embedding_mapper
