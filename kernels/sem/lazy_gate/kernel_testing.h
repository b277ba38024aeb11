// What the tests of sem.lazy_gate's kernels share: graphs as the kernels take them, rows in fp64, the worked example.
#pragma once

#include <algorithm>
#include <complex>
#include <limits>
#include <utility>
#include <vector>

#include "harness/simt/kernel_testing.h"
#include "kernels/sem/lazy_gate/arguments.h"

namespace twinbench::sem::lazy_gate {

using kernels::simt::Buffer;
using kernels::simt::Floats;
using kernels::simt::GuardedBuffer;
using kernels::simt::Order;
using kernels::simt::spread;
using Complex = std::complex<double>;
using Row = std::vector<Complex>;
using Counts = GuardedBuffer<std::int32_t>;

inline std::size_t place(std::int64_t i) { return static_cast<std::size_t>(i); }

struct Edge {
  int i, j;
  float weight;  // dt/2 times it
};

// By slices, as the kernel takes it.
struct Matrix {
  Floats diagonal;
  std::vector<std::int32_t> neighbours, slices, entries;

  Matrix(int dim, const std::vector<Edge>& edges) : diagonal(place(dim)) {
    std::vector<std::vector<std::pair<int, float>>> of(place(dim));
    for (const auto& [i, j, weight] : edges)
      for (const auto& [node, other] : {std::pair(i, j), std::pair(j, i)}) {
        of[place(node)].emplace_back(other, weight);
        diagonal[place(node)] += weight;
      }
    for (const auto& one : of) neighbours.push_back(static_cast<std::int32_t>(one.size()));
    for (int first = 0; first < dim; first += kSlice) {
      const auto begin = neighbours.begin() + first, end = neighbours.begin() + std::min(dim, first + kSlice);
      slices.push_back(static_cast<std::int32_t>(entries.size() / 2));
      entries.resize(entries.size() + place(2 * kSlice * *std::max_element(begin, end)), -1);  // what nobody reads
      for (int node = first; node < std::min(dim, first + kSlice); ++node)
        for (std::size_t e = 0; e < of[place(node)].size(); ++e) {
          auto* const entry = &entries[2 * (place(slices.back() + node - first) + kSlice * e)];
          entry[0] = of[place(node)][e].first;
          entry[1] = static_cast<std::int32_t>(kernels::bits_of(of[place(node)][e].second));
        }
    }
  }
};

// On guarded memory, for as long as a launch takes.
struct PlacedMatrix {
  Buffer diagonal;
  GuardedBuffer<std::int32_t> neighbours, slices, entries;

  explicit PlacedMatrix(const Matrix& matrix)
      : diagonal(matrix.diagonal),
        neighbours(matrix.neighbours),
        slices(matrix.slices),
        entries(matrix.entries.empty() ? std::vector<std::int32_t>{0, 0} : matrix.entries) {}
  Graph graph() const {
    return {.diagonal = diagonal.data(),
            .neighbours = neighbours.data(),
            .slices = slices.data(),
            .entries = entries.data()};
  }
};

inline Row operated(const std::vector<Edge>& edges, const Row& v, double sign) {
  Row result = v;
  for (const auto& [i, j, weight] : edges) {
    const Complex flow = Complex(0, sign * double{weight}) * (v[place(i)] - v[place(j)]);
    result[place(i)] += flow;
    result[place(j)] -= flow;
  }
  return result;
}
inline double square(const Row& v) {
  double sum = 0;
  for (const auto& value : v) sum += std::norm(value);
  return sum;
}

inline Row row_of(const Floats& planes, std::int64_t rows, std::int64_t dim, std::int64_t row) {
  Row values;
  for (std::int64_t i = 0; i < dim; ++i)
    values.emplace_back(planes[place(row * dim + i)], planes[place((rows + row) * dim + i)]);
  return values;
}

inline void expect_row(const Floats& planes, std::int64_t rows, std::int64_t dim, std::int64_t row, const Row& expected,
                       double tolerance) {
  const Row got = row_of(planes, rows, dim, row);
  const double scale = std::max(1e-30, std::sqrt(square(expected)));
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_LE(std::abs(got[i] - expected[i]), tolerance * scale) << "row " << row << " node " << i;
}

// C05's example: weights (1, 0.5, 2, 1.5), dt = 0.5.
inline const std::vector<Edge> kExample = {{0, 1, 0.25f}, {0, 3, 0.125f}, {1, 2, 0.5f}, {2, 3, 0.375f}};
inline const Floats kPsi = {1, 0, -0.5f, 0.25f, 0, 0.5f, 0, -0.25f};
inline const Floats kSolution = {0.66306540f,  0.39181792f, -0.08614232f, -0.21874100f,
                                 -0.52178767f, 0.32883175f, 0.72050562f,  -0.27754970f};

inline std::vector<Edge> ring(int dim, float weight) {
  std::vector<Edge> edges;
  for (int i = 0; i < dim; ++i)
    for (int offset = 1; offset <= 3; ++offset)
      edges.push_back({i, (i + offset) % dim, weight * static_cast<float>(1 + (i + offset) % 4)});
  return edges;
}

}  // namespace twinbench::sem::lazy_gate
