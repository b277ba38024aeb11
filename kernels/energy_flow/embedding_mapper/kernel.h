// The embedding mapper's kernels between its matrix products: a block a row where a row is reduced, else a thread an element.
#pragma once

#include "kernels/common/simt.h"
#include "kernels/energy_flow/embedding_mapper/arguments.h"
#include "kernels/energy_flow/embedding_mapper/math.h"

namespace twinbench::energy_flow::embedding_mapper {

constexpr int kRowThreads = 512;      // rows are few and long: many threads each
constexpr int kElementThreads = 256;

TWINBENCH_HOST_DEVICE void store(const Operands& to, std::int64_t at, float value) {
  if (to.bf16)
    to.bf16[at] = bf16_bits(value);
  else
    to.fp32[at] = value;
}

// Grid: gather_blocks(rows * columns).
struct Gather {
  static constexpr int kMaxThreads = kElementThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const GatherArguments& a) const {
    for (std::int64_t i = simt::global_index(block); i < a.rows * a.columns; i += simt::global_count(block))
      store(a.to, i, a.from[i / a.columns * a.row_stride + i % a.columns * a.column_stride]);
  }
};

// Grid: rows. Every thread meets only the elements it wrote itself, so the passes need no barrier of their own.
struct Activation {
  static constexpr int kMaxThreads = kRowThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const ActivationArguments& a) const {
    const int thread = simt::thread_rank(block);
    const std::int64_t row = block.index().x, start = row * a.width;
    const float count = static_cast<float>(a.width);
    float sum = 0.0f, squares = 0.0f;
    for (std::int64_t i = thread; i < a.width; i += kRowThreads) {
      const float before = a.product[start + i] + a.bias[i];
      if (a.before) a.before[start + i] = before;
      const float value = gelu(before);
      a.product[start + i] = value;
      sum += value;
    }
    const float mean = simt::block_sum(block, sum) / count;
    for (std::int64_t i = thread; i < a.width; i += kRowThreads) {
      const float deviation = a.product[start + i] - mean;
      squares = multiply_add(deviation, deviation, squares);
    }
    const float inverse = inverse_deviation(simt::block_sum(block, squares) / count, static_cast<float>(kLayerNormEpsilon));
    for (std::int64_t i = thread; i < a.width; i += kRowThreads) {
      const float normal = normalized(a.product[start + i], mean, inverse);
      a.product[start + i] = normal;
      store(a.hidden, start + i, multiply_add(normal, a.gain[i], a.shift[i]));
    }
    if (a.inverse && thread == 0) a.inverse[row] = inverse;
  }
};

// Grid: rows.
struct ActivationBackward {
  static constexpr int kMaxThreads = kRowThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const ActivationBackwardArguments& a) const {
    const int thread = simt::thread_rank(block);
    const std::int64_t row = block.index().x, start = row * a.width;
    const float count = static_cast<float>(a.width);
    float sum = 0.0f, sum_normal = 0.0f;
    for (std::int64_t i = thread; i < a.width; i += kRowThreads) {
      const float gradient = a.grad_hidden[start + i] * a.gain[i];
      sum += gradient;
      sum_normal = multiply_add(gradient, a.normal[start + i], sum_normal);
    }
    const float mean = simt::block_sum(block, sum) / count;
    const float mean_normal = simt::block_sum(block, sum_normal) / count;
    for (std::int64_t i = thread; i < a.width; i += kRowThreads) {
      const float gradient = layer_norm_input_gradient(a.grad_hidden[start + i] * a.gain[i], mean, a.normal[start + i],
                                                       mean_normal, a.inverse[row]) *
                             gelu_derivative(a.before[start + i]);
      a.grad_product[start + i] = gradient;
      if (a.operands.bf16) store(a.operands, start + i, gradient);
    }
  }
};

// A thread a column; rows ascending, so the sums are reproducible.
struct ActivationColumns {
  static constexpr int kMaxThreads = kElementThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const ActivationBackwardArguments& a) const {
    const std::int64_t column = simt::global_index(block);
    if (column >= a.width) return;
    float bias = 0.0f, gain = 0.0f, shift = 0.0f;
    for (std::int64_t i = column; i < a.rows * a.width; i += a.width) {
      bias += a.grad_product[i];
      gain = multiply_add(a.grad_hidden[i], a.normal[i], gain);
      shift += a.grad_hidden[i];
    }
    a.grad_bias[column] = bias;
    a.grad_gain[column] = gain;
    a.grad_shift[column] = shift;
  }
};

// Grid: gather_blocks(rows * width).
struct Surface {
  static constexpr int kMaxThreads = kElementThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const SurfaceArguments& a) const {
    for (std::int64_t i = simt::global_index(block); i < a.rows * a.width; i += simt::global_count(block)) {
      const std::int64_t cell = i % a.width;
      a.surface[i] = cell_energy(tanh(a.product[i] + a.bias[cell]), *a.scale, *a.offset, a.cell_offset[cell]);
    }
  }
};

// Grid: rows.
struct SurfaceBackward {
  static constexpr int kMaxThreads = kRowThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const SurfaceBackwardArguments& a) const {
    const int thread = simt::thread_rank(block);
    const std::int64_t row = block.index().x, start = row * a.width;
    float scale_term = 0.0f, offset_term = 0.0f;
    for (std::int64_t i = thread; i < a.width; i += kRowThreads) {
      const float gradient = a.gradient[row * a.gradient_row_stride + i * a.gradient_column_stride];
      const float bounded = tanh(a.product[start + i] + a.bias[i]);
      const float product = cell_gradient(gradient, bounded, *a.scale);
      scale_term = multiply_add(gradient, bounded, scale_term);
      offset_term += gradient;
      a.product[start + i] = product;
      if (a.operands.bf16) store(a.operands, start + i, product);
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
  static constexpr int kMaxThreads = kElementThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const SurfaceBackwardArguments& a) const {
    const std::int64_t column = simt::global_index(block);
    if (column == 0) {
      float scale = 0.0f, offset = 0.0f;
      for (std::int64_t row = 0; row < a.rows; ++row) {
        scale += a.scale_terms[row];
        offset += a.offset_terms[row];
      }
      *a.grad_scale = scale;
      *a.grad_offset = offset;
    }
    if (column >= a.width) return;
    float bias = 0.0f, cell = 0.0f;
    for (std::int64_t row = 0; row < a.rows; ++row) {
      bias += a.product[row * a.width + column];
      cell += a.gradient[row * a.gradient_row_stride + column * a.gradient_column_stride];
    }
    a.grad_bias[column] = bias;
    a.grad_cell[column] = cell;
  }
};

// Blocks of kElementThreads for `elements`, capped: the kernels stride.
inline std::int64_t gather_blocks(std::int64_t elements) {
  const std::int64_t blocks = (elements + kElementThreads - 1) / kElementThreads;
  return blocks < 4096 ? blocks : 4096;
}
inline std::int64_t column_blocks(std::int64_t columns) { return (columns + kElementThreads - 1) / kElementThreads; }

}  // namespace twinbench::energy_flow::embedding_mapper
