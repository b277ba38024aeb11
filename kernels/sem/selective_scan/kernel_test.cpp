// The kernels of sem.selective_scan on the host executor, in every thread order, against a plain loop in fp64.
#include "kernels/sem/selective_scan/backward_kernel.h"

#include <complex>
#include <limits>

#include "harness/simt/kernel_testing.h"

namespace twinbench::sem::selective_scan {
namespace {

using kernels::simt::Buffer;
using kernels::simt::Order;
using Values = std::vector<double>;
using Complex = std::complex<double>;

Values spread(std::int64_t count, unsigned seed, float amplitude) {
  const kernels::simt::Floats values = kernels::simt::spread(count, seed, amplitude);
  return {values.begin(), values.end()};
}
kernels::simt::Floats floats(const Values& values) { return {values.begin(), values.end()}; }

// A case's inputs, all of which hold values of fp32, and the plain loop over them.
struct Scan {
  Shape shape;
  Values input, a_raw, a_phase, into, out_of, dt_weight, dt_bias;

  explicit Scan(const Shape& of) : shape(of) {
    input = spread(2 * numbers(), 1, 1.5f);
    a_raw = spread(shape.groups * shape.states, 2, 1);
    a_phase = spread(shape.groups * shape.states, 3, 2);
    into = spread(2 * shape.width * shape.states, 4, 0.5f);
    out_of = spread(2 * shape.width * shape.states, 5, 0.5f);
    dt_weight = spread(4 * shape.width, 6, 0.3f);
    dt_bias = spread(2, 7, 1);
  }
  std::int64_t numbers() const { return std::int64_t{shape.batch} * shape.steps * shape.groups * shape.width; }

  struct Result {
    Values output, largest;
  };
  Result run() const {
    Result result{Values(static_cast<std::size_t>(2 * numbers())), {}};
    for (int item = 0; item < shape.batch; ++item) {
      double most = 0;
      for (int group = 0; group < shape.groups; ++group) run_group(item, group, result.output, most);
      result.largest.push_back(most);
    }
    return result;
  }

 private:
  static Complex at(const Values& planes, std::int64_t i) {
    return {planes[static_cast<std::size_t>(i)], planes[static_cast<std::size_t>(i) + planes.size() / 2]};
  }
  double step_of(std::int64_t row, int j) const {
    double logit = dt_bias[static_cast<std::size_t>(j)];
    for (int p = 0; p < shape.width; ++p) {
      const auto weight = static_cast<std::size_t>(2 * j * shape.width + p);
      logit += dt_weight[weight] * at(input, row + p).real() +
               dt_weight[weight + static_cast<std::size_t>(shape.width)] * at(input, row + p).imag();
    }
    return std::min(std::max(std::exp(logit), 1e-4), 2.0);
  }
  void run_group(int item, int group, Values& output, double& most) const {
    std::vector<Complex> state(static_cast<std::size_t>(shape.states));
    for (int t = 0; t < shape.steps; ++t) {
      const std::int64_t row = ((std::int64_t{item} * shape.steps + t) * shape.groups + group) * shape.width;
      const double length = step_of(row, 0), turn = step_of(row, 1);
      for (int n = 0; n < shape.states; ++n) {
        const auto parameter = static_cast<std::size_t>(group * shape.states + n);
        Complex projected = 0;
        for (int p = 0; p < shape.width; ++p)
          projected += at(into, std::int64_t{n} * shape.width + p) * at(input, row + p);
        const double rate = std::log1p(std::exp(a_raw[parameter]));
        Complex& h = state[static_cast<std::size_t>(n)];
        h = std::polar(std::exp(-length * rate), turn * a_phase[parameter]) * h + length * projected;
        most = std::max(most, std::abs(h));
      }
      for (int p = 0; p < shape.width; ++p) {
        Complex sum = 0;
        for (int n = 0; n < shape.states; ++n)
          sum += at(out_of, std::int64_t{p} * shape.states + n) * state[static_cast<std::size_t>(n)];
        output[static_cast<std::size_t>(row + p)] = sum.real();
        output[static_cast<std::size_t>(row + p + numbers())] = sum.imag();
      }
    }
  }
};

// The same inputs as kernels take them.
struct Given {
  Buffer input, a_raw, a_phase, into, out_of, dt_weight, dt_bias;
  ScanArguments arguments;

