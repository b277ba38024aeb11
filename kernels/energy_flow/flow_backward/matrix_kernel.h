// Gradients of matrices: what the rows of a step have of gradients, times what was multiplied, added to the sums of the
// steps after it. A block takes 96 gradient columns by 64 columns of values, and the slices of 16 rows that are its
// piece's, in their order: the sums are the same bits in every run.
#pragma once

#include "kernels/common/bf16_vectors.h"
#include "kernels/common/vectors.h"
#include "kernels/energy_flow/common/gru.h"
#include "kernels/energy_flow/common/tf32_tile.h"
#include "kernels/energy_flow/flow_backward/arguments.h"

namespace twinbench::energy_flow::flow_backward {

namespace simt = kernels::simt;

// A thread's, by two gradient columns of each third of the tile: four, and four half a tile further on, so that the
// lanes with one gradient column share whole sectors.
constexpr int kOwnValues = 8;
constexpr int kHighValues = kMatrixValues / 2;

// kRound: values are rounded to bf16 where the matrix says so. kTf32: products by tensor cores.
template <class Block, bool kRound, bool kTf32>
class MatrixTile {
 public:
  using Sums = float[2][kOwnValues];

  TWINBENCH_DEVICE MatrixTile(Block& own_block, const MatrixArguments& arguments, std::int32_t rows, int first_gradient,
                              int first_value)
      : gradient(first_gradient),
        value(first_value),
        own_value(simt::thread_rank(own_block) % 32 / 4 * (kOwnValues / 2)),
        own_column(simt::thread_rank(own_block) / 32 * 8 + simt::thread_rank(own_block) % 4 * 2),
        block_(own_block),
        a_(arguments),
        total_(rows),
        thread_(simt::thread_rank(own_block)) {}

  const int gradient, value;        // first columns of the tile
  const int own_value, own_column;  // the thread's places in the tile

  // A slice's values on their way to the thread.
  TWINBENCH_DEVICE void load(std::int64_t slice) {
    TWINBENCH_UNROLL
    for (int j = 0; j < kValueLoads; ++j) {
      const int at = thread_ + j * kMatrixThreads, column = value + at % kValueVectors * 4;
      const std::int64_t row = slice * kMatrixRows + at / kValueVectors;
      std::int64_t from = row;
      if (row >= total_ || column >= a_.width)
        from = flow_forward::kNoSource;
      else if (a_.source != nullptr)
        from = a_.source[row];
      values_[j] = {};
      if (from < 0) continue;
      const std::int64_t there = from * a_.width + column;
      values_[j] =
          a_.stored != nullptr ? kernels::load_bf16<4>(a_.stored + there) : kernels::load<4>(a_.values + there);
    }
    TWINBENCH_UNROLL
    for (int j = 0; j < kGradientLoads; ++j) {
      const int at = thread_ + j * kMatrixThreads, column = gradient + at % kGradientVectors * 4;
      const std::int64_t row = slice * kMatrixRows + at / kGradientVectors;
      gradients_[j] = {};
      if (row < total_ && column < a_.gradients)
        gradients_[j] = kernels::load<4>(a_.gradient + row * a_.gradients + column);
    }
  }

  // What has been loaded to one of two places in shared memory.
  TWINBENCH_DEVICE void stage(int place) {
    auto values = simt::dynamic_shared<kernels::Floats<4>>(block_, place * flow_forward::kSliceBytes);
    auto gradients =
        simt::dynamic_shared<kernels::Floats<4>>(block_, place * flow_forward::kSliceBytes + flow_forward::kFlowBytes);
    TWINBENCH_UNROLL
    for (int j = 0; j < kValueLoads; ++j) {
      kernels::Floats<4> own = values_[j];
      if (a_.guards) own = kernels::map(own, [](float x) { return kernels::guard(x, energy_carrier::kGuardLimit); });
      if (kRound && a_.round) own = kernels::rounded_to_bf16(own);
      values[thread_ + j * kMatrixThreads] = own;
    }
    TWINBENCH_UNROLL
    for (int j = 0; j < kGradientLoads; ++j) gradients[thread_ + j * kMatrixThreads] = gradients_[j];
  }

  // A staged slice's products; column: the sum of the thread's own gradient column, where it has one.
  TWINBENCH_DEVICE void add(int place, Sums& one, Sums& two, Sums& three, float& column) const {
    auto values = simt::dynamic_shared<kernels::Floats<4>>(block_, place * flow_forward::kSliceBytes);
    const int from = place * flow_forward::kSliceBytes + flow_forward::kFlowBytes;
    auto pairs = simt::dynamic_shared<kernels::Floats<2>>(block_, from);
    auto gradients = simt::dynamic_shared<float>(block_, from);
    if constexpr (kTf32) {
      TWINBENCH_ROLLED
      for (int part = 0; part < kMatrixRows / flow_forward::kTf32Depth; ++part)
        add_part(part, values, gradients, one, two, three);
    }
    TWINBENCH_ROLLED
    for (int quarter = 0; quarter < kMatrixRows / 4; ++quarter) {
      TWINBENCH_UNROLL
      for (int i = 0; i < 4; ++i) {
        const int row = quarter * 4 + i;
        if constexpr (!kTf32) add_row(row, values, pairs, one, two, three);
        if (value > 0 || thread_ >= kMatrixColumns) continue;
        const float own = gradients[row * kMatrixColumns + thread_];
        column += own;
      }
    }
  }

 private:
  static constexpr int kValueVectors = kMatrixValues / 4, kGradientVectors = kMatrixColumns / 4;
  static constexpr int kValueLoads = kMatrixRows * kValueVectors / kMatrixThreads;
  static constexpr int kGradientLoads = kMatrixRows * kGradientVectors / kMatrixThreads;
  static_assert(kMatrixRows * kValueVectors % kMatrixThreads == 0 &&
                kMatrixRows * kGradientVectors % kMatrixThreads == 0);

