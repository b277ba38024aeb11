// Kernels of a bias-GELU-LayerNorm layer: forward, backward, and the column sums of the backward pass.
//
// Rows are few and long, so several blocks share one: each reads the whole row (from the L2 cache) for its moments and
// writes a piece of it. Nothing is read that another block writes.
#pragma once

#include "kernels/common/column_sums.h"
#include "kernels/common/grid.h"
#include "kernels/common/layer_norm.h"
#include "kernels/common/moments.h"
#include "kernels/common/short_math.h"
#include "kernels/common/vectors.h"

namespace twinbench::kernels {

constexpr int kRowThreads = 512;
constexpr int kRowPiece = 512;  // elements of a row that one block writes
constexpr int kRowBatch = 4;    // accesses of a thread in flight

// The whole row, or this block's piece of it, in vectors.
struct RowRange {
  std::int64_t begin, end;
};
template <int kWidth, class Block>
TWINBENCH_DEVICE RowRange piece_of_row(const Block& block, std::int64_t width) {
  const std::int64_t begin = static_cast<std::int64_t>(block.index().x) * (kRowPiece / kWidth), all = width / kWidth;
  return {begin, begin + kRowPiece / kWidth < all ? begin + kRowPiece / kWidth : all};
}

// Grid: row_pieces of kRowPiece.
struct Activation {
  static constexpr int kMaxThreads = kRowThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const ActivationLayer<float>& a) const {
    if (allows_four(a.width, a.product, a.bias, a.gain, a.shift, a.normal) && allows_four(a.width, a.hidden))
      rows<4>(block, a);
    else
      rows<1>(block, a);
  }

 private:
  template <int kWidth>
  static TWINBENCH_DEVICE Floats<kWidth> activated(const ActivationLayer<float>& a, std::int64_t start,
                                                   std::int64_t at) {
    return map(load<kWidth>(a.product + start + at), load<kWidth>(a.bias + at),
               [](float product, float bias) { return short_gelu(product + bias); });
  }

  template <int kWidth, class Block>
  static TWINBENCH_DEVICE void rows(Block& block, const ActivationLayer<float>& a) {
    const int thread = simt::thread_rank(block);
    for (std::int64_t row = block.index().y; row < a.rows; row += block.grid().y) {
      const std::int64_t start = row * a.width;
      Moments<float> own;
      in_batches<kRowBatch, std::int64_t>(
          thread, kRowThreads, a.width / kWidth,
          [&](std::int64_t i) { return activated<kWidth>(a, start, i * kWidth); },
          [&](std::int64_t, const Floats<kWidth>& values) { own = merge(own, moments_of(values)); });
      const Moments<float> moments = block_moments(block, own, static_cast<float>(a.width));
      const float inverse = inverse_deviation(moments.variance());
      const RowRange piece = piece_of_row<kWidth>(block, a.width);
      for (std::int64_t i = piece.begin + thread; i < piece.end; i += kRowThreads) {
        const std::int64_t at = i * kWidth;
        const Floats<kWidth> gain = load<kWidth>(a.gain + at), shift = load<kWidth>(a.shift + at);
        const Floats<kWidth> normal =
            map(activated<kWidth>(a, start, at), [&](float x) { return normalized(x, moments.mean, inverse); });
        if (a.normal) store(a.normal + start + at, normal);
        Floats<kWidth> hidden;
        TWINBENCH_UNROLL
        for (int k = 0; k < kWidth; ++k) hidden.of[k] = scaled(normal.of[k], gain.of[k], shift.of[k]);
        store(a.hidden, start + at, hidden);
      }
      if (a.inverse && thread == 0 && block.index().x == 0) a.inverse[row] = inverse;
    }
  }
};

// Grid as above.
struct ActivationBackward {
  static constexpr int kMaxThreads = kRowThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const ActivationLayer<float>& a) const {
    if (allows_four(a.width, a.product, a.bias, a.gain, a.normal, a.grad_hidden) &&
        allows_four(a.width, a.grad_product))
      rows<4>(block, a);
    else
      rows<1>(block, a);
  }

 private:
  template <int kWidth>
  struct Terms {
    Floats<kWidth> gradient, normal;
  };
  template <int kWidth>
  static TWINBENCH_DEVICE Terms<kWidth> terms(const ActivationLayer<float>& a, std::int64_t start, std::int64_t at) {
    return {map(load<kWidth>(a.grad_hidden + start + at), load<kWidth>(a.gain + at),
                [](float gradient, float gain) { return gradient * gain; }),
            load<kWidth>(a.normal + start + at)};
  }

  template <int kWidth, class Block>
  static TWINBENCH_DEVICE void rows(Block& block, const ActivationLayer<float>& a) {
    const int thread = simt::thread_rank(block);
    const float count = static_cast<float>(a.width);
    for (std::int64_t row = block.index().y; row < a.rows; row += block.grid().y) {
      const std::int64_t start = row * a.width;
      float sum = 0.0f, sum_normal = 0.0f;
      in_batches<kRowBatch, std::int64_t>(
          thread, kRowThreads, a.width / kWidth, [&](std::int64_t i) { return terms<kWidth>(a, start, i * kWidth); },
          [&](std::int64_t, const Terms<kWidth>& t) {
            TWINBENCH_UNROLL
            for (int k = 0; k < kWidth; ++k) {
              sum += t.gradient.of[k];
              sum_normal = multiply_add(t.gradient.of[k], t.normal.of[k], sum_normal);
            }
          });
      const float mean = simt::block_sum(block, sum) / count;
      const float mean_normal = simt::block_sum(block, sum_normal) / count;
      const float inverse = a.inverse[row];
      const RowRange piece = piece_of_row<kWidth>(block, a.width);
      for (std::int64_t i = piece.begin + thread; i < piece.end; i += kRowThreads) {
        const std::int64_t at = i * kWidth;
        const Terms<kWidth> t = terms<kWidth>(a, start, at);
        const Floats<kWidth> before = map(load<kWidth>(a.product + start + at), load<kWidth>(a.bias + at),
                                          [](float product, float bias) { return product + bias; });
        Floats<kWidth> gradient;
        TWINBENCH_UNROLL
        for (int k = 0; k < kWidth; ++k)
          gradient.of[k] = layer_norm_input_gradient(t.gradient.of[k], mean, t.normal.of[k], mean_normal, inverse) *
                           short_gelu_and_slope(before.of[k]).slope;
        store(a.grad_product, start + at, gradient);
      }
    }
  }
};

struct ActivationColumns {
  static constexpr int kMaxThreads = kSumThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const ActivationLayer<float>& a) const {
    const bool wide = allows_four(a.width, a.grad_product.plain, a.grad_hidden, a.normal);
    sum_columns<3>(
        block, a.rows, a.width,
        [&](std::int64_t row, std::int64_t column) {
          const auto columns = [&](const float* rows) {
            return load_columns(rows + row * a.width, column, a.width, wide);
          };
          const Floats<4> gradient = columns(a.grad_hidden);
          return ColumnTerms<3>{{columns(a.grad_product.plain),
                                 map(gradient, columns(a.normal), [](float g, float normal) { return g * normal; }),
                                 gradient}};
        },
        [&](std::int64_t column, const float* sums) {
          a.grad_bias[column] = sums[0];
          a.grad_gain[column] = sums[1];
          a.grad_shift[column] = sums[2];
        });
  }
};

}  // namespace twinbench::kernels
