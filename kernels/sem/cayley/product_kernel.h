// A block's rows times the unitary matrix on tensor cores: operands in halves, sums in fp32.
//
// The rows lie in shared memory, whole, so that each is read and turned once; the matrix comes from the second-level
// cache in the order in which lanes take it, each part to one warp of the block. Rows are scaled by powers of two.
#pragma once

#include "kernels/common/simt_mma_half.h"
#include "kernels/common/vectors.h"
#include "kernels/sem/cayley/arguments.h"
#include "kernels/sem/cayley/math.h"

namespace twinbench::sem::cayley {

namespace simt = kernels::simt;

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / simt::kWarpSize;
constexpr int kMostPairs = kMostDim / (2 * simt::kWarpSize);  // of neighbouring columns, of a lane

using Pair = kernels::Floats<2>;

// A lane's columns of a row: pair p is columns 2 * (lane + 32 * p) and the next one.
struct LanePairs {
  Pair re[kMostPairs], im[kMostPairs];
};

// One plane's pair from column `column` on, zeros past the last column. kWide: dim is even and rows start at multiples
// of eight bytes, so that a pair is one access.
template <bool kWide>
TWINBENCH_DEVICE Pair load_pair(const float* row, int column, int dim) {
  Pair pair{};
  if constexpr (kWide) {
    if (column < dim) pair = kernels::load<2>(row + column);
  } else {
    if (column < dim) pair.of[0] = row[column];
    if (column + 1 < dim) pair.of[1] = row[column + 1];
  }
  return pair;
}
template <bool kWide>
TWINBENCH_DEVICE void store_pair(float* row, int column, int dim, const Pair& pair) {
  if constexpr (kWide) {
    if (column < dim) kernels::store(row + column, pair);
  } else {
    if (column < dim) row[column] = pair.of[0];
    if (column + 1 < dim) row[column + 1] = pair.of[1];
  }
}

template <bool kWide>
TWINBENCH_DEVICE void load_row(const float* field, std::int64_t rows, std::int64_t row, int dim, int lane,
                               LanePairs& values) {
  TWINBENCH_UNROLL
  for (int p = 0; p < kMostPairs; ++p) {
    const int column = 2 * (lane + simt::kWarpSize * p);
    values.re[p] = load_pair<kWide>(field + row * dim, column, dim);
    values.im[p] = load_pair<kWide>(field + (rows + row) * dim, column, dim);
  }
}

template <class Block>
TWINBENCH_DEVICE float mean_square(Block& block, const LanePairs& values, int dim) {
  float sum = 0.0f;
  TWINBENCH_UNROLL
  for (int p = 0; p < kMostPairs; ++p) {
    TWINBENCH_UNROLL
    for (int i = 0; i < 2; ++i)
      sum += values.re[p].of[i] * values.re[p].of[i] + values.im[p].of[i] * values.im[p].of[i];
  }
  return simt::warp_sum(block, sum) / static_cast<float>(dim);
}

// The power of two that brings a row of this mean square to a mean of 1 to 4, and its inverse: exact both.
struct RowScale {
  float to, back;
};
TWINBENCH_DEVICE RowScale row_scale(float mean) {
  const int exponent = (static_cast<int>(kernels::bits_of(mean) >> 23 & 255u) - 127) >> 1;  // -64 for zero rows
  return {kernels::float_of_bits(static_cast<std::uint32_t>(127 - exponent) << 23),
          kernels::float_of_bits(static_cast<std::uint32_t>(127 + exponent) << 23)};
}

// Shared memory: the operand's planes [real high, imaginary high, real low, imaginary low][rows][pitch] in halves. Rows
// are eight halves longer than their columns, so that eight rows of a matrix load meet all banks once.
template <Operand kOperand>
struct OperandTile {
  static constexpr int kRows = rows_of(kOperand), kRowTiles = kRows / 16, kPlanes = kOperand == Operand::kSplit ? 4 : 2;
  TWINBENCH_HOST_DEVICE static int pitch(int dim) { return static_cast<int>(padded(dim)) + 8; }
  TWINBENCH_HOST_DEVICE static std::int64_t bytes(int dim) { return std::int64_t{2} * kPlanes * kRows * pitch(dim); }

