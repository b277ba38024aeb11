// sem.cayley's kernels on the host executor, in every thread order, against plain loops in fp64.
#include "kernels/sem/cayley/kernel.h"

#include "kernels/sem/cayley/wide_kernel.h"

#include <complex>
#include <limits>

#include "harness/simt/kernel_testing.h"
#include "kernels/sem/common/edges_testing.h"

namespace twinbench::sem::cayley {
namespace {

using kernels::simt::Buffer;
using kernels::simt::Floats;
using kernels::simt::GuardedBuffer;
using kernels::simt::Order;
using kernels::simt::spread;
using Complex = std::complex<double>;
using Words = GuardedBuffer<std::uint32_t>;

std::size_t place(std::int64_t i) { return static_cast<std::size_t>(i); }

// Any matrix will do: symmetric, entries of at most 1.
Complex entry(int dim, int row, int column) {
  const double low = std::min(row, column), high = std::max(row, column);
  return {std::cos(0.3 * low + 0.7 * high) / std::sqrt(dim), std::sin(0.9 * low - 0.2 * high) / std::sqrt(dim)};
}

std::vector<std::uint32_t> packed(int dim, Operand operand) {
  const int tiles = static_cast<int>(padded(dim)) / 16, halves = operand == Operand::kSplit ? 2 : 1;
  std::vector<std::uint32_t> words;
  const auto value = [&](int half, int part, int k, int n) {
    if (k >= dim || n >= dim) return 0.0f;
    const Complex number = entry(dim, k, n);
    const double scaled = (part == 0 ? number.real() : number.imag()) * kMatrixScale;
    const auto high = static_cast<double>(static_cast<_Float16>(scaled));
    return static_cast<float>(half == 0 ? scaled : scaled - high);
  };
  for (int item = 0; item < tiles; ++item)
    for (int step = 0; step < tiles; ++step)
      for (int vector = 0; vector < 2 * halves; ++vector)
        for (int lane = 0; lane < 32; ++lane)
          for (int word = 0; word < 4; ++word) {
            const int n = 16 * item + vector / halves * 8 + lane / 4, k = 16 * step + word % 2 * 8 + lane % 4 * 2;
            words.push_back(
                kernels::half_pair(value(vector % halves, word / 2, k, n), value(vector % halves, word / 2, k + 1, n)));
          }
  return words;
}

struct Sizes {
  int rows, dim;
  std::size_t field() const { return place(std::int64_t{2} * rows * dim); }
};

Complex at(const Sizes& s, const Floats& field, int row, int i) {
  return {field[place(row * s.dim + i)], field[place((s.rows + row) * s.dim + i)]};
}

struct Turned {
  std::vector<Complex> r;
  std::vector<double> intensity;
  double floor = 0;
};
Turned turned_row(const Sizes& s, const Floats& psi, const Floats& alpha, int row) {
  Turned result;
  for (int i = 0; i < s.dim; ++i) result.floor += std::norm(at(s, psi, row, i)) / s.dim;
  result.floor += 1e-8;
  for (int i = 0; i < s.dim; ++i) {
    result.intensity.push_back(std::norm(at(s, psi, row, i)) / result.floor);
    result.r.push_back(at(s, psi, row, i) * std::polar(1.0, alpha[place(i)] * result.intensity.back()));
  }
  return result;
}

std::vector<Complex> times(const Sizes& s, const std::vector<Complex>& row, bool conjugate) {
  std::vector<Complex> result;
  for (int n = 0; n < s.dim; ++n) {
    Complex sum = 0;
    for (int k = 0; k < s.dim; ++k)
      sum += row[place(k)] * (conjugate ? std::conj(entry(s.dim, k, n)) : entry(s.dim, k, n));
    result.push_back(sum);
  }
  return result;
}

void put(const Sizes& s, std::vector<double>& planes, int row, int i, Complex value) {
  planes[place(row * s.dim + i)] = value.real();
  planes[place((s.rows + row) * s.dim + i)] = value.imag();
}

// In units of 16, which the planted values have, and of 1: rows are scaled by what they hold.
Floats rows_of_all_sizes(const Sizes& s, unsigned seed) {
  Floats values = spread(2 * s.rows * s.dim, seed);
  for (int row = 0; row < 2 * s.rows; ++row)
    for (int i = 0; i < s.dim; ++i)
      values[place(row * s.dim + i)] *= row % s.rows == 1 ? 1e-12f : row % 3 == 0 ? 1e6f : 1.0f;
  return values;
}

void expect_near_by_row(const Sizes& s, const Buffer& got, const std::vector<double>& expected, double tolerance,
                        const char* name) {
  for (int row = 0; row < s.rows; ++row) {
    double scale = 1e-30;
    for (int i = 0; i < s.dim; ++i)
      scale = std::max(
          {scale, std::abs(expected[place(row * s.dim + i)]), std::abs(expected[place((s.rows + row) * s.dim + i)])});
    for (int plane = 0; plane < 2; ++plane)
      for (int i = 0; i < s.dim; ++i) {
        const std::size_t j = place((plane * s.rows + row) * s.dim + i);
        ASSERT_NEAR(got[j], expected[j], tolerance * scale) << name << " row " << row << " column " << i;
      }
  }
}

template <class Kernel, Operand kOperand>
void check_forward(const Sizes& s, Order order, double tolerance) {
  const Floats psi = rows_of_all_sizes(s, 1), alpha = spread(s.dim, 2, 0.3f);
  std::vector<double> expected(s.field());
  for (int row = 0; row < s.rows; ++row) {
    const auto x = times(s, turned_row(s, psi, alpha, row).r, false);
    for (int i = 0; i < s.dim; ++i) put(s, expected, row, i, x[place(i)]);
  }
  const Buffer given(psi, "psi", 16), of_phase(alpha, "alpha", 16), x(s.field(), "x", 16);
  const Words matrix(packed(s.dim, kOperand), "matrix", 16);
  const GuardedBuffer<std::int32_t> nonfinite(1);
  const GuardedBuffer<unsigned> handover(std::vector<unsigned>{0, 0});
  for (int launch = 0; launch < 2; ++launch) {  // the counters are 0 again after the first
    kernels::simt::run_clean(Kernel{}, static_cast<unsigned>(kernels::blocks_of(s.rows, rows_of(kOperand))), kThreads,
                             order,
                             ForwardArguments{.rows = s.rows,
                                              .dim = s.dim,
                                              .psi = given.data(),
                                              .alpha = of_phase.data(),
                                              .matrix = matrix.data(),
                                              .x = x.data(),
                                              .nonfinite_rows = nonfinite.data(),
                                              .handover = handover.data()},
                             OperandTile<kOperand>::bytes(s.dim));
    expect_near_by_row(s, x, expected, tolerance, "x");
    EXPECT_EQ(nonfinite[0], 0);
    EXPECT_EQ(handover[0] + handover[1], 0u);
  }
}

TEST(CayleyKernel, MatchesAPlainLoop) {
  for (const Order order : kernels::simt::kAllOrders) {
    check_forward<ForwardSplitAnyWidth, Operand::kSplit>({1, 1}, order, 3e-7);
    check_forward<ForwardSplit, Operand::kSplit>({33, 20}, order, 1e-6);
    check_forward<ForwardSingleAnyWidth, Operand::kSingle>({65, 17}, order, 2e-3);
    check_forward<ForwardSingle, Operand::kSingle>({10, 34}, order, 2e-3);
  }
  check_forward<ForwardSplit, Operand::kSplit>({5, 384}, Order::kForward, 1e-6);
  check_forward<ForwardSplitAnyWidth, Operand::kSplit>({3, 129}, Order::kShuffled, 1e-6);
}

TEST(CayleyKernel, OnlyRowsThatAreNotFiniteAreCounted) {
  const Sizes s{40, 12};
  Floats psi = spread(2 * s.rows * s.dim, 3);
  psi[place(3 * s.dim)] = std::numeric_limits<float>::quiet_NaN();
  psi[place((s.rows + 35) * s.dim + 11)] = INFINITY;
  const Buffer given(psi, "psi", 16), alpha(spread(s.dim, 4), "alpha", 16), x(s.field(), "x", 16);
  const Words matrix(packed(s.dim, Operand::kSplit), "matrix", 16);
  const GuardedBuffer<std::int32_t> nonfinite(1);
  const GuardedBuffer<unsigned> handover(std::vector<unsigned>{0, 0});
  kernels::simt::run_clean(ForwardSplit{}, 2, kThreads, Order::kShuffled,
                           ForwardArguments{.rows = s.rows,
                                            .dim = s.dim,
                                            .psi = given.data(),
                                            .alpha = alpha.data(),
                                            .matrix = matrix.data(),
                                            .x = x.data(),
                                            .nonfinite_rows = nonfinite.data(),
                                            .handover = handover.data()},
                           OperandTile<Operand::kSplit>::bytes(s.dim));
  EXPECT_EQ(nonfinite[0], 2);
  for (int row = 0; row < s.rows; ++row) EXPECT_EQ(std::isnan(x[place(row * s.dim)]), row == 3 || row == 35) << row;
}

// The way back of some rows, in fp64.
struct BackwardCase {
  Sizes s;
  Floats psi, alpha, x, given;
  std::vector<double> of_psi, z, y, terms;

