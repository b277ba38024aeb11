// The kernel of sem.lazy_gate: gate and solver of a tile of rows, all iterations in shared memory, each row leaving off
// when it is through.
#pragma once

#include "kernels/common/simt_handover.h"
#include "kernels/common/vectors.h"
#include "kernels/sem/lazy_gate/arguments.h"

namespace twinbench::sem::lazy_gate {

namespace simt = kernels::simt;

// Grid: a block of kRows rows; a thread every kThreads-th node. Only p is read by other threads than its own.
template <int kRows>
struct SolveRows {
  static constexpr int kMaxThreads = kThreads;
  static std::int64_t documented_shared_bytes() { return std::int64_t{24} * 256 * kRows; }
  using Values = kernels::Floats<kRows>;  // of one node, a row each
  struct Parts {
    Values re, im;
  };

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const CallArguments& a) const {
    auto x = simt::dynamic_shared<Parts>(block), r = x + a.dim, p = x + 2 * a.dim;
    const std::int64_t first = std::int64_t{block.index().x} * kRows;
    RowState rows[kRows];
    start(block, a, first, x, r, p, rows);
    while (any_active(rows)) iterate(block, a, x, r, p, rows);
    finish(block, a, first, x, rows);
    count(block, a, first, rows);
  }

 private:
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
    const int end = graph.begins[i + 1];
    for (int e = graph.begins[i]; e < end; ++e) {
      const float weight = graph.weights[e];
      const Parts other = v[graph.neighbours[e]];
      TWINBENCH_UNROLL
      for (int k = 0; k < kRows; ++k) {
        h.re.of[k] -= weight * other.re.of[k];
        h.im.of[k] -= weight * other.im.of[k];
      }
    }
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

  // b = A^H field, and where there is a gate the residual of the cached solution, which x keeps until the rows have
  // decided; p has that solution meanwhile.
  template <class Block, class Shared>
  static TWINBENCH_DEVICE void start(Block& block, const CallArguments& a, std::int64_t first, Shared x, Shared r,
                                     Shared p, RowState (&rows)[kRows]) {
    own_nodes(block, a.dim, [&](int i) { p[i] = loaded(a.field, a.plane, a.rows, first, a.dim, i); });
    block.barrier();
    Values sums{};
    own_nodes(block, a.dim, [&](int i) {
      const Parts b = operated(a.graph, p, i, -1.0f);
      r[i] = b;
      add_squares(sums, b);
    });
    const Values whole = row_sums(block, sums);
    Values from_entry = whole;
    if (a.rule.gate_tolerance > 0) {
      own_nodes(block, a.dim, [&](int i) { p[i] = loaded(a.cache, a.rows * a.dim, a.rows, first, a.dim, i); });
      block.barrier();
      sums = {};
      own_nodes(block, a.dim, [&](int i) {
        const Parts b = r[i], of_entry = operated(a.graph, p, i, 1.0f);
        Parts left;
        TWINBENCH_UNROLL
        for (int k = 0; k < kRows; ++k) {
          left.re.of[k] = b.re.of[k] - of_entry.re.of[k];
          left.im.of[k] = b.im.of[k] - of_entry.im.of[k];
        }
        x[i] = left;
        add_squares(sums, left);
      });
      from_entry = row_sums(block, sums);
    }
    Start starts[kRows];
    TWINBENCH_UNROLL
    for (int k = 0; k < kRows; ++k) starts[k] = begin(rows[k], a.rule, whole.of[k], from_entry.of[k]);
    own_nodes(block, a.dim, [&](int i) {
      Parts to_x{}, to_r = r[i];
      if (a.rule.gate_tolerance > 0) {
        const Parts left = x[i], entry = p[i];
        TWINBENCH_UNROLL
        for (int k = 0; k < kRows; ++k) {
          const bool warm = starts[k] == Start::kEntry;
          if (warm || (rows[k].skipped && !(rows[k].whole < kZeroRow))) {
            to_x.re.of[k] = entry.re.of[k];
            to_x.im.of[k] = entry.im.of[k];
          }
          if (warm) {
            to_r.re.of[k] = left.re.of[k];
            to_r.im.of[k] = left.im.of[k];
          }
        }
      }
      x[i] = to_x;
      r[i] = to_r;
      p[i] = to_r;
    });
  }

  template <class Block, class Shared>
  static TWINBENCH_DEVICE void iterate(Block& block, const CallArguments& a, Shared x, Shared r, Shared p,
                                       RowState (&rows)[kRows]) {
    block.barrier();
    Values sums{};
    own_nodes(block, a.dim, [&](int i) {
      const Parts q = operated(a.graph, p, i, 1.0f), direction = p[i];
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
      if (rows[k].active()) shares.of[k] = go_on(rows[k], a.rule, rho.of[k]);
    own_nodes(block, a.dim, [&](int i) {
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

  // A row that is not finite is NaN as a whole, and leaves the cache alone.
  template <class Block, class Shared>
  static TWINBENCH_DEVICE void finish(Block& block, const CallArguments& a, std::int64_t first, Shared x,
                                      const RowState (&rows)[kRows]) {
    own_nodes(block, a.dim, [&](int i) {
      const Parts values = x[i];
      TWINBENCH_UNROLL
      for (int k = 0; k < kRows; ++k) {
        if (first + k >= a.rows) continue;
        const std::int64_t at = (first + k) * a.dim + i;
        a.x[at] = rows[k].bad ? NAN : values.re.of[k];
        a.x[a.plane + at] = rows[k].bad ? NAN : values.im.of[k];
        if (rows[k].bad) continue;
        a.cache[at] = values.re.of[k];
        a.cache[a.rows * a.dim + at] = values.im.of[k];
      }
    });
  }

  // A call is skipped where all of its rows are.
  template <class Block>
  static TWINBENCH_DEVICE void count(Block& block, const CallArguments& a, std::int64_t first,
                                     const RowState (&rows)[kRows]) {
    const bool leads = simt::thread_rank(block) == 0;
    unsigned bad = 0, solved = 0, iterations = 0;
    TWINBENCH_UNROLL
    for (int k = 0; k < kRows; ++k) {
      if (first + k >= a.rows) continue;
      bad += rows[k].bad ? 1u : 0u;
      solved += rows[k].skipped ? 0u : 1u;
      const auto took = static_cast<unsigned>(rows[k].iterations);
      iterations = took > iterations ? took : iterations;
    }
    if (leads) {
      if (bad > 0) simt::atomic_add(block, a.handover, bad);
      if (solved > 0) simt::atomic_add(block, a.handover + 1, solved);
      if (iterations > 0) simt::atomic_max(block, a.handover + 2, iterations);
    }
    if (simt::is_last_block(block, a.handover + 3, block.grid().x) && leads) {
      *a.nonfinite_rows = static_cast<std::int32_t>(a.handover[0]);
      *a.skipped = a.handover[1] == 0 ? 1 : 0;
      *a.iterations = static_cast<std::int32_t>(a.handover[2]);
      for (int i = 0; i < 3; ++i) a.handover[i] = 0;
    }
  }
};

struct SolveTile : SolveRows<kTileRows> {};
struct SolveOne : SolveRows<1> {};

}  // namespace twinbench::sem::lazy_gate