  explicit Given(const Scan& scan)
      : input(floats(scan.input)),
        a_raw(floats(scan.a_raw)),
        a_phase(floats(scan.a_phase)),
        into(floats(scan.into)),
        out_of(floats(scan.out_of)),
        dt_weight(floats(scan.dt_weight)),
        dt_bias(floats(scan.dt_bias)),
        arguments{.shape = scan.shape,
                  .chunk = std::max(scan.shape.steps, 1),
                  .chunks = 1,
                  .input = input.data(),
                  .a_raw = a_raw.data(),
                  .a_phase = a_phase.data(),
                  .input_projection = into.data(),
                  .output_projection = out_of.data(),
                  .dt_weight = dt_weight.data(),
                  .dt_bias = dt_bias.data()} {}
};

template <Purpose kPurpose>
void run_pass(const ScanArguments& a, std::int64_t blocks, Order order) {
  const bool outputs = kPurpose == Purpose::kOutputs;
  const std::int64_t shared = std::int64_t{4} * Layout::of(a.shape, a.shape.tile_steps(), outputs).end;
  const auto grid = static_cast<unsigned>(blocks);
  if (a.shape.at_once())
    kernels::simt::run_clean(PassAs<kPurpose, true>{}, grid, kThreads, order, a, shared);
  else
    kernels::simt::run_clean(PassAs<kPurpose, false>{}, grid, kThreads, order, a, shared);
}

void check(const Shape& shape, int chunk, Order order) {
  const Scan scan(shape);
  const Scan::Result expected = scan.run();
  const Given given(scan);
  const int chunks = (shape.steps + chunk - 1) / chunk;
  const Buffer output(2 * scan.numbers()), largest_state(shape.batch), ends(shape.items() * chunks * 4 * shape.states),
      largest(shape.items() * chunks);
  std::vector<unsigned> finished(static_cast<std::size_t>(shape.batch), 0);
  ScanArguments a = given.arguments;
  a.chunk = chunk, a.chunks = chunks;
  a.output = output.data(), a.largest_state = largest_state.data();
  a.ends = ends.data(), a.largest = largest.data(), a.finished = finished.data();
  if (chunks > 1) run_pass<Purpose::kEnds>(a, shape.items() * (chunks - 1), order);
  run_pass<Purpose::kOutputs>(a, shape.items() * chunks, order);
  kernels::simt::expect_close_to_scale(output, expected.output, 3e-6, "output");
  kernels::simt::expect_close_to_scale(largest_state, expected.largest, 3e-6, "largest state");
  for (const unsigned count : finished) EXPECT_EQ(count, 0u);
}

// From the rounded products, so that the polynomials alone are judged.
TEST(SelectiveScanMath, DecaysAreWithinTwoUnitsOfTheLastPlace) {
  for (int i = 0; i <= 4000; ++i) {
    const float shrinking = -0.01f * static_cast<float>(i % 997), half_turns = 0.003f * static_cast<float>(i - 2000);
    const float length = 0.37f, turn = 1.9f;
    const auto got = decay_of(length, shrinking, turn, half_turns);
    const double modulus = std::exp2(double{length * shrinking}), angle = Scale::kPhase * double{turn * half_turns};
    EXPECT_NEAR(got.real, modulus * std::cos(angle), 2.4e-7 * modulus) << i;
    EXPECT_NEAR(got.imaginary, modulus * std::sin(angle), 2.4e-7 * modulus) << i;
  }
}

TEST(SelectiveScanMath, DecaysAtTheEnds) {
  EXPECT_EQ(decay_of(2.0f, 0.0f, 1.0f, 0.0f).real, 1.0f);
  EXPECT_LT(decay_of(2.0f, -500.0f, 1.0f, 0.0f).real, 1e-37f);
  EXPECT_FLOAT_EQ(decay_of(1.0f, 0.0f, 1.0f, 0.5f).imaginary, 1.0f);
  EXPECT_EQ(decay_of(1.0f, 0.0f, 1.0f, 3.0f).real, -1.0f);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(decay_of(nan, -1.0f, 1.0f, 0.1f).real));
  EXPECT_TRUE(std::isnan(decay_of(1.0f, -1.0f, nan, 0.1f).imaginary));
  EXPECT_TRUE(std::isnan(larger_square(nan, 1.0f)) && std::isnan(larger_square(1.0f, nan)));
  EXPECT_EQ(larger_square(2.0f, 1.0f), 2.0f);
}

TEST(SelectiveScanKernel, MatchesAPlainLoop) {
  for (const auto order : kernels::simt::kAllOrders) {
    check({1, 1, 1, 1, 1}, 1, order);
    check({2, 19, 3, 5, 9}, 19, order);
    check({2, 35, 1, 16, 128}, 16, order);
  }
}

TEST(SelectiveScanKernel, CutsSequencesAnywhere) {
  for (const int chunk : {1, 3, 7, 16, 23}) check({1, 23, 2, 4, 6}, chunk, Order::kShuffled);
}

TEST(SelectiveScanKernel, TakesAnyNumberOfChannelsAndStates) {
  for (const int chunk : {11, 4}) {
    check({1, 11, 1, 18, 130}, chunk, Order::kReverse);
    check({1, 11, 2, 3, 129}, chunk, Order::kForward);
    check({1, 11, 1, 33, 5}, chunk, Order::kForward);
  }
}

// <gradient, direction> of one input against the slope of <grad_output, output> along it.
void expect_slope(const Scan& scan, Values Scan::*of, const Values& grad_output, const float* gradient,
                  const char* name) {
  constexpr double kStep = 1e-5;
  const std::size_t count = (scan.*of).size();
  double slope = 0, got = 0, size = 0;
  const Values direction = spread(static_cast<std::int64_t>(count), 11, 1);
  for (const double sign : {1.0, -1.0}) {
    Scan moved = scan;
    for (std::size_t i = 0; i < count; ++i) (moved.*of)[i] += sign * kStep * direction[i];
    const Values output = moved.run().output;
    for (std::size_t i = 0; i < output.size(); ++i) slope += sign * output[i] * grad_output[i] / (2 * kStep);
  }
  for (std::size_t i = 0; i < count; ++i) {
    got += gradient[i] * direction[i];
    size += gradient[i] * gradient[i];
  }
  EXPECT_NEAR(got, slope, 1e-4 * std::sqrt(size) + 1e-6) << name;
}

void check_backward(const Shape& shape, Order order) {
  const Scan scan(shape);
  const Given given(scan);
  const Values grad_output = spread(2 * scan.numbers(), 9, 1);
  const std::int64_t decays = 2 * shape.groups * shape.states;
  const std::int32_t size = shared_size(shape);
  const Buffer gradient(floats(grad_output)), grad_input(2 * scan.numbers()),
      starts(shape.items() * shape.tiles() * 2 * shape.states), of_decays(shape.batch * decays),
      of_shared(shape.items() * size), decay_sums(decays), shared_sums(size);
  BackwardArguments b{.scan = given.arguments,
                      .grad_output = gradient.data(),
                      .grad_input = grad_input.data(),
                      .of_decays = of_decays.data(),
                      .of_shared = of_shared.data(),
                      .shared_stride = size};
  b.scan.starts = starts.data();
  run_pass<Purpose::kStarts>(b.scan, shape.items(), order);
  const std::int64_t shared = std::int64_t{4} * BackLayout::of(shape, shape.tile_steps()).end;
  const auto grid = static_cast<unsigned>(shape.items());
  if (shape.at_once())
    kernels::simt::run_clean(BackAs<true>{}, grid, kThreads, order, b, shared);
  else
    kernels::simt::run_clean(BackAs<false>{}, grid, kThreads, order, b, shared);
  const auto add_up = [&](const Buffer& rows, const Buffer& sums, std::int64_t count) {
    const auto columns = static_cast<std::int32_t>(sums.size());
    for (std::int32_t c = 0; c < columns; ++c) {
      float sum = 0;
      for (std::int64_t row = 0; row < count; ++row) sum += rows[static_cast<std::size_t>(row * columns + c)];
      sums.data()[c] = sum;
    }
  };
  add_up(of_decays, decay_sums, shape.batch);
  add_up(of_shared, shared_sums, shape.items());
  const std::int64_t product = 2 * shape.width * shape.states;
  expect_slope(scan, &Scan::input, grad_output, grad_input.data(), "input");
  expect_slope(scan, &Scan::a_raw, grad_output, decay_sums.data(), "a_raw");
  expect_slope(scan, &Scan::a_phase, grad_output, decay_sums.data() + decays / 2, "a_phase");
  expect_slope(scan, &Scan::into, grad_output, shared_sums.data(), "input projection");
  expect_slope(scan, &Scan::out_of, grad_output, shared_sums.data() + product, "output projection");
  expect_slope(scan, &Scan::dt_weight, grad_output, shared_sums.data() + 2 * product, "dt_weight");
  expect_slope(scan, &Scan::dt_bias, grad_output, shared_sums.data() + 2 * product + 4 * shape.width, "dt_bias");
}

TEST(SelectiveScanKernel, GoesBack) {
  for (const auto order : kernels::simt::kAllOrders) {
    check_backward({1, 1, 1, 1, 1}, order);
    check_backward({2, 19, 3, 5, 9}, order);
  }
  check_backward({1, 35, 1, 16, 128}, Order::kReverse);
}

TEST(SelectiveScanKernel, GoesBackWithAnyNumberOfChannelsAndStates) {
  check_backward({1, 11, 1, 18, 130}, Order::kShuffled);
  check_backward({1, 11, 2, 3, 129}, Order::kForward);
  check_backward({1, 11, 1, 33, 5}, Order::kReverse);
}

}  // namespace
}  // namespace twinbench::sem::selective_scan