  // Writes a row's pair; `words` counts pairs.
  template <class Shared>
  TWINBENCH_DEVICE static void store(Shared words, int pitch, int row, int column, const Pair& re, const Pair& im) {
    const int at = (row * pitch + column) / 2, plane = kRows * pitch / 2;
    const std::uint32_t high[2] = {kernels::half_pair(re.of[0], re.of[1]), kernels::half_pair(im.of[0], im.of[1])};
    TWINBENCH_UNROLL
    for (int part = 0; part < 2; ++part) {
      words[part * plane + at] = high[part];
      if constexpr (kOperand == Operand::kSplit) {
        const Pair& value = part == 0 ? re : im;
        const float low[2] = {
            value.of[0] - kernels::float_of_half_bits(static_cast<std::uint16_t>(high[part] & 0xffffu)),
            value.of[1] - kernels::float_of_half_bits(static_cast<std::uint16_t>(high[part] >> 16))};
        words[(2 + part) * plane + at] = kernels::half_pair(low[0], low[1]);
      }
    }
  }
};

// Sixteen columns of the product for all rows of the block.
template <Operand kOperand, bool kConjugate>
struct ColumnProduct {
  using Tile = OperandTile<kOperand>;
  static constexpr bool kSplit = kOperand == Operand::kSplit;
  static constexpr int kVectors = kSplit ? 4 : 2;
  // Tensor cores cut what does not fit into a sum instead of rounding it: split products are added to rounded sums
  // after so many inner steps.
  static constexpr int kChunk = 2;

  struct Sums {
    simt::TileSum of[Tile::kRowTiles][2][2];  // tile of rows, of columns, part
  };
  struct Matrix {
    kernels::Vector<std::uint32_t, 4> of[kVectors];
  };
  struct Left {
    simt::LeftTile of[Tile::kPlanes];
  };

  static TWINBENCH_DEVICE Matrix load(const std::uint32_t* packed, int step, int lane) {
    Matrix matrix;
    TWINBENCH_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const auto* const from = packed + (std::int64_t{step} * kVectors + v) * 4 * simt::kWarpSize + 4 * lane;
      const kernels::Floats<4> words = kernels::load<4>(reinterpret_cast<const float*>(from));
      TWINBENCH_UNROLL
      for (int w = 0; w < 4; ++w) matrix.of[v].of[w] = kernels::bits_of(words.of[w]);
    }
    return matrix;
  }

  template <class Block, class Shared>
  static TWINBENCH_DEVICE void multiply(Block& block, Shared halves, int pitch, int step, int lane,
                                        const Matrix& matrix, Sums& sums) {
    TWINBENCH_UNROLL
    for (int t = 0; t < Tile::kRowTiles; ++t) {
      Left left;
      TWINBENCH_UNROLL
      for (int plane = 0; plane < Tile::kPlanes; ++plane)
        simt::load_matrices(
            block,
            halves + (plane * Tile::kRows + 16 * t + lane / 8 % 2 * 8 + lane % 8) * pitch + 16 * step + lane / 16 * 8,
            left.of[plane].of);
      TWINBENCH_UNROLL
      for (int n = 0; n < 2; ++n) {
        const auto& high = matrix.of[kSplit ? 2 * n : n];
        complex_product(block, left.of[0], left.of[1], high, sums.of[t][n]);
        if constexpr (kSplit) {
          complex_product(block, left.of[0], left.of[1], matrix.of[2 * n + 1], sums.of[t][n]);
          complex_product(block, left.of[2], left.of[3], high, sums.of[t][n]);
        }
      }
    }
  }