  explicit BackwardCase(const Sizes& sizes)
      : s(sizes),
        psi(spread(2 * s.rows * s.dim, 1)),
        alpha(spread(s.dim, 2, 0.3f)),
        x(spread(2 * s.rows * s.dim, 3)),
        given(spread(2 * s.rows * s.dim, 4)),
        of_psi(s.field()),
        z(s.field()),
        y(s.field()),
        terms(place(s.dim)) {
    for (int row = 0; row < s.rows; ++row) go_back(row);
  }

  void go_back(int row) {
    std::vector<Complex> g;
    for (int i = 0; i < s.dim; ++i) g.push_back(at(s, given, row, i));
    const auto back = times(s, g, true);
    const Turned turned = turned_row(s, psi, alpha, row);
    double mean = 0;
    std::vector<double> of_phase;
    for (int i = 0; i < s.dim; ++i) {
      of_phase.push_back(back[place(i)].imag() * turned.r[place(i)].real() -
                         back[place(i)].real() * turned.r[place(i)].imag());
      terms[place(i)] += of_phase.back() * turned.intensity[place(i)];
      mean += alpha[place(i)] * of_phase.back() * turned.intensity[place(i)] / s.dim;
      put(s, z, row, i, (g[place(i)] + back[place(i)]) / 2.0);
      put(s, y, row, i, Complex(0, -1) * (at(s, x, row, i) + turned.r[place(i)]));
    }
    for (int i = 0; i < s.dim; ++i)
      put(s, of_psi, row, i,
          back[place(i)] * std::polar(1.0, -alpha[place(i)] * turned.intensity[place(i)]) +
              2.0 * at(s, psi, row, i) * (alpha[place(i)] * of_phase[place(i)] - mean) / turned.floor);
  }

