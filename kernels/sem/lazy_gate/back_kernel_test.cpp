// sem.lazy_gate's kernels on the way back, on the host executor: C06's worked example, the adjoint system in fp64, the
// edges.
#include "kernels/sem/common/edges_testing.h"
#include "kernels/sem/lazy_gate/adjoint_kernel.h"
#include "kernels/sem/lazy_gate/kernel_testing.h"

namespace twinbench::sem::lazy_gate {
namespace {

struct Adjoint {
  Floats gradient, z, y;  // [2, rows, dim]
  int iterations;
};
template <class Kernel>
Adjoint adjoint(const std::vector<Edge>& edges, int dim, const Floats& field, const Floats& x, const Floats& given,
                const StopRule& rule, Order order, int tile_rows) {
  const auto rows = static_cast<std::int64_t>(field.size()) / 2 / dim;
  const PlacedMatrix matrix(Matrix(dim, edges));
  const Buffer field_in(field), x_in(x), given_in(given), gradient(field.size()), z(field.size()), y(field.size());
  const Counts iterations(1);
  const GuardedBuffer<unsigned> handover{std::vector<unsigned>(kHandover)};
  kernels::simt::run_clean(Kernel{}, kernels::blocks_of(rows, tile_rows), kThreads, order,
                           AdjointArguments{.rows = rows,
                                            .plane = rows * dim,
                                            .dim = dim,
                                            .rule = rule,
                                            .graph = matrix.graph(),
                                            .field = field_in.data(),
                                            .x = x_in.data(),
                                            .grad_x = given_in.data(),
                                            .grad_field = gradient.data(),
                                            .z = z.data(),
                                            .y = y.data(),
                                            .iterations = iterations.data(),
                                            .handover = handover.data()},
                           std::int64_t{24} * dim * tile_rows);
  EXPECT_EQ(handover[0] + handover[kHandover - 1], 0u);
  Adjoint result{{}, {}, {}, iterations[0]};
  for (std::size_t i = 0; i < field.size(); ++i) {
    result.gradient.push_back(gradient[i]);
    result.z.push_back(z[i]);
    result.y.push_back(y[i]);
  }
  return result;
}

// C06's example.
TEST(LazyGateKernel, AdjointIsTheSpecifications) {
  const Floats given = {0.1f, 0, 0.4f, 0.1f, 0.2f, -0.3f, 0, -0.1f};
  const Row z = {{-0.01646500, 0.11711322},
                 {0.22139153, -0.24191876},
                 {0.22415730, 0.02134831},
                 {0.17091616, -0.09654278}},
            gradient = {{-0.13292999, 0.03422645},
                        {0.44278306, -0.18383751},
                        {0.04831461, 0.04269663},
                        {0.24183232, -0.09308557}};
  for (const Order order : kernels::simt::kAllOrders) {
    const auto result = adjoint<AdjointTile>(kExample, 4, kPsi, kSolution, given, {5e-7f, 0, 400}, order, kTileRows);
    expect_row(result.z, 1, 4, 0, z, 1e-6);
    expect_row(result.gradient, 1, 4, 0, gradient, 1e-6);
    EXPECT_EQ(result.iterations, 7);
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(result.y[i], kSolution[4 + i] + kPsi[4 + i]);
      EXPECT_EQ(result.y[4 + i], -(kSolution[i] + kPsi[i]));
    }
  }
}

// By the transposed system in fp64, at widths that no slice and no block divides; a row that is not finite has no
// gradient, and its neighbours have theirs.
template <class Kernel>
void check_adjoint(int rows, int dim, Order order, int tile_rows) {
  auto edges = ring(dim, 0.05f);
  for (int i = 1; i < dim; i += 2) edges.push_back({0, i, 0.01f});  // one node with many neighbours
  const StopRule rule{5e-7f, 0, 400};
  const Floats field = spread(std::int64_t{2} * rows * dim, 1), x = spread(std::int64_t{2} * rows * dim, 2);
  Floats given = spread(std::int64_t{2} * rows * dim, 3);
  given[place((rows - 1) * dim)] = std::numeric_limits<float>::quiet_NaN();
  const auto result = adjoint<Kernel>(edges, dim, field, x, given, rule, order, tile_rows);
  for (int row = 0; row + 1 < rows; ++row) {
    const Row z = row_of(result.z, rows, dim, row), g = row_of(given, rows, dim, row);
    Row left = operated(edges, z, -1);
    for (std::size_t i = 0; i < left.size(); ++i) left[i] -= g[i];
    EXPECT_LE(std::sqrt(square(left) / square(g)), 1e-6) << "row " << row;
    expect_row(result.gradient, rows, dim, row, operated(edges, z, 1), 1e-6);
  }
  for (int i = 0; i < dim; ++i) {
    EXPECT_TRUE(std::isnan(result.gradient[place((rows - 1) * dim + i)]));
    EXPECT_TRUE(std::isnan(result.z[place((2 * rows - 1) * dim + i)]));
  }
}
TEST(LazyGateKernel, AdjointSolvesTheConjugatedSystem) {
  for (const Order order : kernels::simt::kAllOrders) check_adjoint<AdjointTile>(6, 9, order, kTileRows);
  check_adjoint<AdjointTile>(3, 300, Order::kShuffled, kTileRows);
  check_adjoint<AdjointOne>(2, 300, Order::kReverse, 1);
}

TEST(LazyGateKernel, EdgesMatchAPlainLoop) {
  const PlacedEdges edges({0.6f, 0.4f});
  for (const Order order : kernels::simt::kAllOrders) {
    kernels::simt::run_clean(Edges{}, static_cast<unsigned>(edge_blocks(EdgeNumbers::kEdges)), kEdgeThreads, order,
                             edges.arguments());
    edges.expect_gradients();
  }
}

}  // namespace
}  // namespace twinbench::sem::lazy_gate
