// The shared kernels on the host executor, in every thread order, against plain loops and the host's row functions.
#include "harness/simt/kernel_testing.h"
#include "kernels/common/activation_rows.h"
#include "kernels/common/gather.h"
#include "kernels/common/rows.h"

namespace twinbench::kernels {
namespace {

using simt::Buffer;
using simt::expect_close_to_scale;
using simt::Floats;
using simt::Order;
using simt::run_clean;
using simt::spread;

// Members can be set by name only: a swap of two pointers needs two wrong names.
template <class Arguments>
constexpr bool positional = requires(float* p) {
  Arguments{p, p};
};
static_assert(!positional<ColumnSumArguments> && !positional<RoundArguments> && !positional<ActivationLayer<float>>);
struct Unprotected {
  const float* rows = nullptr;
  float* sums = nullptr;
};
static_assert(positional<Unprotected>);  // what the first member prevents

struct Shape {
  std::int64_t rows, width;
  bool round;
};

class SharedKernels : public testing::TestWithParam<Shape> {
 protected:
  const std::int64_t rows = GetParam().rows, width = GetParam().width, count = rows * width;
  const bool round = GetParam().round;
  const Floats product = spread(count, 4, 2), gradient = spread(count, 5, 2);
  simt::GuardedBuffer<std::uint16_t> rounded{product.size()};