  template <class Values, class Pairs>
  TWINBENCH_DEVICE void add_row(int row, Values values, Pairs pairs, Sums& one, Sums& two, Sums& three) const {
    const int at = row * kValueVectors + own_value / 4;
    const kernels::Floats<4> low = values[at], high = values[at + kHighValues / 4];
    TWINBENCH_UNROLL
    for (int third = 0; third < 3; ++third) {
      const kernels::Floats<2> pair =
          pairs[(row * kMatrixColumns + third * flow_forward::kTileChannels + own_column) / 2];
      Sums& sums = third == 0 ? one : third == 1 ? two : three;
      TWINBENCH_UNROLL
      for (int c = 0; c < 2; ++c) {
        TWINBENCH_UNROLL
        for (int v = 0; v < kOwnValues; ++v)
          sums[c][v] = kernels::multiply_add(pair.of[c], v < 4 ? low.of[v % 4] : high.of[v % 4], sums[c][v]);
      }
    }
  }

  template <class Values, class Gradients>
  TWINBENCH_DEVICE void add_part(int part, Values values, Gradients gradients, Sums& one, Sums& two,
                                 Sums& three) const {
    const int lane = thread_ % 32, at = part * flow_forward::kTf32Depth + lane % 4;
    const auto eight = [&](int row) {
      const int place = row * kValueVectors + own_value / 4;
      return flow_forward::Tf32Eight{values[place], values[place + kHighValues / 4]};
    };
    const flow_forward::Tf32Eight low = eight(at), high = eight(at + 4);
    TWINBENCH_UNROLL
    for (int third = 0; third < 3; ++third) {
      const int column = third * flow_forward::kTileChannels + thread_ / 32 * 8 + lane / 4;
      flow_forward::multiply_tf32_tiles(block_, low, high, gradients[at * kMatrixColumns + column],
                                        gradients[(at + 4) * kMatrixColumns + column],
                                        third == 0   ? one
                                        : third == 1 ? two
                                                     : three);
    }
  }

  Block& block_;
  const MatrixArguments& a_;
  const std::int32_t total_;
  const int thread_;
  kernels::Floats<4> values_[kValueLoads], gradients_[kGradientLoads];
};

// Grid: (matrix_tiles() of the larger matrix, matrices, pieces).
template <bool kRound, bool kTf32>
struct MatricesAs {
  static constexpr int kMaxThreads = kMatrixThreads;
  static constexpr int kMinBlocksPerSm = 3;
  static std::int64_t documented_shared_bytes() { return flow_forward::kTileBytes; }

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const MatricesArguments& a) const {
    const MatrixArguments own = block.index().y == 0 ? a.of[0] : a.of[1];
    const int along = (own.gradients + kMatrixColumns - 1) / kMatrixColumns, number = static_cast<int>(block.index().x);
    const int first_value = number / along * kMatrixValues;
    const std::int32_t total = *a.total, slices = (total + kMatrixRows - 1) / kMatrixRows;
    const auto piece = static_cast<std::int32_t>(block.index().z);
    if (first_value >= own.width || (piece >= slices && !a.steps.first)) return;  // the whole block
    MatrixTile<Block, kRound, kTf32> tile(block, own, total, number % along * kMatrixColumns, first_value);
    typename MatrixTile<Block, kRound, kTf32>::Sums sums[3] = {};
    float column = 0.0f;
    if (piece < slices) tile.load(piece);
    // One barrier a slice: of the two places the one that is filled was read before the barrier before.
    TWINBENCH_ROLLED
    for (std::int32_t slice = piece, place = 0; slice < slices; slice += a.pieces, place = 1 - place) {
      tile.stage(place);
      block.barrier();
      if (slice + a.pieces < slices) tile.load(slice + a.pieces);
      tile.add(place, sums[0], sums[1], sums[2], column);
    }
    float* const partial = a.partial + piece * a.stride;
    TWINBENCH_UNROLL
    for (int third = 0; third < 3; ++third) {
      TWINBENCH_UNROLL
      for (int c = 0; c < 2; ++c) {
        const int gradient = tile.gradient + third * flow_forward::kTileChannels + tile.own_column + c;
        const int value = tile.value + tile.own_value;
        if (gradient >= own.gradients) continue;
        float* const to = partial + own.weight + std::int64_t{gradient} * own.width + value;
        if (value < own.width)
          add(a, to, {{sums[third][c][0], sums[third][c][1], sums[third][c][2], sums[third][c][3]}});
        if (value + kHighValues < own.width)
          add(a, to + kHighValues, {{sums[third][c][4], sums[third][c][5], sums[third][c][6], sums[third][c][7]}});
      }
    }
    const int thread = simt::thread_rank(block);
    if (tile.value > 0 || thread >= kMatrixColumns || tile.gradient + thread >= own.gradients) return;
    float* const to = partial + own.bias + tile.gradient + thread;
    *to = a.steps.first ? column : *to + column;
  }

 private:
  // To what the steps after this one have left, which the first step begins.
  static TWINBENCH_DEVICE void add(const MatricesArguments& a, float* to, const kernels::Floats<4>& sums) {
    if (a.steps.first) return kernels::store(to, sums);
    kernels::store(to,
                   kernels::map(kernels::load<4>(to), sums, [](float so_far, float more) { return so_far + more; }));
  }
};

struct Matrices : MatricesAs<false, false> {};

struct RoundedMatrices : MatricesAs<true, false> {};

struct MatricesTf32 : MatricesAs<false, true> {};

}  // namespace twinbench::energy_flow::flow_backward
