// Kernels of the text encoder between its products and its attention: elements, rows that are normalised, sums.
#pragma once

#include "kernels/common/column_sums.h"
#include "kernels/common/grid.h"
#include "kernels/common/moments.h"
#include "kernels/common/vectors.h"
#include "kernels/energy_flow/common/encoder_rows.h"

namespace twinbench::energy_flow {

namespace simt = kernels::simt;

constexpr int kNormThreads = 256;  // a warp a row

// Grid: striding blocks over all elements, for the kernels of elements.
struct EncoderEmbed {
  static constexpr int kMaxThreads = kernels::kElementThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const EmbedArguments<float>& a) const {
    for (std::int64_t i = simt::global_index(block); i < a.rows * a.width; i += simt::global_count(block)) {
      const std::int64_t row = i / a.width, column = i % a.width;
      const std::int64_t word = a.tokens.id[row], place = a.tokens.place[row];
      a.out.store(i, a.embedding[word * a.width + column] + a.position[place * a.width + column]);
    }
  }
};

struct EncoderClear {
  static constexpr int kMaxThreads = kernels::kElementThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const ClearArguments& a) const {
    for (std::int64_t i = simt::global_index(block); i < a.rows * a.width; i += simt::global_count(block))
      if (!is_of_text(a.tokens, i / a.width)) a.values[i] = 0.0f;
  }
};

struct EncoderElements {
  static constexpr int kMaxThreads = kernels::kElementThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const ElementArguments<float>& a) const {
    for (std::int64_t i = simt::global_index(block); i < a.rows * a.width; i += simt::global_count(block)) {
      const std::int64_t row = i / a.width, column = i % a.width;
      const float bias = a.bias ? a.bias[column] : 0.0f;
      const float gradient = a.gradient.data ? a.gradient.at(row, column) : 0.0f;
      const float value = encoder_element(a.step, a.product[i], bias, gradient);
      a.out.store(i, a.dropout.on ? a.dropout.kept(value, row, column) : value);
    }
  }
};

struct EncoderMeanBack {
  static constexpr int kMaxThreads = kernels::kElementThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const MeanArguments<float>& a) const {
    for (std::int64_t i = simt::global_index(block); i < a.rows * a.width; i += simt::global_count(block)) {
      const std::int64_t text = a.tokens.text[i / a.width];
      a.grad_x[i] = is_of_text(a.tokens, i / a.width)
                        ? a.gradient[text * a.width + i % a.width] / static_cast<float>(a.tokens.length[text])
                        : 0.0f;
    }
  }
};

// Grid: blocks of kElementThreads columns along x, texts along y.
struct EncoderMean {
  static constexpr int kMaxThreads = kernels::kElementThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const MeanArguments<float>& a) const {
    const std::int64_t column = simt::global_index(block), text = block.index().y;
    if (column >= a.width) return;
    const std::int64_t first = a.tokens.first_row[text], length = a.tokens.length[text];
    float sum = 0.0f;
    for (std::int64_t row = first; row < first + length; ++row) sum += a.x[row * a.width + column];
    a.out.store(text * a.width + column, sum / static_cast<float>(length));
  }
};

// Grid: warp_blocks, a warp a row.
struct EncoderNorm {
  static constexpr int kMaxThreads = kNormThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const ResidualNorm<float>& a) const {
    const std::int64_t row = simt::global_index(block) / simt::kWarpSize;
    if (row >= a.rows) return;  // the whole warp
    const auto count = static_cast<float>(a.width);
    float sum = 0.0f, squares = 0.0f;
    for (std::int64_t i = simt::lane(block); i < a.width; i += simt::kWarpSize) sum += a.summand(row, i);
    const float mean = simt::warp_sum(block, sum) / count;
    for (std::int64_t i = simt::lane(block); i < a.width; i += simt::kWarpSize) {
      const float away = a.summand(row, i) - mean;
      squares = kernels::multiply_add(away, away, squares);
    }
    const float inverse = kernels::inverse_deviation(simt::warp_sum(block, squares) / count);
    for (std::int64_t i = simt::lane(block); i < a.width; i += simt::kWarpSize) {
      const float normal = kernels::normalized(a.summand(row, i), mean, inverse);
      if (a.normal) a.normal[row * a.width + i] = normal;
      a.out.store(row * a.width + i, kernels::scaled(normal, a.gain[i], a.shift[i]));
    }
    if (a.inverse && simt::lane(block) == 0) a.inverse[row] = inverse;
  }
};

TWINBENCH_DEVICE float gradient_of_norm(const ResidualNorm<float>& a, std::int64_t at) {
  return a.other_gradient ? a.gradient[at] + a.other_gradient[at] : a.gradient[at];
}

// Grid as above.
struct EncoderNormBack {
  static constexpr int kMaxThreads = kNormThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const ResidualNorm<float>& a) const {
    const std::int64_t row = simt::global_index(block) / simt::kWarpSize;
    if (row >= a.rows) return;  // the whole warp
    const std::int64_t start = row * a.width;
    float total = 0.0f, with_normal = 0.0f;
    for (std::int64_t i = simt::lane(block); i < a.width; i += simt::kWarpSize) {
      const float gradient = gradient_of_norm(a, start + i) * a.gain[i];
      total += gradient;
      with_normal = kernels::multiply_add(gradient, a.normal[start + i], with_normal);
    }
    const auto count = static_cast<float>(a.width);
    const float mean = simt::warp_sum(block, total) / count, mean_normal = simt::warp_sum(block, with_normal) / count;
    const float inverse = a.inverse[row];
    for (std::int64_t i = simt::lane(block); i < a.width; i += simt::kWarpSize) {
      const float sum = kernels::layer_norm_input_gradient(gradient_of_norm(a, start + i) * a.gain[i], mean,
                                                           a.normal[start + i], mean_normal, inverse);
      a.grad_sum[start + i] = sum;
      a.grad_product.store(start + i, a.kept(sum, row, i));
    }
  }
};

// Grid: blocks_of(width, kSumColumns).
struct EncoderNormColumns {
  static constexpr int kMaxThreads = kernels::kSumThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const ResidualNorm<float>& a) const {
    const float* const product = a.grad_product.plain ? a.grad_product.plain : a.grad_sum;
    const bool wide = kernels::allows_four(a.width, product, a.gradient, a.other_gradient, a.normal);
    kernels::sum_columns<3>(
        block, a.rows, a.width,
        [&](std::int64_t row, std::int64_t column) {
          const auto columns = [&](const float* rows) {
            return kernels::load_columns(rows + row * a.width, column, a.width, wide);
          };
          kernels::Floats<4> gradient = columns(a.gradient);
          if (a.other_gradient)
            gradient =
                kernels::map(gradient, columns(a.other_gradient), [](float g, float other) { return g + other; });
          return kernels::ColumnTerms<3>{
              {columns(product),
               kernels::map(gradient, columns(a.normal), [](float g, float normal) { return g * normal; }), gradient}};
        },
        [&](std::int64_t column, const float* sums) {
          if (a.grad_bias) a.grad_bias[column] = sums[0];
          a.grad_gain[column] = sums[1];
          a.grad_shift[column] = sums[2];
        });
  }
};

}  // namespace twinbench::energy_flow
