// trainer2.field_dynamics' kernel on the host executor, in every thread order, against a plain loop in fp64.
#include "kernels/trainer2/field_dynamics/kernel.h"

#include <complex>

#include "harness/simt/kernel_testing.h"

namespace twinbench::trainer2::field_dynamics {
namespace {

using kernels::simt::Floats;
using Field = std::vector<std::complex<double>>;

struct Sizes {
  int width, height, dimension;
  std::int64_t steps;
  bool dissipative;
  int inner() const { return dimension * dimension; }
  std::size_t numbers() const { return static_cast<std::size_t>(width) * height * inner(); }
};

Field complex(const Floats& values) {
  Field field;
  for (std::size_t i = 0; i < values.size(); i += 2) field.emplace_back(values[i], values[i + 1]);
  return field;
}

struct Loop {
  Sizes sizes;
  Constants by;
  Floats factors;
  std::int64_t history;
  Field field, momentum, rest;
  Floats force;
  std::vector<double> moduli, means;

  std::complex<double> laplacian(std::size_t at) const {
    const auto inner = static_cast<std::size_t>(sizes.inner());
    const int cell = static_cast<int>(at / inner), x = cell / sizes.height, y = cell % sizes.height;
    const auto of = [&](int ax, int ay) {
      const int wrapped = (ax + sizes.width) % sizes.width * sizes.height + (ay + sizes.height) % sizes.height;
      return field[static_cast<std::size_t>(wrapped) * inner + at % inner];
    };
    return of(x + 1, y) + of(x - 1, y) + of(x, y + 1) + of(x, y - 1) - 4.0 * field[at];
  }
  double outside(std::size_t at) const {
    return force[at % static_cast<std::size_t>(sizes.inner()) / static_cast<std::size_t>(sizes.dimension)];
  }
  std::complex<double> pull(std::size_t at) const {
    return double{by.kinetic} * laplacian(at) - double{by.stiffness} * (field[at] - rest[at]) + outside(at);
  }
  void step() {
    Field next = field, half = momentum;
    for (std::size_t at = 0; at < field.size(); ++at) {
      half[at] += double{by.half_kick} * pull(at);
      next[at] = field[at] + double{by.drift} * half[at];
      if (sizes.dissipative) {
        const double factor = factors[static_cast<std::size_t>(history)];
        next[at] = field[at] - std::complex<double>(0, by.turn) * (factor * laplacian(at) + outside(at));
      }
    }
    field = next;
    if (!sizes.dissipative)
      for (std::size_t at = 0; at < field.size(); ++at) momentum[at] = half[at] + double{by.half_kick} * pull(at);
    if (sizes.dissipative) history = std::min<std::int64_t>(history + 1, 20);
    for (int row = 0; row < sizes.dimension; ++row) {
      double modulus = 0, mean = 0;
      for (std::size_t at = 0; at < field.size(); ++at)
        if (static_cast<int>(at % static_cast<std::size_t>(sizes.inner())) / sizes.dimension == row)
          modulus += std::abs(field[at]), mean += field[at].real();
      moduli.push_back(modulus);
      means.push_back(mean / (sizes.width * sizes.height * sizes.dimension));
    }
  }
};

// [steps, dimension] -> [dimension, steps]
std::vector<double> by_rows(const std::vector<double>& by_steps, const Sizes& sizes) {
  std::vector<double> rows;
  for (int row = 0; row < sizes.dimension; ++row)
    for (std::int64_t step = 0; step < sizes.steps; ++step)
      rows.push_back(by_steps[static_cast<std::size_t>(step * sizes.dimension + row)]);
  return rows;
}

void check(const Sizes& sizes, kernels::simt::Order order) {
  const auto count = static_cast<std::int64_t>(2 * sizes.numbers());
  const Floats start = kernels::simt::spread(count, 1), speed = kernels::simt::spread(count, 2),
               rest = kernels::simt::spread(count, 3), force = kernels::simt::spread(sizes.dimension, 4);
  const Constants by{.half_kick = 0.02f, .drift = 0.04f, .kinetic = 0.3f, .stiffness = 0.2f, .turn = 0.05f};
  Loop loop{sizes, by, kernels::simt::spread(kHistories, 5), 18, complex(start), complex(speed), complex(rest), force,
            {},    {}};
  const kernels::simt::Buffer field(start), momentum(speed), equilibrium(rest), outside(force), factors(loop.factors),
      modulus(static_cast<std::size_t>(sizes.steps * sizes.dimension)), mean(modulus.size());
  const Split split = Split::of(sizes.width, sizes.height, sizes.dimension);
  const std::int64_t blocks = std::int64_t{sizes.dimension} * split.parts;
  const kernels::simt::GuardedBuffer<std::int64_t> history(
      std::vector<std::int64_t>(static_cast<std::size_t>(blocks), 18));
  const kernels::simt::Buffer part_sums(static_cast<std::size_t>(2 * blocks * sizes.steps));
  const kernels::simt::GuardedBuffer<unsigned> finished(
      std::vector<unsigned>(static_cast<std::size_t>(sizes.dimension), 0));
  const Arguments arguments{.width = sizes.width,
                            .height = sizes.height,
                            .dimension = sizes.dimension,
                            .split = split,
                            .steps = sizes.steps,
                            .dissipative = sizes.dissipative,
                            .by = by,
                            .field = field.data(),
                            .momentum = momentum.data(),
                            .equilibrium = equilibrium.data(),
                            .force = outside.data(),
                            .factors = factors.data(),
                            .history = history.data(),
                            .row_modulus = modulus.data(),
                            .row_mean = mean.data(),
                            .part_sums = part_sums.data(),
                            .finished = finished.data()};
  const int elements = sizes.width * sizes.height * split.columns;
  if (elements <= kThreads)
    kernels::simt::run_clean(Window{}, blocks, kThreads, order, arguments, shared_bytes(elements));
  else
    kernels::simt::run_clean(WindowLarge{}, blocks, kThreads, order, arguments, shared_bytes(elements));
  for (std::int64_t step = 0; step < sizes.steps; ++step) loop.step();
  for (std::size_t at = 0; at < sizes.numbers(); ++at) {
    ASSERT_NEAR(field.data()[2 * at], loop.field[at].real(), 2e-6);
    ASSERT_NEAR(field.data()[2 * at + 1], loop.field[at].imag(), 2e-6);
    ASSERT_NEAR(momentum.data()[2 * at], loop.momentum[at].real(), 2e-6);
    ASSERT_NEAR(momentum.data()[2 * at + 1], loop.momentum[at].imag(), 2e-6);
  }
  kernels::simt::expect_close_to_scale(modulus, by_rows(loop.moduli, sizes), 2e-6);
  kernels::simt::expect_close(mean, by_rows(loop.means, sizes), 2e-6);
  EXPECT_EQ(history.data()[blocks - 1], loop.history);
  for (int row = 0; row < sizes.dimension; ++row) EXPECT_EQ(finished.data()[row], 0u);  // for the next launch
}

TEST(FieldDynamicsKernel, MatchesAPlainLoop) {
  for (const bool dissipative : {false, true})
    for (const auto order : kernels::simt::kAllOrders) {
      check({1, 1, 1, 2, dissipative}, order);
      check({1, 5, 2, 3, dissipative}, order);
      check({3, 2, 5, 4, dissipative}, order);
      check({9, 10, 6, 2, dissipative}, order);  // 360 numbers of four columns: more than threads
      check({2, 3, 1, 19, dissipative}, order);  // three batches of steps, the last one short
    }
}

TEST(FieldDynamicsKernel, DividesColumnsAmongBlocks) {
  const auto split = [](int width, int height, int dimension) {
    const Split of = Split::of(width, height, dimension);
    return std::pair(of.columns, of.parts);
  };
  EXPECT_EQ(split(8, 8, 16), std::pair(4, 4));
  EXPECT_EQ(split(4, 3, 5), std::pair(4, 2));  // the second block has one column
  EXPECT_EQ(split(1, 1, 3), std::pair(2, 2));
  EXPECT_EQ(split(32, 32, 16), std::pair(2, 8));  // four columns would be 4,096 numbers
  EXPECT_EQ(split(64, 32, 16), std::pair(1, 16));
}

}  // namespace
}  // namespace twinbench::trainer2::field_dynamics
