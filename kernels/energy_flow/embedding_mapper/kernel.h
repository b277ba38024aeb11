// The embedding mapper's last layer: blocks take pieces of rows; backward also sums over rows.
#pragma once

#include "kernels/common/activation_rows.h"
#include "kernels/common/grid.h"
#include "kernels/energy_flow/embedding_mapper/arguments.h"
#include "kernels/energy_flow/embedding_mapper/math.h"

namespace twinbench::energy_flow::embedding_mapper {

namespace simt = kernels::simt;
using kernels::Floats;
using kernels::load;

constexpr int kSurfaceThreads = 128;

// Grid: row_pieces of kCopyPiece.
struct Surface {
  static constexpr int kMaxThreads = kernels::kPieceThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const SurfaceArguments<float>& a) const {
    if (kernels::allows_four(a.width, a.product.plain, a.bias, a.cell_offset, a.surface))
      rows<4>(block, a);
    else
      rows<1>(block, a);
  }

 private:
  template <int kWidth, class Block>
  static TWINBENCH_DEVICE void rows(Block& block, const SurfaceArguments<float>& a) {
    const float scale = *a.scale, offset = *a.offset;
    for (std::int64_t row = block.index().y; row < a.rows; row += block.grid().y)
      for (std::int64_t i = simt::global_index(block); i < a.width / kWidth; i += simt::global_count(block)) {
        const std::int64_t cell = i * kWidth, at = row * a.width + cell;
        const Floats<kWidth> product = load<kWidth>(a.product.plain + at), bias = load<kWidth>(a.bias + cell);
        const Floats<kWidth> cell_offset = load<kWidth>(a.cell_offset + cell);
        Floats<kWidth> surface;
        TWINBENCH_UNROLL
        for (int k = 0; k < kWidth; ++k)
          surface.of[k] = cell_energy(kernels::tanh(product.of[k] + bias.of[k]), scale, offset, cell_offset.of[k]);
        store(a.surface + at, surface);
      }
  }
};

// Grid: pieces of kSurfacePiece along x, rows along y (striding). Block (piece, row) leaves its terms at that place of
// a [rows, pieces] matrix.
struct SurfaceBackward {
  static constexpr int kMaxThreads = kSurfaceThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const SurfaceArguments<float>& a) const {
    const bool rows_are_wide =
        a.gradient.column_stride == 1 && kernels::allows_four(a.gradient.row_stride, a.gradient.data);
    if (rows_are_wide && kernels::allows_four(a.width, a.bias) && kernels::allows_four(a.width, a.product))
      rows<4>(block, a, [&a](std::int64_t row, std::int64_t i) {
        return load<4>(a.gradient.data + row * a.gradient.row_stride + i);
      });
    else
      rows<1>(block, a, [&a](std::int64_t row, std::int64_t i) { return Floats<1>{{a.gradient.at(row, i)}}; });
  }

 private:
  template <int kWidth, class Block, class Gradient>
  static TWINBENCH_DEVICE void rows(Block& block, const SurfaceArguments<float>& a, Gradient gradient_at) {
    const int thread = simt::thread_rank(block);
    const float scale = *a.scale;
    const std::int64_t begin = block.index().x * kSurfacePiece;
    const std::int64_t end = begin + kSurfacePiece < a.width ? begin + kSurfacePiece : a.width;
    for (std::int64_t row = block.index().y; row < a.rows; row += block.grid().y) {
      float scale_term = 0.0f, offset_term = 0.0f;
      for (std::int64_t i = begin + thread * kWidth; i < end; i += kSurfaceThreads * kWidth) {
        const Floats<kWidth> gradient = gradient_at(row, i), bias = load<kWidth>(a.bias + i);
        const Floats<kWidth> product = load<kWidth>(a.product.plain + row * a.width + i);
        Floats<kWidth> result;
        TWINBENCH_UNROLL
        for (int k = 0; k < kWidth; ++k) {
          const float bounded = kernels::tanh(product.of[k] + bias.of[k]);
          scale_term = kernels::multiply_add(gradient.of[k], bounded, scale_term);
          offset_term += gradient.of[k];
          result.of[k] = cell_gradient(gradient.of[k], bounded, scale);
        }
        store(a.product, row * a.width + i, result);
      }
      scale_term = simt::block_sum(block, scale_term);
      offset_term = simt::block_sum(block, offset_term);
      if (thread == 0) {
        const std::int64_t term = row * block.grid().x + block.index().x;
        a.scale_terms[term] = scale_term;
        a.offset_terms[term] = offset_term;
      }
    }
  }
};

// Column sums, and in the first block the two scalars. With no rows the sums are zeros.
struct SurfaceColumns {
  static constexpr int kMaxThreads = kernels::kSumThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const SurfaceArguments<float>& a) const {
    if (block.index().x == 0) sum_terms(block, a);
    const bool product_is_wide = kernels::allows_four(a.width, a.product.plain);
    const bool gradient_is_wide =
        a.gradient.column_stride == 1 && kernels::allows_four(a.gradient.row_stride, a.gradient.data);
    kernels::sum_columns<2>(
        block, a.rows, a.width,
        [&](std::int64_t row, std::int64_t column) {
          kernels::ColumnTerms<2> terms{};
          terms.of[0] = kernels::load_columns(a.product.plain + row * a.width, column, a.width, product_is_wide);
          if (a.gradient.column_stride == 1)
            terms.of[1] =
                kernels::load_columns(a.gradient.data + row * a.gradient.row_stride, column, a.width, gradient_is_wide);
          else
            for (int i = 0; i < 4 && column + i < a.width; ++i) terms.of[1].of[i] = a.gradient.at(row, column + i);
          return terms;
        },
        [&](std::int64_t column, const float* sums) {
          a.grad_bias[column] = sums[0];
          a.grad_cell[column] = sums[1];
        });
  }

 private:
  template <class Block>
  static TWINBENCH_DEVICE void sum_terms(Block& block, const SurfaceArguments<float>& a) {
    const int thread = simt::thread_rank(block);
    float scale = 0.0f, offset = 0.0f;
    for (std::int64_t i = thread; i < surface_terms(a.rows, a.width); i += kMaxThreads) {
      scale += a.scale_terms[i];
      offset += a.offset_terms[i];
    }
    scale = simt::block_sum(block, scale);
    offset = simt::block_sum(block, offset);
    if (thread != 0) return;
    *a.grad_scale = scale;
    *a.grad_offset = offset;
  }
};

}  // namespace twinbench::energy_flow::embedding_mapper
