// sem.lazy_gate's kernel on the host executor, in every thread order: the specification's worked examples, and rows of
// all kinds against the recurrence in fp64.
#include "kernels/sem/lazy_gate/kernel.h"

#include "kernels/sem/lazy_gate/kernel_testing.h"

namespace twinbench::sem::lazy_gate {
namespace {

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
  std::vector<int> counts;  // [kCounts]
  float residual;
  std::vector<std::int64_t> entry;
};
// What the cache holds before the call, the call's key, and whether keys decide.
struct Keys {
  std::vector<std::int64_t> entry = {1, 5, 2}, call = {6, 2};
  bool keyed = false;
};
template <class Kernel>
Called call(const std::vector<Edge>& edges, int dim, const Floats& field, const Floats& entry, const StopRule& rule,
            Order order, int tile_rows, const Keys& keys = {}) {
  const auto rows = static_cast<std::int64_t>(field.size()) / 2 / dim;
  const PlacedMatrix matrix(Matrix(dim, edges));
  const Buffer given(field), x(field.size()), cache(entry), residual(1);
  const Counts counts(kCounts);
  const GuardedBuffer<std::int64_t> held(keys.entry), key(keys.call);
  const GuardedBuffer<unsigned> handover{std::vector<unsigned>(kHandover)};
  kernels::simt::run_clean(Kernel{}, kernels::blocks_of(rows, tile_rows), kThreads, order,
                           CallArguments{.rows = rows,
                                         .plane = rows * dim,
                                         .dim = dim,
                                         .rule = rule,
                                         .keyed = keys.keyed,
                                         .graph = matrix.graph(),
                                         .field = given.data(),
                                         .key = key.data(),
                                         .x = x.data(),
                                         .cache = cache.data(),
                                         .entry = held.data(),
                                         .counts = counts.data(),
                                         .largest_residual = residual.data(),
                                         .count_stride = 1,
                                         .handover = handover.data()},
                           std::int64_t{24} * dim * tile_rows);
  for (int i = 0; i < kHandover; ++i) EXPECT_EQ(handover[place(i)], 0u);
  Called result{{}, {}, counts[kNonfiniteRows], counts[kSkipped], counts[kIterations], {}, residual[0], {}};
  for (std::size_t i = 0; i < field.size(); ++i) result.x.push_back(x[i]), result.cache.push_back(cache[i]);
  for (int i = 0; i < kCounts; ++i) result.counts.push_back(counts[place(i)]);
  for (std::size_t i = 0; i < 3; ++i) result.entry.push_back(held[i]);
  EXPECT_EQ(result.entry, (std::vector<std::int64_t>{1, keys.call[0], keys.call[1]})) << "every call leaves its key";
  return result;
}

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

// An entry is looked at where it is valid, and where keys decide only if both parts of its key are the call's.
TEST(LazyGateKernel, LooksAtAnEntryOfItsOwn) {
  const StopRule rule{5e-7f, 1e-6f, 400};
  const auto looked = [&](const Keys& keys, const StopRule& how) {
    const auto result = call<SolveTile>(kExample, 4, kPsi, kSolution, how, Order::kForward, kTileRows, keys);
    EXPECT_EQ(result.skipped, result.counts[kGateEvaluations]) << "the entry is the solution";
    EXPECT_EQ(result.iterations, result.skipped ? 0 : 7);
    return result.skipped == 1;
  };
  EXPECT_TRUE(looked({}, rule)) << "always";
  EXPECT_FALSE(looked({.entry = {0, 6, 2}}, rule)) << "not valid";
  EXPECT_FALSE(looked({}, {5e-7f, 0, 400})) << "no gate";
  EXPECT_TRUE(looked({.entry = {1, 6, 2}, .keyed = true}, rule));
  EXPECT_FALSE(looked({.entry = {1, 5, 2}, .keyed = true}, rule)) << "another micro-batch";
  EXPECT_FALSE(looked({.entry = {1, 6, 1}, .keyed = true}, rule)) << "other parameters";
  EXPECT_FALSE(looked({.entry = {0, 6, 2}, .keyed = true}, rule));
  // What is not valid is not read: NaN in it changes nothing.
  const Floats nothing(8, std::numeric_limits<float>::quiet_NaN());
  const auto fresh =
      call<SolveTile>(kExample, 4, kPsi, nothing, rule, Order::kForward, kTileRows, {.entry = {0, 0, 0}});
  const auto plain = call<SolveTile>(kExample, 4, kPsi, Floats(8), {5e-7f, 0, 400}, Order::kForward, kTileRows);
  EXPECT_EQ(fresh.x, plain.x) << "bit for bit the solver without a gate";
}

// Rows that are known, warm, farther off than zeros, zero, not finite; then none that may iterate.
TEST(LazyGateKernel, CountsWhatBecameOfTheRows) {
  constexpr int kRows = 5, kDim = 11;
  const auto edges = ring(kDim, 0.05f);
  const StopRule rule{5e-7f, 1e-6f, 400};
  Floats field = spread(2 * kRows * kDim, 5);
  for (int i = 0; i < kDim; ++i) field[place(3 * kDim + i)] = field[place((kRows + 3) * kDim + i)] = 0;
  const auto first = call<SolveTile>(edges, kDim, field, Floats(field.size()), rule, Order::kForward, kTileRows);
  EXPECT_EQ(first.counts[kDiscardedRows], 4) << "zeros are as far off as zeros; the zero row is known";
  EXPECT_EQ(first.counts[kUnconvergedRows], 0);
  EXPECT_GT(first.residual, 0);
  EXPECT_LE(first.residual, 5e-7f);
  Floats entry = first.cache;
  entry[place(kDim + 2)] += 1e-3f;
  for (int i = 0; i < kDim; ++i) entry[place(2 * kDim + i)] *= -1;
  entry[place(3 * kDim)] = 1;
  field[place(4 * kDim)] = std::numeric_limits<float>::infinity();
  for (const Order order : kernels::simt::kAllOrders) {
    const auto result = call<SolveTile>(edges, kDim, field, entry, rule, order, kTileRows);
    EXPECT_EQ(result.counts[kGateEvaluations], 1);
    EXPECT_EQ(result.counts[kDiscardedRows], 2) << "the opposite solution, and what zeros must not keep";
    EXPECT_EQ(result.nonfinite, 1);
    EXPECT_LT(result.iterations, result.counts[kRowIterations]);
    EXPECT_LT(result.counts[kRowIterations], 2 * result.iterations) << "the warm row takes fewer";
    const auto none = call<SolveTile>(edges, kDim, field, entry, {5e-7f, 1e-6f, 0}, order, kTileRows);
    EXPECT_EQ(none.counts[kUnconvergedRows], 2) << "all but the known, the zero and the broken one";
    EXPECT_EQ(none.iterations, 0);
    EXPECT_NEAR(none.residual, 1, 1e-6) << "nothing of the discarded row is solved";
    for (int i = 0; i < kDim; ++i)
      EXPECT_EQ(none.x[place(kDim + i)], entry[place(kDim + i)]) << "the start is returned";
  }
  const auto three = call<SolveOne>(edges, kDim, field, entry, {5e-7f, 0, 3}, Order::kReverse, 1);
  EXPECT_EQ(three.counts[kUnconvergedRows], 3) << "without a gate, too";
  EXPECT_EQ(three.counts[kRowIterations], 9);
}

}  // namespace
}  // namespace twinbench::sem::lazy_gate
