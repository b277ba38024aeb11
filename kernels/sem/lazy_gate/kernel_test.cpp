// sem.lazy_gate's kernel on the host executor, in every thread order: the specification's worked examples, and rows of
// all kinds against the recurrence in fp64.
#include "kernels/sem/lazy_gate/kernel.h"

#include <complex>
#include <limits>

#include "harness/simt/kernel_testing.h"

namespace twinbench::sem::lazy_gate {
namespace {

using kernels::simt::Buffer;
using kernels::simt::Floats;
using kernels::simt::GuardedBuffer;
using kernels::simt::Order;
using kernels::simt::spread;
using Complex = std::complex<double>;
using Row = std::vector<Complex>;
using Counts = GuardedBuffer<std::int32_t>;

std::size_t place(std::int64_t i) { return static_cast<std::size_t>(i); }

struct Edge {
  int i, j;
  float weight;  // dt/2 times it
};

// By rows, as the kernel takes it.
struct Matrix {
  Floats diagonal, weights;
  std::vector<std::int32_t> begins = {0}, neighbours;

  Matrix(int dim, const std::vector<Edge>& edges) : diagonal(place(dim)) {
    for (int node = 0; node < dim; ++node) {
      for (const auto& [i, j, weight] : edges) {
        if (i != node && j != node) continue;
        neighbours.push_back(i == node ? j : i);
        weights.push_back(weight);
        diagonal[place(node)] += weight;
      }
      begins.push_back(static_cast<std::int32_t>(neighbours.size()));
    }
  }
};

Row operated(const std::vector<Edge>& edges, const Row& v, double sign) {
  Row result = v;
  for (const auto& [i, j, weight] : edges) {
    const Complex flow = Complex(0, sign * double{weight}) * (v[place(i)] - v[place(j)]);
    result[place(i)] += flow;
    result[place(j)] -= flow;
  }
  return result;
}
double square(const Row& v) {
  double sum = 0;
  for (const auto& value : v) sum += std::norm(value);
  return sum;
}

struct Solution {
  Row x;
  int iterations = 0;
};
// From zero, or from `start` where that is given.
Solution solved(const std::vector<Edge>& edges, const Row& field, const StopRule& rule, const Row* start = nullptr) {
  const Row b = operated(edges, field, -1);
  Solution solution{start ? *start : Row(field.size()), 0};
  Row r = operated(edges, solution.x, 1);
  for (std::size_t i = 0; i < r.size(); ++i) r[i] = b[i] - r[i];
  Row p = r;
  double rho = square(r), alpha = 1;
  while (solution.iterations < rule.most_iterations && square(b) > 0) {
    ++solution.iterations;
    const Row q = operated(edges, p, 1);
    for (std::size_t i = 0; i < r.size(); ++i) solution.x[i] += alpha * p[i], r[i] -= alpha * q[i];
    const double t = square(r) / rho;
    rho = square(r);
    if (rho <= double{rule.tolerance} * double{rule.tolerance} * square(b)) break;
    for (std::size_t i = 0; i < r.size(); ++i) p[i] = r[i] - t * p[i];
    alpha = 1 / (1 + t / alpha);
  }
  return solution;
}

// One launch over rows given one by one.
struct Called {
  Floats x, cache;  // [2, rows, dim]
  int nonfinite, skipped, iterations;
};
template <class Kernel>
Called call(const std::vector<Edge>& edges, int dim, const Floats& field, const Floats& entry, const StopRule& rule,
            Order order, int tile_rows) {
  const auto rows = static_cast<std::int64_t>(field.size()) / 2 / dim;
  const Matrix matrix(dim, edges);
  const Buffer diagonal(matrix.diagonal), weights(matrix.weights), given(field), x(field.size()), cache(entry);
  const Counts begins(matrix.begins), neighbours(matrix.neighbours), nonfinite(1), skipped(1), iterations(1);
  const GuardedBuffer<unsigned> handover(std::vector<unsigned>{0, 0, 0, 0});
  kernels::simt::run_clean(Kernel{}, kernels::blocks_of(rows, tile_rows), kThreads, order,
                           CallArguments{.rows = rows,
                                         .plane = rows * dim,
                                         .dim = dim,
                                         .rule = rule,
                                         .graph = {.diagonal = diagonal.data(),
                                                   .begins = begins.data(),
                                                   .neighbours = neighbours.data(),
                                                   .weights = weights.data()},
                                         .field = given.data(),
                                         .x = x.data(),
                                         .cache = cache.data(),
                                         .nonfinite_rows = nonfinite.data(),
                                         .skipped = skipped.data(),
                                         .iterations = iterations.data(),
                                         .handover = handover.data()},
                           std::int64_t{24} * dim * tile_rows);
  EXPECT_EQ(handover[0] + handover[1] + handover[2] + handover[3], 0u);
  Called result{{}, {}, nonfinite[0], skipped[0], iterations[0]};
  for (std::size_t i = 0; i < field.size(); ++i) result.x.push_back(x[i]), result.cache.push_back(cache[i]);
  return result;
}

Row row_of(const Floats& planes, std::int64_t rows, std::int64_t dim, std::int64_t row) {
  Row values;
  for (std::int64_t i = 0; i < dim; ++i)
    values.emplace_back(planes[place(row * dim + i)], planes[place((rows + row) * dim + i)]);
  return values;
}

void expect_row(const Floats& planes, std::int64_t rows, std::int64_t dim, std::int64_t row, const Row& expected,
                double tolerance) {
  const Row got = row_of(planes, rows, dim, row);
  const double scale = std::max(1e-30, std::sqrt(square(expected)));
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_LE(std::abs(got[i] - expected[i]), tolerance * scale) << "row " << row << " node " << i;
}

// C05's example: weights (1, 0.5, 2, 1.5), dt = 0.5.
const std::vector<Edge> kExample = {{0, 1, 0.25f}, {0, 3, 0.125f}, {1, 2, 0.5f}, {2, 3, 0.375f}};
const Floats kPsi = {1, 0, -0.5f, 0.25f, 0, 0.5f, 0, -0.25f};
const Floats kSolution = {0.66306540f,  0.39181792f, -0.08614232f, -0.21874100f,
                          -0.52178767f, 0.32883175f, 0.72050562f,  -0.27754970f};

TEST(LazyGateKernel, WalksAsTheSpecificationDoes) {
  const Floats none(8);
  for (const Order order : kernels::simt::kAllOrders) {
    const auto two = call<SolveOne>(kExample, 4, kPsi, none, {5e-7f, 0, 2}, order, 1);
    EXPECT_EQ(two.iterations, 2);
    expect_row(
        two.x, 1, 4, 0,
        {{0.45404501, -0.36875479}, {0.36624625, 0.07525608}, {-0.17810606, 0.86042784}, {-0.16054630, -0.40638283}},
        3e-7);
    const auto all = call<SolveTile>(kExample, 4, kPsi, none, {5e-7f, 0, 400}, order, kTileRows);
    EXPECT_EQ(all.iterations, 7) << "2 D - 1 iterations are exact";
    kernels::simt::expect_close(all.x, kSolution, 6e-7, "x");
    EXPECT_EQ(all.skipped, 0);
  }
}

// C07's examples: gate ratios 7.36e-7, 1.607e-3 and 1.453.
TEST(LazyGateKernel, SkipsStartsWarmOrDiscards) {
  const StopRule rule{5e-7f, 1e-6f, 400};
  for (const Order order : kernels::simt::kAllOrders) {
    Floats entry = kSolution;
    entry[0] += 1e-6f;
    const auto near = call<SolveTile>(kExample, 4, kPsi, entry, rule, order, kTileRows);
    EXPECT_EQ(near.skipped, 1);
    EXPECT_EQ(near.iterations, 0);
    EXPECT_EQ(near.x, entry) << "bit for bit";
    EXPECT_EQ(near.cache, entry);

    entry = kSolution;
    entry[0] += 1e-3f, entry[1] -= 1e-3f, entry[6] += 1e-3f;
    // Two steps: the first does not know what the residual was before it, and after a third the walk has healed.
    const StopRule some_steps{5e-7f, 1e-6f, 2};
    const auto warm = call<SolveTile>(kExample, 4, kPsi, entry, some_steps, order, kTileRows);
    const Row start = row_of(entry, 1, 4, 0);
    EXPECT_EQ(warm.skipped, 0);
    expect_row(warm.x, 1, 4, 0, solved(kExample, row_of(kPsi, 1, 4, 0), some_steps, &start).x, 2e-7);

    // Ten times the gate's residual is no skip; constants lie in the null space of H, and another entry does not.
    entry = kSolution;
    entry[0] += 1e-5f;
    EXPECT_EQ(call<SolveTile>(kExample, 4, kPsi, entry, rule, order, kTileRows).skipped, 0);
    for (const Floats& other : {Floats{1, 1, 1, 1, 0, 0, 0, 0}, Floats{2, -1, 0.5f, 1, 0, 1, -2, 1}}) {
      const auto discarded = call<SolveTile>(kExample, 4, kPsi, other, some_steps, order, kTileRows);
      expect_row(discarded.x, 1, 4, 0, solved(kExample, row_of(kPsi, 1, 4, 0), some_steps).x, 3e-7);
      EXPECT_EQ(discarded.cache, discarded.x) << "every call leaves its answer";
    }
  }
}

std::vector<Edge> ring(int dim, float weight) {
  std::vector<Edge> edges;
  for (int i = 0; i < dim; ++i)
    for (int offset = 1; offset <= 3; ++offset)
      edges.push_back({i, (i + offset) % dim, weight * static_cast<float>(1 + (i + offset) % 4)});
  return edges;
}

template <class Kernel>
void check_rows(int rows, int dim, Order order, int tile_rows) {
  const auto edges = ring(dim, 0.05f);
  const StopRule rule{5e-7f, 1e-6f, 400};
  const Floats field = spread(std::int64_t{2} * rows * dim, 1);
  const auto result = call<Kernel>(edges, dim, field, Floats(field.size()), rule, order, tile_rows);
  int iterations = 0;
  for (int row = 0; row < rows; ++row) {
    const Solution one = solved(edges, row_of(field, rows, dim, row), rule);
    iterations = std::max(iterations, one.iterations);
    expect_row(result.x, rows, dim, row, one.x, 2e-6);
  }
  EXPECT_NEAR(result.iterations, iterations, 1);
  EXPECT_EQ(result.nonfinite, 0);
  EXPECT_EQ(result.cache, result.x);
  // The same input again is a repetition, and costs one residual.
  const auto again = call<Kernel>(edges, dim, field, result.cache, rule, order, tile_rows);
  EXPECT_EQ(again.skipped, 1);
  EXPECT_EQ(again.x, result.x);
}

TEST(LazyGateKernel, MatchesTheRecurrence) {
  for (const Order order : kernels::simt::kAllOrders) check_rows<SolveTile>(6, 9, order, kTileRows);
  check_rows<SolveTile>(3, 300, Order::kShuffled, kTileRows);  // several nodes a thread
  check_rows<SolveOne>(2, 300, Order::kReverse, 1);
}

// A row that is not finite, one that is zero, one that is known and one that is not, in a tile.
TEST(LazyGateKernel, EachRowHasItsOwnEnd) {
  constexpr int kRows = 4, kDim = 11;
  const auto edges = ring(kDim, 0.05f);
  const StopRule rule{5e-7f, 1e-6f, 400};
  Floats field = spread(2 * kRows * kDim, 5);
  const auto first = call<SolveTile>(edges, kDim, field, Floats(field.size()), rule, Order::kForward, kTileRows);
  Floats entry = first.cache;
  for (int i = 0; i < kDim; ++i) field[place(kDim + i)] = field[place((kRows + 1) * kDim + i)] = 0;
  field[place((kRows + 2) * kDim + 4)] = std::numeric_limits<float>::infinity();
  for (int i = 0; i < kDim; ++i) field[place(3 * kDim + i)] *= -1.5f;
  for (const Order order : kernels::simt::kAllOrders) {
    const auto result = call<SolveTile>(edges, kDim, field, entry, rule, order, kTileRows);
    EXPECT_EQ(result.nonfinite, 1);
    EXPECT_EQ(result.skipped, 0);
    for (int part = 0; part < 2; ++part)
      for (int i = 0; i < kDim; ++i) {
        const auto at = [&](int row) { return place((part * kRows + row) * kDim + i); };
        EXPECT_EQ(result.x[at(0)], entry[at(0)]) << "known, whatever becomes of the others";
        EXPECT_EQ(result.x[at(1)], 0) << "a stale row does not outlive zeros";
        EXPECT_TRUE(std::isnan(result.x[at(2)]));
        EXPECT_EQ(result.cache[at(2)], entry[at(2)]) << "nothing that is not finite is kept";
      }
    expect_row(result.x, kRows, kDim, 3, solved(edges, row_of(field, kRows, kDim, 3), rule).x, 2e-6);
  }
}

}  // namespace
}  // namespace twinbench::sem::lazy_gate
