// The kernel of trainer2.field_dynamics: a block takes some columns of a row through the whole window, on the chip.
#pragma once

#include "kernels/common/simt.h"
#include "kernels/common/simt_handover.h"
#include "kernels/common/vectors.h"
#include "kernels/trainer2/field_dynamics/arguments.h"

namespace twinbench::trainer2::field_dynamics {

namespace simt = kernels::simt;

constexpr int kWarps = kThreads / simt::kWarpSize;
constexpr int kBatch = kWarps;  // steps whose sums are added up together, a warp a step

using Complex = kernels::Floats<2>;

// Of the fields of two steps.
TWINBENCH_HOST_DEVICE std::int64_t shared_bytes(int elements) { return std::int64_t{16} * elements; }

// Grid: split.parts blocks a row. Element e of a block is grid cell e / columns and its column e % columns; columns of
// the tensor never meet, so blocks need not wait for one another. Two fields lie in shared memory, for the neighbours:
// that of the step before and the one that is written. All else of an element stays in its thread's registers.
template <int kEach>  // elements of a thread at most
struct WindowOf {
  static constexpr int kMaxThreads = kThreads;
  static std::int64_t documented_shared_bytes() { return shared_bytes(8 * 8 * kColumns); }

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Arguments& a) const {
    const int part = static_cast<int>(block.index().x) % a.split.parts,
              row = static_cast<int>(block.index().x) / a.split.parts, first = part * a.split.columns,
              columns = a.dimension - first < a.split.columns ? a.dimension - first : a.split.columns,
              elements = a.width * a.height * columns;
    auto field = simt::dynamic_shared<Complex>(block);
    auto staged = simt::shared_array<Complex, kBatch * kThreads>(block);
    const int thread = simt::thread_rank(block);
    const float outside = a.force[row * a.force_stride];
    Own own[kEach];
    each(block, elements, [&](int i, int e) {
      const std::int64_t at = place(a, row, first, columns, e);
      own[i].here = kernels::load<2>(a.field + at);
      own[i].momentum = kernels::load<2>(a.momentum + at);
      own[i].rest = kernels::load<2>(a.equilibrium + at);
      own[i].near = neighbours(a, columns, e);
      field[e] = own[i].here;
    });
    std::int64_t history = a.history[block.index().x];
    block.barrier();
    auto now = field;
    if (!a.dissipative)
      each(block, elements, [&](int i, int) { own[i].force = verlet_force(a, now, own[i], outside); });
    for (std::int64_t step = 0; step < a.steps; ++step) {
      const float factor = a.dissipative ? a.factors[history] : 0.0f;
      auto next = field + (step % 2 == 0 ? elements : 0);
      Complex sums{};
      each(block, elements, [&](int i, int e) {
        Own& o = own[i];
        if (a.dissipative) {
          const Complex slope = slopes(now, o);
          o.here.of[0] += a.by.turn * (factor * slope.of[1]);
          o.here.of[1] -= a.by.turn * (factor * slope.of[0] + outside);
        } else {
          TWINBENCH_UNROLL
          for (int k = 0; k < 2; ++k) {
            o.momentum.of[k] += a.by.half_kick * o.force.of[k];
            o.here.of[k] += a.by.drift * o.momentum.of[k];
          }
        }
        next[e] = o.here;
        sums.of[0] += modulus(o.here.of[0], o.here.of[1]);
        sums.of[1] += o.here.of[0];
      });
      staged[static_cast<int>(step % kBatch) * kThreads + thread] = sums;
      block.barrier();  // the new field may be read; the old one, which all have read, is written next
      now = next;
      if (a.dissipative)
        history = history + 1 < kHistories ? history + 1 : kHistories - 1;
      else
        each(block, elements, [&](int i, int) {
          own[i].force = verlet_force(a, now, own[i], outside);
          TWINBENCH_UNROLL
          for (int k = 0; k < 2; ++k) own[i].momentum.of[k] += a.by.half_kick * own[i].force.of[k];
        });
      if (step % kBatch == kBatch - 1 || step == a.steps - 1) {
        add_up(block, staged, a.part_sums + 2 * (block.index().x * a.steps + step - step % kBatch),
               static_cast<int>(step % kBatch) + 1);
        block.barrier();  // before the next batch is staged
      }
    }
    each(block, elements, [&](int i, int e) {
      const std::int64_t at = place(a, row, first, columns, e);
      kernels::store(a.field + at, own[i].here);
      kernels::store(a.momentum + at, own[i].momentum);
    });
    if (thread == 0) a.history[block.index().x] = history;  // read by all its threads before the first barrier
    if (simt::is_last_block(block, a.finished + row, static_cast<unsigned>(a.split.parts))) join_parts(block, a, row);
  }