  Operands<float> operands(const Buffer& plain) const {
    return round ? Operands<float>{.bf16 = rounded.data()} : Operands<float>{.plain = plain.data()};
  }
};

TEST_P(SharedKernels, ActivationAndItsBackwardMatchTheRowFunctions) {
  const Buffer bias(spread(width, 1)), gain(spread(width, 2)), shift(spread(width, 3)), grad_hidden(gradient),
      products(product);
  struct Results {
    explicit Results(std::size_t values, std::size_t rows, std::size_t width)
        : normal(values),
          hidden(values),
          inverse(rows),
          grad_product(values),
          grad_bias(width),
          grad_gain(width),
          grad_shift(width) {}
    Buffer normal, hidden, inverse, grad_product, grad_bias, grad_gain, grad_shift;
  };
  const auto layer = [&](const Results& r, Operands<float> hidden, std::uint16_t* grad_bf16) {
    return ActivationLayer<float>{.rows = rows,
                                  .width = width,
                                  .bias = bias.data(),
                                  .gain = gain.data(),
                                  .shift = shift.data(),
                                  .product = products.data(),
                                  .hidden = hidden,
                                  .normal = r.normal.data(),
                                  .inverse = r.inverse.data(),
                                  .grad_hidden = grad_hidden.data(),
                                  .grad_product = {r.grad_product.data(), grad_bf16},
                                  .grad_bias = r.grad_bias.data(),
                                  .grad_gain = r.grad_gain.data(),
                                  .grad_shift = r.grad_shift.data()};
  };
  const Results expected(product.size(), rows, width);
  for (const Buffer* sums : {&expected.grad_bias, &expected.grad_gain, &expected.grad_shift})
    std::fill(sums->begin(), sums->end(), 0.0f);
  for (std::int64_t row = 0; row < rows; ++row) {
    activation_row(layer(expected, {.plain = expected.hidden.data()}, nullptr), row, round);
    activation_backward_row(layer(expected, {}, nullptr), row);
    for (std::int64_t i = 0; i < width; ++i) {
      const std::int64_t at = row * width + i;
      expected.grad_bias[i] += expected.grad_product[at];
      expected.grad_gain[i] += gradient[at] * expected.normal[at];
      expected.grad_shift[i] += gradient[at];
    }
  }
  // The two large shapes cross pieces and grids, which takes seconds an order: one order each.
  const std::vector<Order> orders =
      count > 8000 ? std::vector{Order::kShuffled} : std::vector(simt::kAllOrders.begin(), simt::kAllOrders.end());
  for (const Order order : orders) {
    const Results got(product.size(), rows, width);
    run_clean(Activation{}, {blocks_of(width, kRowPiece), rows}, kRowThreads, order,
              layer(got, operands(got.hidden), nullptr));
    if (round)
      for (std::size_t i = 0; i < product.size(); ++i) got.hidden[i] = float_of_bf16_bits(rounded[i]);
    run_clean(ActivationBackward{}, {blocks_of(width, kRowPiece), rows}, kRowThreads, order,
              layer(got, {}, round ? rounded.data() : nullptr));
    run_clean(ActivationColumns{}, blocks_of(width, kSumColumns), kSumThreads, order, layer(got, {}, nullptr));
    for (const auto& [name, of] : {std::pair{"normal", &Results::normal},
                                   {"inverse", &Results::inverse},
                                   {"grad_product", &Results::grad_product},
                                   {"grad_bias", &Results::grad_bias},
                                   {"grad_gain", &Results::grad_gain},
                                   {"grad_shift", &Results::grad_shift}})
      expect_close_to_scale(got.*of, expected.*of, 1e-5, name);
    expect_close_to_scale(got.hidden, expected.hidden, round ? 1e-2 : 1e-5, "hidden");
    for (std::size_t i = 0; round && i < product.size(); ++i)
      ASSERT_EQ(float_of_bf16_bits(rounded[i]), round_to_bf16(got.grad_product[i])) << i;
  }
}

TEST_P(SharedKernels, GatherReadsAnyStrides) {
  const Buffer from(product), to(product.size());
  for (const Order order : simt::kAllOrders) {
    const GatherArguments a{.rows = rows, .columns = width, .from = {from.data(), 1, rows}, .to = operands(to)};
    run_clean(Gather{}, {blocks_of(width, kCopyPiece), rows}, kPieceThreads, order, a);
    for (std::int64_t i = 0; i < count; ++i) {
      const float expected = product[i / width + i % width * rows];  // read as if transposed
      ASSERT_EQ(round ? float_of_bf16_bits(rounded[i]) : to[i], round ? round_to_bf16(expected) : expected) << i;
    }
  }
}

TEST_P(SharedKernels, ColumnSumsHaveOneOrder) {
  const auto summed = static_cast<std::int32_t>(width);
  const std::int32_t stride = summed + 3;
  const Buffer from(spread(rows * stride, 11));
  Floats expected(static_cast<std::size_t>(width)), first;
  for (std::int64_t i = 0; i < rows * stride; ++i)
    if (i % stride < width) expected[i % stride] += from[i];
  for (const Order order : simt::kAllOrders) {
    const Buffer sums(expected.size());
    run_clean(ColumnSums{}, blocks_of(width, kSumColumns), kSumThreads, order,
              ColumnSumArguments{
                  .rows = from.data(), .sums = sums.data(), .count = rows, .columns = summed, .stride = stride});
    expect_close_to_scale(sums, expected, 1e-5);
    if (first.empty()) first = sums.values();
    ASSERT_EQ(sums.values(), first);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, SharedKernels,
                         testing::Values(Shape{1, 1, false}, Shape{3, 8, false}, Shape{2, 512, false},
                                         Shape{3, 513, false}, Shape{5, 257, true}, Shape{2, 1031, false},
                                         Shape{13, 67, true}, Shape{5, 2052, true}, Shape{1, 8200, false},
                                         Shape{1100, 12, true}));

class RoundKernel : public testing::TestWithParam<std::int64_t> {};

TEST_P(RoundKernel, CoversATailBeyondTheGrid) {
  const std::int64_t count = GetParam();
  const Buffer values(spread(count, 31, 1e3f));
  for (const Order order : simt::kAllOrders) {
    const simt::GuardedBuffer<std::uint16_t> rounded(values.size());
    run_clean(RoundToBf16{}, 3, 32, order,
              RoundArguments{.values = values.data(), .rounded = rounded.data(), .count = count});
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(rounded[i], bf16_bits(values[i]));
  }
}

// Single elements; vectors of four; full batches of vectors and a partial one.
INSTANTIATE_TEST_SUITE_P(Counts, RoundKernel, testing::Values(1, 1000, 1003, 3600));

struct Misaligned {
  static constexpr int kMaxThreads = 1;
  void operator()(simt::HostBlock&, const RoundArguments& a) const { store_bf16(a.rounded, load<4>(a.values + 1)); }
};
TEST(VectorAccess, MisalignedOnesAreFindings) {
  const Buffer values(spread(8, 1));
  const simt::GuardedBuffer<std::uint16_t> rounded(8);
  const simt::Report report = simt::launch_on_host(
      Misaligned{}, 1, 1, 0, {}, RoundArguments{.values = values.data(), .rounded = rounded.data(), .count = 4});
  EXPECT_TRUE(report.has(simt::FindingKind::kException)) << report.text();
}

}  // namespace
}  // namespace twinbench::kernels
