// The kernel of trainer2.field_dynamics: a block takes one row of the tensor through the whole window, on the chip.
#pragma once

#include "kernels/common/simt.h"
#include "kernels/common/vectors.h"
#include "kernels/trainer2/field_dynamics/arguments.h"

namespace twinbench::trainer2::field_dynamics {

namespace simt = kernels::simt;

constexpr int kThreads = 512;
constexpr int kWarps = kThreads / simt::kWarpSize;
constexpr int kEach = kMostElements / kThreads;  // elements of a thread at most; 2 at the documented size

using Complex = kernels::Floats<2>;

TWINBENCH_HOST_DEVICE std::int64_t shared_bytes(int width, int height, int dimension) {
  return std::int64_t{8} * width * height * dimension;
}

// Grid: one block a row i. Element e of a block is grid cell e / dimension and column e % dimension; rows never meet,
// so blocks need not wait for one another. The field lies in shared memory, for the neighbours; momentum, force and
// equilibrium stay in registers.
struct Window {
  static constexpr int kMaxThreads = kThreads;
  static std::int64_t documented_shared_bytes() { return shared_bytes(8, 8, 16); }

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Arguments& a) const {
    auto field = simt::dynamic_shared<Complex>(block);
    auto partial = simt::shared_array<Complex, 2 * kWarps>(block);  // of the warps, of even and odd steps
    const int thread = simt::thread_rank(block), row = static_cast<int>(block.index().x);
    const int elements = a.width * a.height * a.dimension;
    const float outside = a.force[row * a.force_stride];
    Complex momentum[kEach], force[kEach], rest[kEach];
    TWINBENCH_UNROLL
    for (int i = 0; i < kEach; ++i) {
      const int e = thread + i * simt::thread_count(block);
      if (e >= elements) continue;
      const std::int64_t at = place(a, e, row);
      field[e] = kernels::load<2>(a.field + at);
      momentum[i] = kernels::load<2>(a.momentum + at);
      rest[i] = kernels::load<2>(a.equilibrium + at);
    }
    std::int64_t history = a.history[row];
    block.barrier();
    if (!a.dissipative)
      each(block, elements, [&](int i, int e) { force[i] = verlet_force(a, field, e, rest[i], outside); });
    for (std::int64_t step = 0; step < a.steps; ++step) {
      Complex moved[kEach];
      const float factor = a.dissipative ? a.factors[history] : 0.0f;
      each(block, elements, [&](int i, int e) {
        const Complex here = field[e];
        if (a.dissipative) {
          const Complex slope = slopes(a, field, e, here);
          moved[i].of[0] = here.of[0] + a.by.turn * (factor * slope.of[1]);
          moved[i].of[1] = here.of[1] - a.by.turn * (factor * slope.of[0] + outside);
        } else {
          TWINBENCH_UNROLL
          for (int part = 0; part < 2; ++part) {
            momentum[i].of[part] += a.by.half_kick * force[i].of[part];
            moved[i].of[part] = here.of[part] + a.by.drift * momentum[i].of[part];
          }
        }
      });
      block.barrier();  // everybody has read the old field
      Complex sums{};
      each(block, elements, [&](int i, int e) {
        field[e] = moved[i];
        sums.of[0] += modulus(moved[i].of[0], moved[i].of[1]);
        sums.of[1] += moved[i].of[0];
      });
      add_up(block, a, step, row, elements, sums, partial);  // holds the barrier after which the new field may be read
      if (a.dissipative)
        history = history + 1 < kHistories ? history + 1 : kHistories - 1;
      else
        each(block, elements, [&](int i, int e) {
          force[i] = verlet_force(a, field, e, rest[i], outside);
          TWINBENCH_UNROLL
          for (int part = 0; part < 2; ++part) momentum[i].of[part] += a.by.half_kick * force[i].of[part];
        });
    }
    each(block, elements, [&](int i, int e) {
      const std::int64_t at = place(a, e, row);
      const Complex last = field[e];
      kernels::store(a.field + at, last);
      kernels::store(a.momentum + at, momentum[i]);
    });
    if (thread == 0) a.history[row] = history;  // read by all its threads before the first barrier
  }

 private:
  template <class Block, class Step>
  TWINBENCH_DEVICE static void each(const Block& block, int elements, Step step) {
    const int thread = simt::thread_rank(block), threads = simt::thread_count(block);
    TWINBENCH_UNROLL
    for (int i = 0; i < kEach; ++i)
      if (const int e = thread + i * threads; e < elements) step(i, e);
  }

  // In floats, of element e of a row.
  TWINBENCH_DEVICE static std::int64_t place(const Arguments& a, int e, int row) {
    const std::int64_t cell = e / a.dimension, column = e % a.dimension;
    return 2 * ((cell * a.dimension + row) * a.dimension + column);
  }

  template <class Field>
  TWINBENCH_DEVICE static Complex slopes(const Arguments& a, Field field, int e, const Complex& here) {
    const int line = a.height * a.dimension, all = a.width * line, y = e % line;
    const Complex right = field[e + line < all ? e + line : e + line - all],
                  left = field[e >= line ? e - line : e - line + all];
    const Complex up = field[y + a.dimension < line ? e + a.dimension : e + a.dimension - line];
    const Complex down = field[y >= a.dimension ? e - a.dimension : e - a.dimension + line];
    return {laplacian(right.of[0], left.of[0], up.of[0], down.of[0], here.of[0]),
            laplacian(right.of[1], left.of[1], up.of[1], down.of[1], here.of[1])};
  }

  template <class Field>
  TWINBENCH_DEVICE static Complex verlet_force(const Arguments& a, Field field, int e, const Complex& rest,
                                               float outside) {
    const Complex here = field[e], slope = slopes(a, field, e, here);
    return {force_on(a.by, slope.of[0], here.of[0], rest.of[0], outside),
            force_on(a.by, slope.of[1], here.of[1], rest.of[1], 0.0f)};
  }

  // The row's sums of one step: warps, then their partial sums by the first warp, in a fixed order. One barrier: two
  // steps in a row use different places.
  template <class Block, class Partial>
  TWINBENCH_DEVICE static void add_up(Block& block, const Arguments& a, std::int64_t step, int row, int elements,
                                      Complex sums, Partial partial) {
    const int lane = simt::lane(block), parity = static_cast<int>(step % 2) * kWarps;
    sums.of[0] = simt::warp_sum(block, sums.of[0]);
    sums.of[1] = simt::warp_sum(block, sums.of[1]);
    if (lane == 0) partial[parity + simt::warp(block)] = sums;
    block.barrier();
    if (simt::warp(block) != 0) return;
    Complex all{};
    if (lane < simt::warp_count(block)) all = partial[parity + lane];
    all.of[0] = simt::warp_sum(block, all.of[0]);
    all.of[1] = simt::warp_sum(block, all.of[1]);
    if (lane != 0) return;
    a.row_modulus[row * a.steps + step] = all.of[0];
    a.row_mean[row * a.steps + step] = all.of[1] / static_cast<float>(elements);
  }
};

}  // namespace twinbench::trainer2::field_dynamics
