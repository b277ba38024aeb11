// Row loops of the CPU path: how work is shared among threads, and the vectorised loops that several components need.
// Results never depend on the number of threads: an element, or a column's sum, belongs to one thread.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>

#include "kernels/common/arguments.h"
#include "optimized/common/tensors.h"
#include "src/common/cpu_clones.h"

namespace twinbench {

// Rows that are worth a thread's wake-up, where `elements` are.
inline std::int64_t grain(std::int64_t width, std::int64_t elements = 8192) {
  return std::max<std::int64_t>(1, elements / std::max<std::int64_t>(width, 1));
}

// `count` items cut into pieces of at least `least`, sizes a multiple of `unit`, at most `most` pieces.
struct Pieces {
  std::int64_t count = 0, size = 1;

  static Pieces of(std::int64_t count, std::int64_t least, std::int64_t most, std::int64_t unit) {
    const std::int64_t even = (count + most - 1) / most;
    return {count, std::max(least, (even + unit - 1) / unit * unit)};
  }
  std::int64_t number() const { return (count + size - 1) / size; }

  // body(piece, begin, end) for every piece, shared among the threads.
  template <class Body>
  void each(Body body) const {
    at::parallel_for(0, number(), 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) body(i, i * size, std::min(count, (i + 1) * size));
    });
  }
};

// The bf16 roundings are loops of their own: a switch inside arithmetic would keep it from being vectorised.
template <class Real>
TWINBENCH_CPU_CLONES static void round_row(const Real* __restrict from, Real* __restrict to, std::int64_t count) {
  for (std::int64_t j = 0; j < count; ++j) to[j] = kernels::round_to_bf16(from[j]);
}
template <class Real>
TWINBENCH_CPU_CLONES static void round_in_place(Real* __restrict row, std::int64_t count) {
  for (std::int64_t j = 0; j < count; ++j) row[j] = kernels::round_to_bf16(row[j]);
}

template <class Real>
TWINBENCH_CPU_CLONES static void add_row(const Real* __restrict row, Real* __restrict sum, std::int64_t width) {
  for (std::int64_t j = 0; j < width; ++j) sum[j] += row[j];
}

// to[row][i] = operand(from[row][i]), contiguous.
template <class Real>
TWINBENCH_CPU_CLONES static void gather_rows(std::int64_t rows, std::int64_t columns, kernels::StridedRows<Real> from,
                                             bool round, Real* __restrict to) {
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t i = 0; i < columns; ++i) to[row * columns + i] = from.at(row, i);
  if (round) round_in_place(to, rows * columns);
}

// All of a contiguous tensor rounded; `to` may be `from`.
template <class Real>
void round_all(const at::Tensor& from, const at::Tensor& to) {
  const Real* values = data<Real>(from);
  Real* rounded = data<Real>(to);
  at::parallel_for(0, from.numel(), 65536, [&](std::int64_t begin, std::int64_t end) {
    if (values == rounded)
      round_in_place(rounded + begin, end - begin);
    else
      round_row(values + begin, rounded + begin, end - begin);
  });
}

// Sums of the leading columns in row order, columns shared among the threads. Rows beyond a few hundred are summed by
// themselves first: one sum of thousands would round each row to the digits of all before it.
template <class Real>
void sum_columns(const at::Tensor& rows, const at::Tensor& sums, std::int64_t columns_a_thread = 128) {
  const std::int64_t count = rows.size(0), stride = rows.size(1);
  const Real* from = data<Real>(rows);
  Real* to = data<Real>(sums);
  constexpr std::int64_t kRows = 256, kColumns = 128;
  at::parallel_for(0, sums.numel(), columns_a_thread, [&](std::int64_t begin, std::int64_t end) {
    std::fill(to + begin, to + end, Real(0));
    const std::int64_t alone = std::min(count, kRows);
    for (std::int64_t row = 0; row < alone; ++row) add_row(from + row * stride + begin, to + begin, end - begin);
    for (std::int64_t first = alone; first < count; first += kRows)
      for (std::int64_t column = begin; column < end; column += kColumns) {
        const std::int64_t columns = std::min(kColumns, end - column), last = std::min(count, first + kRows);
        Real sum[kColumns] = {};
        for (std::int64_t row = first; row < last; ++row) add_row(from + row * stride + column, sum, columns);
        add_row(sum, to + column, columns);
      }
  });
}

}  // namespace twinbench
