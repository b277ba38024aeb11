// What both kernels of sem.lazy_gate share: a tile of rows with x, r and p in shared memory, and the solver's steps.
#pragma once

#include "kernels/common/simt_handover.h"
#include "kernels/common/vectors.h"
#include "kernels/sem/lazy_gate/arguments.h"

namespace twinbench::sem::lazy_gate {

namespace simt = kernels::simt;

// A block's kRows rows; a thread every kThreads-th node. Only p is read by other threads than its own.
template <int kRows>
struct TileRows {
  static std::int64_t documented_shared_bytes() { return std::int64_t{24} * 256 * kRows; }

 protected:
  using Values = kernels::Floats<kRows>;  // of one node, a row each
  struct Parts {
    Values re, im;
  };
  static constexpr int kBatch = 4;  // neighbours asked for at once

  static TWINBENCH_DEVICE bool any_active(const RowState (&rows)[kRows]) {
    bool any = false;
    TWINBENCH_UNROLL
    for (int k = 0; k < kRows; ++k) any = any || rows[k].active();
    return any;
  }

  template <class Block, class Work>
  static TWINBENCH_DEVICE void own_nodes(Block& block, int dim, Work work) {
    TWINBENCH_ROLLED
    for (int i = simt::thread_rank(block); i < dim; i += kThreads) work(i);
  }

  // Rows past the last one are zero.
  static TWINBENCH_DEVICE Parts loaded(const float* from, std::int64_t plane, std::int64_t rows, std::int64_t first,
                                       int dim, int i) {
    Parts values{};
    TWINBENCH_UNROLL
    for (int k = 0; k < kRows; ++k) {
      if (first + k >= rows) continue;
      values.re.of[k] = from[(first + k) * dim + i];
      values.im.of[k] = from[plane + (first + k) * dim + i];
    }
    return values;
  }

  // v + sign * i dt/2 H v at one node.
  template <class Shared>
  static TWINBENCH_DEVICE Parts operated(const Graph& graph, Shared v, int i, float sign) {
    const Parts own = v[i];
    const float diagonal = graph.diagonal[i];
    Parts h;
    TWINBENCH_UNROLL
    for (int k = 0; k < kRows; ++k) {
      h.re.of[k] = diagonal * own.re.of[k];
      h.im.of[k] = diagonal * own.im.of[k];
    }
    const std::int32_t* const entries = graph.entries + 2 * (graph.slices[i / kSlice] + i % kSlice);
    kernels::in_batches<kBatch>(
        0, 1, graph.neighbours[i], [&](int e) { return kernels::load<2>(entries + 2 * kSlice * e); },
        [&](int, const kernels::Vector<std::int32_t, 2>& entry) {
          const float weight = kernels::float_of_bits(static_cast<std::uint32_t>(entry.of[1]));
          const Parts other = v[entry.of[0]];
          TWINBENCH_UNROLL
          for (int k = 0; k < kRows; ++k) {
            h.re.of[k] -= weight * other.re.of[k];
            h.im.of[k] -= weight * other.im.of[k];
          }
        });
    Parts result;
    TWINBENCH_UNROLL
    for (int k = 0; k < kRows; ++k) {
      result.re.of[k] = own.re.of[k] - sign * h.im.of[k];
      result.im.of[k] = own.im.of[k] + sign * h.re.of[k];
    }
    return result;
  }

  static TWINBENCH_DEVICE void add_squares(Values& sums, const Parts& v) {
    TWINBENCH_UNROLL
    for (int k = 0; k < kRows; ++k) sums.of[k] += v.re.of[k] * v.re.of[k] + v.im.of[k] * v.im.of[k];
  }

  // Over the block, warp after warp in a fixed order; every thread gets all of them. Two barriers.
  template <class Block>
  static TWINBENCH_DEVICE Values row_sums(Block& block, Values sums) {
    constexpr int kWarps = kThreads / simt::kWarpSize;
    auto partial = simt::shared_array<Values, kWarps>(block);
    TWINBENCH_UNROLL
    for (int k = 0; k < kRows; ++k) sums.of[k] = simt::warp_sum(block, sums.of[k]);
    if (simt::lane(block) == 0) partial[simt::warp(block)] = sums;
    block.barrier();
    Values all{};
    TWINBENCH_UNROLL
    for (int warp = 0; warp < kWarps; ++warp) {
      const Values one = partial[warp];
      TWINBENCH_UNROLL
      for (int k = 0; k < kRows; ++k) all.of[k] += one.of[k];
    }
    block.barrier();
    return all;
  }

  // One of (I + sign * i dt/2 H) x = b.
  template <class Block, class Shared>
  static TWINBENCH_DEVICE void iterate(Block& block, const Graph& graph, int dim, const StopRule& rule, float sign,
                                       Shared x, Shared r, Shared p, RowState (&rows)[kRows]) {
    block.barrier();
    Values sums{};
    own_nodes(block, dim, [&](int i) {
      const Parts q = operated(graph, p, i, sign), direction = p[i];
      Parts to_x = x[i], to_r = r[i];
      TWINBENCH_UNROLL
      for (int k = 0; k < kRows; ++k) {
        if (!rows[k].active()) continue;
        to_x.re.of[k] += rows[k].length * direction.re.of[k];
        to_x.im.of[k] += rows[k].length * direction.im.of[k];
        to_r.re.of[k] -= rows[k].length * q.re.of[k];
        to_r.im.of[k] -= rows[k].length * q.im.of[k];
      }
      x[i] = to_x;
      r[i] = to_r;
      add_squares(sums, to_r);
    });
    const Values rho = row_sums(block, sums);
    Values shares{};
    TWINBENCH_UNROLL
    for (int k = 0; k < kRows; ++k)
      if (rows[k].active()) shares.of[k] = go_on(rows[k], rule, rho.of[k]);
    own_nodes(block, dim, [&](int i) {
      const Parts left = r[i];
      Parts direction = p[i];
      TWINBENCH_UNROLL
      for (int k = 0; k < kRows; ++k) {
        if (!rows[k].active()) continue;
        direction.re.of[k] = left.re.of[k] - shares.of[k] * direction.re.of[k];
        direction.im.of[k] = left.im.of[k] - shares.of[k] * direction.im.of[k];
      }
      p[i] = direction;
    });
  }
};

}  // namespace twinbench::sem::lazy_gate