  // (re + i im) times the real and imaginary parts of the matrix, or of its conjugate.
  template <class Block>
  static TWINBENCH_DEVICE void complex_product(Block& block, const simt::LeftTile& re, const simt::LeftTile& im,
                                               const kernels::Vector<std::uint32_t, 4>& matrix,
                                               simt::TileSum (&sums)[2]) {
    constexpr std::uint32_t kSigns = 0x80008000u;
    const simt::RightTile real{{matrix.of[0], matrix.of[1]}}, imaginary{{matrix.of[2], matrix.of[3]}};
    const simt::RightTile negative{{matrix.of[2] ^ kSigns, matrix.of[3] ^ kSigns}};
    simt::multiply_half(block, sums[0], re, real);
    simt::multiply_half(block, sums[1], im, real);
    simt::multiply_half(block, sums[0], im, kConjugate ? imaginary : negative);
    simt::multiply_half(block, sums[1], re, kConjugate ? negative : imaginary);
  }

  // All inner steps, the matrix one step ahead.
  template <class Block, class Shared>
  static TWINBENCH_DEVICE void run(Block& block, Shared halves, int pitch, const std::uint32_t* packed, int steps,
                                   Sums& sums) {
    const int lane = simt::lane(block);
    Matrix next = load(packed, 0, lane);
    Sums chunk{};
    TWINBENCH_ROLLED
    for (int step = 0; step < steps; ++step) {
      const Matrix matrix = next;
      if (step + 1 < steps) next = load(packed, step + 1, lane);
      if constexpr (kSplit) {
        multiply(block, halves, pitch, step, lane, matrix, chunk);
        if (step % kChunk == kChunk - 1 || step + 1 == steps) add(chunk, sums);
      } else {
        multiply(block, halves, pitch, step, lane, matrix, sums);
      }
    }
  }

  static TWINBENCH_DEVICE void add(Sums& chunk, Sums& sums) {
    TWINBENCH_UNROLL
    for (int t = 0; t < Tile::kRowTiles; ++t) TWINBENCH_UNROLL
    for (int n = 0; n < 2; ++n) TWINBENCH_UNROLL
    for (int part = 0; part < 2; ++part) TWINBENCH_UNROLL
    for (int i = 0; i < 4; ++i) {
      sums.of[t][n][part].of[i] += chunk.of[t][n][part].of[i];
      chunk.of[t][n][part].of[i] = 0.0f;
    }
  }
};

// All columns of the block's product, shared among its warps: to [2, rows, dim], scaled back. Returns whether anything
// that this thread wrote is not finite, with the rows that hold it marked in `bad`.
template <Operand kOperand, bool kConjugate, bool kWide, class Block, class Shared, class Scales, class Bad>
TWINBENCH_DEVICE void multiply_rows(Block& block, Shared halves, Scales back, const std::uint32_t* matrix, int dim,
                                    std::int64_t first, std::int64_t rows, float* to, Bad bad) {
  using Product = ColumnProduct<kOperand, kConjugate>;
  using Tile = OperandTile<kOperand>;
  const int steps = static_cast<int>(padded(dim)) / 16, lane = simt::lane(block), pitch = Tile::pitch(dim);
  for (int item = simt::warp(block); item < steps; item += kWarps) {
    typename Product::Sums sums{};
    Product::run(block, halves, pitch, matrix + std::int64_t{item} * steps * Product::kVectors * 4 * simt::kWarpSize,
                 steps, sums);
    TWINBENCH_UNROLL
    for (int t = 0; t < Tile::kRowTiles; ++t) {
      TWINBENCH_UNROLL
      for (int half = 0; half < 2; ++half) {
        const int place = 16 * t + 8 * half + lane / 4;
        const std::int64_t row = first + place;
        if (row >= rows) continue;
        const float scale = back[place];
        bool finite = true;
        TWINBENCH_UNROLL
        for (int n = 0; n < 2; ++n) {
          const int column = 16 * item + 8 * n + lane % 4 * 2;
          TWINBENCH_UNROLL
          for (int part = 0; part < 2; ++part) {
            Pair pair;
            TWINBENCH_UNROLL
            for (int i = 0; i < 2; ++i) {
              pair.of[i] = sums.of[t][n][part].of[2 * half + i] * scale;
              finite = finite && (kernels::absolute(pair.of[i]) < INFINITY || column + i >= dim);
            }
            store_pair<kWide>(to + (part * rows + row) * dim, column, dim, pair);
          }
        }
        if (!finite) simt::atomic_max(block, bad + place, 1);
      }
    }
  }
}

}  // namespace twinbench::sem::cayley