  void expect(const Buffer& got_psi, const Buffer& got_z, const Buffer& got_y, const Buffer& got_terms) const {
    expect_near_by_row(s, got_z, z, 1e-6, "z");
    expect_near_by_row(s, got_y, y, 1e-6, "y");
    expect_near_by_row(s, got_psi, of_psi, 3e-6, "grad_psi");
    for (int i = 0; i < s.dim; ++i) {
      double sum = 0;
      for (std::int64_t block = 0; block < backward_blocks(s.rows); ++block) sum += got_terms[place(block * s.dim + i)];
      EXPECT_NEAR(sum, terms[place(i)], 1e-5 * s.rows) << i;
    }
  }
};

template <class Kernel>
void check_backward(const Sizes& s, Order order) {
  const BackwardCase one(s);
  const Buffer psi_in(one.psi, "psi", 16), alpha_in(one.alpha, "alpha", 16), x_in(one.x, "x", 16),
      given_in(one.given, "grad_x", 16), grad_psi(s.field(), "grad_psi", 16), z_out(s.field(), "z", 16),
      y_out(s.field(), "y", 16), terms_out(place(backward_blocks(s.rows) * s.dim), "terms", 16);
  const Words matrix(packed(s.dim, Operand::kSplit), "matrix", 16);
  kernels::simt::run_clean(Kernel{}, static_cast<unsigned>(backward_blocks(s.rows)), kThreads, order,
                           BackwardArguments{.rows = s.rows,
                                             .dim = s.dim,
                                             .psi = psi_in.data(),
                                             .alpha = alpha_in.data(),
                                             .matrix = matrix.data(),
                                             .x = x_in.data(),
                                             .grad_x = given_in.data(),
                                             .grad_psi = grad_psi.data(),
                                             .z = z_out.data(),
                                             .y = y_out.data(),
                                             .alpha_terms = terms_out.data()},
                           std::max<std::int64_t>(OperandTile<Operand::kSplit>::bytes(s.dim), 4 * kWarps * kMostDim));
  one.expect(grad_psi, z_out, y_out, terms_out);
}

// [2, rows, 2, dim]: the given gradient's planes times both parts of the matrix.
Floats plane_products(const Sizes& s, const Floats& given) {
  Floats products;
  for (int row = 0; row < 2 * s.rows; ++row)
    for (int column = 0; column < 2 * s.dim; ++column) {
      double sum = 0;
      for (int k = 0; k < s.dim; ++k) {
        const Complex number = entry(s.dim, k, column % s.dim);
        sum += given[place(row * s.dim + k)] * (column < s.dim ? number.real() : number.imag());
      }
      products.push_back(static_cast<float>(sum));
    }
  return products;
}

TEST(CayleyKernel, WideRowsGoBackTheSameWay) {
  for (const Sizes& s : {Sizes{35, 5}, Sizes{2, 300}})
    for (const Order order : kernels::simt::kAllOrders) {
      const BackwardCase one(s);
      const Buffer psi_in(one.psi), alpha_in(one.alpha), x_in(one.x), given_in(one.given),
          products(plane_products(s, one.given)), grad_psi(s.field()), z_out(s.field()), y_out(s.field()),
          terms_out(place(backward_blocks(s.rows) * s.dim));
      kernels::simt::run_clean(WideBack{}, static_cast<unsigned>(backward_blocks(s.rows)), kThreads, order,
                               WideBackwardArguments{.rows = s.rows,
                                                     .dim = s.dim,
                                                     .psi = psi_in.data(),
                                                     .alpha = alpha_in.data(),
                                                     .products = products.data(),
                                                     .x = x_in.data(),
                                                     .grad_x = given_in.data(),
                                                     .grad_psi = grad_psi.data(),
                                                     .z = z_out.data(),
                                                     .y = y_out.data(),
                                                     .alpha_terms = terms_out.data()},
                               wide_shared_bytes(s.dim));
      one.expect(grad_psi, z_out, y_out, terms_out);
    }
}

TEST(CayleyKernel, WideRowsAreTurnedAndCounted) {
  const Sizes s{5, 300};
  Floats psi = spread(2 * s.rows * s.dim, 1);
  const Floats alpha = spread(s.dim, 2, 0.3f);
  for (const bool broken_matrix : {false, true})
    for (const Order order : kernels::simt::kAllOrders) {
      psi[place(3 * s.dim + 299)] = std::numeric_limits<float>::quiet_NaN();
      const Buffer given(psi), of_phase(alpha), matrix(Floats{broken_matrix ? std::nanf("") : 1.0f}), turned(s.field());
      const GuardedBuffer<std::int32_t> nonfinite(1);
      const GuardedBuffer<unsigned> handover(std::vector<unsigned>{0, 0});
      for (int launch = 0; launch < 2; ++launch) {  // the counters are 0 again after the first
        kernels::simt::run_clean(WideTurn{}, s.rows, kThreads, order,
                                 WideForwardArguments{.rows = s.rows,
                                                      .dim = s.dim,
                                                      .psi = given.data(),
                                                      .alpha = of_phase.data(),
                                                      .matrix = matrix.data(),
                                                      .turned = turned.data(),
                                                      .nonfinite_rows = nonfinite.data(),
                                                      .handover = handover.data()});
        EXPECT_EQ(nonfinite[0], broken_matrix ? s.rows : 1);
        EXPECT_EQ(handover[0] + handover[1], 0u);
      }
      for (const int row : {0, 1, 2, 4}) {
        const Turned right = turned_row(s, psi, alpha, row);
        for (int i = 0; i < s.dim; ++i) {
          ASSERT_NEAR(turned[place(row * 2 * s.dim + i)], right.r[place(i)].real(), 1e-6) << row << " " << i;
          ASSERT_NEAR(turned[place((row * 2 + 1) * s.dim + i)], right.r[place(i)].imag(), 1e-6) << row << " " << i;
        }
      }
      EXPECT_TRUE(std::isnan(turned[place(3 * 2 * s.dim)]));
    }
}

TEST(CayleyKernel, BackwardMatchesAPlainLoop) {
  for (const Order order : kernels::simt::kAllOrders) check_backward<Backward>({33, 18}, order);
  check_backward<BackwardAnyWidth>({3, 7}, Order::kForward);
  check_backward<Backward>({2, 130}, Order::kShuffled);
}

TEST(CayleyKernel, ParametersMatchAPlainLoop) {
  constexpr int kDim = EdgeNumbers::kDim, kRows = 40;
  const PlacedEdges edges({0.5f, 0.3f, 0.2f});
  const Floats terms = spread(kRows * kDim, 4);
  std::vector<double> alpha(kDim);
  for (int row = 0; row < kRows; ++row)
    for (int i = 0; i < kDim; ++i) alpha[place(i)] += terms[place(row * kDim + i)];
  const Buffer terms_in(terms), grad_alpha(kDim);
  for (const Order order : kernels::simt::kAllOrders) {
    kernels::simt::run_clean(
        Parameters{},
        static_cast<unsigned>(kernels::blocks_of(kDim, kernels::kSumColumns) + edge_blocks(EdgeNumbers::kEdges)),
        kEdgeThreads, order,
        ParameterArguments{.term_rows = kRows,
                           .alpha_terms = terms_in.data(),
                           .grad_alpha = grad_alpha.data(),
                           .edges = edges.arguments()});
    edges.expect_gradients();
    kernels::simt::expect_close(grad_alpha, alpha, 1e-5, "grad_alpha");
  }
}

}  // namespace
}  // namespace twinbench::sem::cayley