 private:
  struct Neighbours {
    int right, left, up, down;
  };
  struct Own {
    Complex here, momentum, rest, force;
    Neighbours near;
  };

  template <class Block, class Step>
  TWINBENCH_DEVICE static void each(const Block& block, int elements, Step step) {
    const int thread = simt::thread_rank(block);
    TWINBENCH_UNROLL
    for (int i = 0; i < kEach; ++i)
      if (const int e = thread + i * kThreads; e < elements) step(i, e);
  }

  // In floats, of element e of the block.
  TWINBENCH_DEVICE static std::int64_t place(const Arguments& a, int row, int first, int columns, int e) {
    const std::int64_t cell = e / columns, column = first + e % columns;
    return 2 * ((cell * a.dimension + row) * a.dimension + column);
  }
  TWINBENCH_DEVICE static Neighbours neighbours(const Arguments& a, int columns, int e) {
    const int line = a.height * columns, all = a.width * line, y = e % line;
    return {e + line < all ? e + line : e + line - all, e >= line ? e - line : e - line + all,
            y + columns < line ? e + columns : e + columns - line, y >= columns ? e - columns : e - columns + line};
  }

  template <class Field>
  TWINBENCH_DEVICE static Complex slopes(Field field, const Own& own) {
    const Complex right = field[own.near.right], left = field[own.near.left], up = field[own.near.up],
                  down = field[own.near.down];
    return {laplacian(right.of[0], left.of[0], up.of[0], down.of[0], own.here.of[0]),
            laplacian(right.of[1], left.of[1], up.of[1], down.of[1], own.here.of[1])};
  }

  template <class Field>
  TWINBENCH_DEVICE static Complex verlet_force(const Arguments& a, Field field, const Own& own, float outside) {
    const Complex slope = slopes(field, own);
    return {force_on(a.by, slope.of[0], own.here.of[0], own.rest.of[0], outside),
            force_on(a.by, slope.of[1], own.here.of[1], own.rest.of[1], 0.0f)};
  }

  // The block's sums of a batch of steps: a warp a step, in a fixed order, so that shuffles are few.
  template <class Block, class Staged>
  TWINBENCH_DEVICE static void add_up(Block& block, Staged staged, float* to, int steps) {
    const int lane = simt::lane(block), step = simt::warp(block);
    if (step >= steps) return;
    Complex sums{};
    TWINBENCH_UNROLL
    for (int k = 0; k < kWarps; ++k) {
      const Complex one = staged[step * kThreads + k * simt::kWarpSize + lane];
      sums.of[0] += one.of[0];
      sums.of[1] += one.of[1];
    }
    sums.of[0] = simt::warp_sum(block, sums.of[0]);
    sums.of[1] = simt::warp_sum(block, sums.of[1]);
    if (lane == 0) kernels::store(to + 2 * step, sums);
  }

  // The row's sums: of its blocks in ascending order, a thread a step.
  template <class Block>
  TWINBENCH_DEVICE static void join_parts(const Block& block, const Arguments& a, int row) {
    const float numbers = static_cast<float>(a.width * a.height * a.dimension);
    for (std::int64_t step = simt::thread_rank(block); step < a.steps; step += kThreads) {
      Complex sums{};
      for (int part = 0; part < a.split.parts; ++part) {
        const Complex one =
            kernels::load<2>(a.part_sums + 2 * ((std::int64_t{row} * a.split.parts + part) * a.steps + step));
        sums.of[0] += one.of[0];
        sums.of[1] += one.of[1];
      }
      a.row_modulus[row * a.steps + step] = sums.of[0];
      a.row_mean[row * a.steps + step] = sums.of[1] / numbers;
    }
  }
};

// A documented field has one element a thread; all others run as the large one.
struct Window : WindowOf<1> {};
struct WindowLarge : WindowOf<kMostElements / kThreads> {};

}  // namespace twinbench::trainer2::field_dynamics
