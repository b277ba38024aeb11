// The kernel of sem.lazy_gate: gate and solver of a tile of rows, all iterations in shared memory, each row leaving off
// when it is through.
#pragma once

#include "kernels/sem/lazy_gate/rows_kernel.h"

namespace twinbench::sem::lazy_gate {

// Grid: a block of kRows rows.
template <int kRows>
struct SolveRows : TileRows<kRows> {
  static constexpr int kMaxThreads = kThreads;
  static constexpr int kMinBlocksPerSm = kRows > 1 ? 3 : 0;  // else sm_90 held two: registers of entries in flight
  using Tile = TileRows<kRows>;
  using typename Tile::Parts;
  using typename Tile::Values;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const CallArguments& a) const {
    auto x = simt::dynamic_shared<Parts>(block), r = x + a.dim, p = x + 2 * a.dim;
    const std::int64_t first = std::int64_t{block.index().x} * kRows;
    StopRule rule = a.rule;
    const bool gate = looks(a);
    if (!gate) rule.gate_tolerance = 0;
    RowState rows[kRows];
    start(block, a, rule, first, x, r, p, rows);
    while (Tile::any_active(rows)) Tile::iterate(block, a.graph, a.dim, rule, 1.0f, x, r, p, rows);
    finish(block, a, first, x, rows);
    count(block, a, rule, gate, first, rows);
  }

 private:
  // The entry is overwritten by the last block, when all have looked.
  static TWINBENCH_DEVICE bool looks(const CallArguments& a) {
    if (!(a.rule.gate_tolerance > 0)) return false;
    return evaluates(a.keyed, a.entry[0] != 0, {a.entry[1], a.entry[2]}, {a.key[0], a.key[1]});
  }

  // b = A^H field, and where there is a gate the residual of the cached solution, which x keeps until the rows have
  // decided; p has that solution meanwhile.
  template <class Block, class Shared>
  static TWINBENCH_DEVICE void start(Block& block, const CallArguments& a, const StopRule& rule, std::int64_t first,
                                     Shared x, Shared r, Shared p, RowState (&rows)[kRows]) {
    const bool gate = rule.gate_tolerance > 0;
    Tile::own_nodes(block, a.dim, [&](int i) { p[i] = Tile::loaded(a.field, a.plane, a.rows, first, a.dim, i); });
    block.barrier();
    Values sums{};
    Tile::own_nodes(block, a.dim, [&](int i) {
      const Parts b = Tile::operated(a.graph, p, i, -1.0f);
      r[i] = b;
      Tile::add_squares(sums, b);
    });
    const Values whole = Tile::row_sums(block, sums);
    Values from_entry = whole;
    if (gate) {
      Tile::own_nodes(block, a.dim,
                      [&](int i) { p[i] = Tile::loaded(a.cache, a.rows * a.dim, a.rows, first, a.dim, i); });
      block.barrier();
      sums = {};
      Tile::own_nodes(block, a.dim, [&](int i) {
        const Parts b = r[i], of_entry = Tile::operated(a.graph, p, i, 1.0f);
        Parts left;
        TWINBENCH_UNROLL
        for (int k = 0; k < kRows; ++k) {
          left.re.of[k] = b.re.of[k] - of_entry.re.of[k];
          left.im.of[k] = b.im.of[k] - of_entry.im.of[k];
        }
        x[i] = left;
        Tile::add_squares(sums, left);
      });
      from_entry = Tile::row_sums(block, sums);
    }
    Start starts[kRows];
    TWINBENCH_UNROLL
    for (int k = 0; k < kRows; ++k) starts[k] = begin(rows[k], rule, whole.of[k], from_entry.of[k]);
    Tile::own_nodes(block, a.dim, [&](int i) {
      Parts to_x{}, to_r = r[i];
      if (gate) {
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

  // A row that is not finite is NaN as a whole, and leaves the cache alone.
  template <class Block, class Shared>
  static TWINBENCH_DEVICE void finish(Block& block, const CallArguments& a, std::int64_t first, Shared x,
                                      const RowState (&rows)[kRows]) {
    Tile::own_nodes(block, a.dim, [&](int i) {
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

  // A call is skipped where all of its rows are. Squares of residuals are not below zero: their bits rise with them.
  template <class Block>
  static TWINBENCH_DEVICE void count(Block& block, const CallArguments& a, const StopRule& rule, bool gate,
                                     std::int64_t first, const RowState (&rows)[kRows]) {
    const bool leads = simt::thread_rank(block) == 0;
    unsigned bad = 0, solved = 0, discarded = 0, unconverged = 0, most = 0, all = 0, residual = 0;
    TWINBENCH_UNROLL
    for (int k = 0; k < kRows; ++k) {
      if (first + k >= a.rows) continue;
      bad += rows[k].bad ? 1u : 0u;
      solved += rows[k].skipped ? 0u : 1u;
      discarded += rows[k].discarded ? 1u : 0u;
      unconverged += is_unconverged(rows[k], rule) ? 1u : 0u;
      const auto took = static_cast<unsigned>(rows[k].iterations);
      most = took > most ? took : most;
      all += took;
      const unsigned left = rows[k].bad ? 0u : kernels::bits_of(left_over(rows[k]));
      residual = left > residual ? left : residual;
    }
    if (leads) {
      if (bad > 0) simt::atomic_add(block, a.handover, bad);
      if (solved > 0) simt::atomic_add(block, a.handover + 1, solved);
      if (discarded > 0) simt::atomic_add(block, a.handover + 2, discarded);
      if (unconverged > 0) simt::atomic_add(block, a.handover + 3, unconverged);
      if (most > 0) simt::atomic_max(block, a.handover + 4, most);
      if (all > 0) simt::atomic_add(block, a.handover + 5, all);
      if (residual > 0) simt::atomic_max(block, a.handover + 6, residual);
    }
    if (simt::is_last_block(block, a.handover + kHandover - 1, block.grid().x) && leads) leave(a, gate);
  }

  static TWINBENCH_DEVICE void leave(const CallArguments& a, bool gate) {
    const auto say = [&](Count what, unsigned value) {
      a.counts[what * a.count_stride] = static_cast<std::int32_t>(value);
    };
    say(kNonfiniteRows, a.handover[0]);
    say(kSkipped, a.handover[1] == 0 ? 1u : 0u);
    say(kGateEvaluations, gate ? 1u : 0u);
    say(kDiscardedRows, a.handover[2]);
    say(kUnconvergedRows, a.handover[3]);
    say(kIterations, a.handover[4]);
    say(kRowIterations, a.handover[5]);
    *a.largest_residual = std::sqrt(kernels::float_of_bits(a.handover[6]));
    for (int i = 0; i < kHandover - 1; ++i) a.handover[i] = 0;
    a.entry[0] = 1;
    a.entry[1] = a.key[0];
    a.entry[2] = a.key[1];
  }
};

struct SolveTile : SolveRows<kTileRows> {};
struct SolveOne : SolveRows<1> {};

}  // namespace twinbench::sem::lazy_gate
