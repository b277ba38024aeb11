// Kernels of a bias-GELU-LayerNorm layer, a block a row: forward, backward, and the column sums of the backward pass.
#pragma once

#include "kernels/common/column_sums.h"
#include "kernels/common/layer_norm.h"
#include "kernels/common/math.h"

namespace twinbench::kernels {

constexpr int kRowThreads = 512;  // rows are few and long: many threads each

// Grid: rows. Every thread meets only the elements it wrote itself, so the passes need no barrier of their own.
struct Activation {
  static constexpr int kMaxThreads = kRowThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const ActivationLayer<float>& a) const {
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
    const float inverse = inverse_deviation(simt::block_sum(block, squares) / count);
    for (std::int64_t i = thread; i < a.width; i += kRowThreads) {
      const float normal = normalized(a.product[start + i], mean, inverse);
      a.product[start + i] = normal;
      a.hidden.store(start + i, scaled(normal, a.gain[i], a.shift[i]));
    }
    if (a.inverse && thread == 0) a.inverse[row] = inverse;
  }
};

// Grid: rows.
struct ActivationBackward {
  static constexpr int kMaxThreads = kRowThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const ActivationLayer<float>& a) const {
    const int thread = simt::thread_rank(block);
    const std::int64_t row = block.index().x, start = row * a.width;
    const float count = static_cast<float>(a.width);
    float sum = 0.0f, sum_normal = 0.0f;
    for (std::int64_t i = thread; i < a.width; i += kRowThreads) {
      const float gradient = a.grad_hidden[start + i] * a.gain[i];
      sum += gradient;
      sum_normal = multiply_add(gradient, a.product[start + i], sum_normal);
    }
    const float mean = simt::block_sum(block, sum) / count;
    const float mean_normal = simt::block_sum(block, sum_normal) / count;
    for (std::int64_t i = thread; i < a.width; i += kRowThreads)
      a.grad_product.store(start + i, layer_norm_input_gradient(a.grad_hidden[start + i] * a.gain[i], mean,
                                                                a.product[start + i], mean_normal, a.inverse[row]) *
                                          gelu_derivative(a.before[start + i]));
  }
};

// A thread a column.
struct ActivationColumns {
  static constexpr int kMaxThreads = kSumThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const ActivationLayer<float>& a) const {
    sum_columns<3, 1>(
        block, a.rows, a.width,
        [&](std::int64_t row, std::int64_t column, float* sums) {
          const std::int64_t i = row * a.width + column;
          sums[0] += a.grad_product.plain[i];
          sums[1] = multiply_add(a.grad_hidden[i], a.product[i], sums[1]);
          sums[2] += a.grad_hidden[i];
        },
        [&](std::int64_t column, const float* sums) {
          a.grad_bias[column] = sums[0];
          a.grad_gain[column] = sums[1];
          a.grad_shift[column] = sums[2];
        });
  }
};

}  // namespace twinbench::kernels
