// The kernels of sem.lazy_gate's way back: the adjoint system of a tile of rows, all iterations in shared memory; and
// the edges, from the product of what that leaves.
#pragma once

#include "kernels/sem/common/edges_kernel.h"
#include "kernels/sem/lazy_gate/rows_kernel.h"

namespace twinbench::sem::lazy_gate {

// Grid: a block of kRows rows.
template <int kRows>
struct AdjointRows : TileRows<kRows> {
  static constexpr int kMaxThreads = kThreads;
  using Tile = TileRows<kRows>;
  using typename Tile::Parts;
  using typename Tile::Values;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const AdjointArguments& a) const {
    auto z = simt::dynamic_shared<Parts>(block), r = z + a.dim, p = z + 2 * a.dim;
    const std::int64_t first = std::int64_t{block.index().x} * kRows;
    RowState rows[kRows];
    start(block, a, first, z, r, p, rows);
    while (Tile::any_active(rows)) Tile::iterate(block, a.graph, a.dim, a.rule, -1.0f, z, r, p, rows);
    block.barrier();  // z of other threads' nodes
    finish(block, a, first, z, rows);
    count(block, a, first, rows);
  }

 private:
  // From zero: the residual is the given gradient.
  template <class Block, class Shared>
  static TWINBENCH_DEVICE void start(Block& block, const AdjointArguments& a, std::int64_t first, Shared z, Shared r,
                                     Shared p, RowState (&rows)[kRows]) {
    Values sums{};
    Tile::own_nodes(block, a.dim, [&](int i) {
      const Parts given = Tile::loaded(a.grad_x, a.plane, a.rows, first, a.dim, i);
      z[i] = Parts{};
      r[i] = given;
      p[i] = given;
      Tile::add_squares(sums, given);
    });
    const Values whole = Tile::row_sums(block, sums);
    TWINBENCH_UNROLL
    for (int k = 0; k < kRows; ++k) begin(rows[k], a.rule, whole.of[k], whole.of[k]);
  }

  // The gradient of the field is A z. A row that is not finite has none.
  template <class Block, class Shared>
  static TWINBENCH_DEVICE void finish(Block& block, const AdjointArguments& a, std::int64_t first, Shared z,
                                      const RowState (&rows)[kRows]) {
    Tile::own_nodes(block, a.dim, [&](int i) {
      const Parts gradient = Tile::operated(a.graph, z, i, 1.0f), solution = z[i],
                  field = Tile::loaded(a.field, a.plane, a.rows, first, a.dim, i),
                  x = Tile::loaded(a.x, a.plane, a.rows, first, a.dim, i);
      TWINBENCH_UNROLL
      for (int k = 0; k < kRows; ++k) {
        if (first + k >= a.rows) continue;
        const std::int64_t re = (first + k) * a.dim + i, im = a.plane + re;
        const bool bad = rows[k].bad;
        a.grad_field[re] = bad ? NAN : gradient.re.of[k];
        a.grad_field[im] = bad ? NAN : gradient.im.of[k];
        a.z[re] = bad ? NAN : solution.re.of[k];
        a.z[im] = bad ? NAN : solution.im.of[k];
        a.y[re] = x.im.of[k] + field.im.of[k];
        a.y[im] = -(x.re.of[k] + field.re.of[k]);
      }
    });
  }

  template <class Block>
  static TWINBENCH_DEVICE void count(Block& block, const AdjointArguments& a, std::int64_t first,
                                     const RowState (&rows)[kRows]) {
    const bool leads = simt::thread_rank(block) == 0;
    unsigned most = 0;
    TWINBENCH_UNROLL
    for (int k = 0; k < kRows; ++k) {
      const auto took = static_cast<unsigned>(rows[k].iterations);
      most = first + k < a.rows && took > most ? took : most;
    }
    if (leads && most > 0) simt::atomic_max(block, a.handover, most);
    if (simt::is_last_block(block, a.handover + kHandover - 1, block.grid().x) && leads) {
      *a.iterations = static_cast<std::int32_t>(a.handover[0]);
      a.handover[0] = 0;
    }
  }
};

struct AdjointTile : AdjointRows<kTileRows> {};
struct AdjointOne : AdjointRows<1> {};

// Grid: edge_blocks.
struct Edges {
  static constexpr int kMaxThreads = kEdgeThreads;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const EdgeArguments& a) const {
    edges_backward(block, a, block.index().x, block.grid().x);
  }
};

}  // namespace twinbench::sem::lazy_gate
