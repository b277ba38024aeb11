// sem.selective_scan's kernels on the host executor, in every thread order, against a plain loop in fp64.
#include "kernels/sem/selective_scan/kernel.h"

#include <complex>

#include "harness/simt/kernel_testing.h"

namespace twinbench::sem::selective_scan {
namespace {

using Values = kernels::simt::Floats;
using Complex = std::complex<double>;

// A case's inputs, and the plain loop over them.
struct Scan {
  Shape shape;
  Values input, a_raw, a_phase, into, out_of, dt_weight, dt_bias;
  std::vector<double> output, largest;

  explicit Scan(const Shape& of) : shape(of) {
    using kernels::simt::spread;
    const auto [batch, steps, groups, width, states] = shape;
    input = spread(2 * numbers(), 1, 1.5f);
    a_raw = spread(groups * states, 2);
    a_phase = spread(groups * states, 3, 2.0f);
    into = spread(2 * width * states, 4, 0.5f);
    out_of = spread(2 * width * states, 5, 0.5f);
    dt_weight = spread(4 * width, 6, 0.3f);
    dt_bias = spread(2, 7);
    output.resize(static_cast<std::size_t>(2 * numbers()));
    for (int item = 0; item < batch; ++item) {
      double most = 0;
      for (int group = 0; group < groups; ++group) run(item, group, most);
      largest.push_back(most);
    }
  }
  std::int64_t numbers() const { return std::int64_t{shape.batch} * shape.steps * shape.groups * shape.width; }

  Complex at(const Values& planes, std::int64_t i) const {
    return {planes[static_cast<std::size_t>(i)], planes[static_cast<std::size_t>(i) + planes.size() / 2]};
  }
  void run(int item, int group, double& most) {
    std::vector<Complex> state(static_cast<std::size_t>(shape.states));
    for (int t = 0; t < shape.steps; ++t) {
      const std::int64_t row = ((std::int64_t{item} * shape.steps + t) * shape.groups + group) * shape.width;
      double step[2];
      for (int j = 0; j < 2; ++j) {
        double logit = dt_bias[static_cast<std::size_t>(j)];
        for (int p = 0; p < shape.width; ++p) {
          const auto weight = static_cast<std::size_t>(2 * j * shape.width + p);
          logit += dt_weight[weight] * at(input, row + p).real() +
                   dt_weight[weight + static_cast<std::size_t>(shape.width)] * at(input, row + p).imag();
        }
        step[j] = std::min(std::max(std::exp(logit), 1e-4), 2.0);
      }
      for (int n = 0; n < shape.states; ++n) {
        const auto parameter = static_cast<std::size_t>(group * shape.states + n);
        Complex projected = 0;
        for (int p = 0; p < shape.width; ++p)
          projected += at(into, std::int64_t{n} * shape.width + p) * at(input, row + p);
        const Complex decay =
            std::polar(std::exp(-step[0] * std::log1p(std::exp(double{a_raw[parameter]}))), step[1] * a_phase[parameter]);
        Complex& h = state[static_cast<std::size_t>(n)];
        h = decay * h + step[0] * projected;
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

template <Purpose kPurpose>
void run_pass(const ScanArguments& a, std::int64_t blocks, kernels::simt::Order order) {
  const bool outputs = kPurpose == Purpose::kOutputs;
  const std::int64_t shared = std::int64_t{4} * Layout::of(a.shape, a.shape.tile_steps(), outputs).end;
  const auto grid = static_cast<unsigned>(blocks);
  if (a.shape.at_once())
    kernels::simt::run_clean(PassAs<kPurpose, true>{}, grid, kThreads, order, a, shared);
  else
    kernels::simt::run_clean(PassAs<kPurpose, false>{}, grid, kThreads, order, a, shared);
}

void check(const Shape& shape, int chunk, kernels::simt::Order order) {
  using kernels::simt::Buffer;
  const Scan scan(shape);
  const int chunks = (shape.steps + chunk - 1) / chunk;
  const Buffer input(scan.input), a_raw(scan.a_raw), a_phase(scan.a_phase), into(scan.into), out_of(scan.out_of),
      dt_weight(scan.dt_weight), dt_bias(scan.dt_bias), output(2 * scan.numbers()), largest_state(shape.batch),
      ends(shape.items() * chunks * 4 * shape.states), largest(shape.items() * chunks);
  std::vector<unsigned> finished(static_cast<std::size_t>(shape.batch), 0);
  const ScanArguments a{.shape = shape,
                        .chunk = chunk,
                        .chunks = chunks,
                        .input = input.data(),
                        .a_raw = a_raw.data(),
                        .a_phase = a_phase.data(),
                        .input_projection = into.data(),
                        .output_projection = out_of.data(),
                        .dt_weight = dt_weight.data(),
                        .dt_bias = dt_bias.data(),
                        .output = output.data(),
                        .largest_state = largest_state.data(),
                        .ends = ends.data(),
                        .largest = largest.data(),
                        .finished = finished.data()};
  if (chunks > 1) run_pass<Purpose::kEnds>(a, shape.items() * (chunks - 1), order);
  run_pass<Purpose::kOutputs>(a, shape.items() * chunks, order);
  kernels::simt::expect_close_to_scale(output, scan.output, 3e-6, "output");
  kernels::simt::expect_close_to_scale(largest_state, scan.largest, 3e-6, "largest state");
  for (const unsigned count : finished) EXPECT_EQ(count, 0u);
}

TEST(SelectiveScanKernel, MatchesAPlainLoop) {
  for (const auto order : kernels::simt::kAllOrders) {
    check({1, 1, 1, 1, 1}, 1, order);
    check({2, 19, 3, 5, 9}, 19, order);
    check({2, 35, 1, 16, 128}, 16, order);
  }
}

TEST(SelectiveScanKernel, CutsSequencesAnywhere) {
  for (const int chunk : {1, 3, 7, 16, 23}) check({1, 23, 2, 4, 6}, chunk, kernels::simt::Order::kShuffled);
}

TEST(SelectiveScanKernel, TakesAnyNumberOfChannelsAndStates) {
  for (const int chunk : {11, 4}) {
    check({1, 11, 1, 18, 130}, chunk, kernels::simt::Order::kReverse);
    check({1, 11, 2, 3, 129}, chunk, kernels::simt::Order::kForward);
    check({1, 11, 1, 33, 5}, chunk, kernels::simt::Order::kForward);
  }
}

}  // namespace
}  // namespace twinbench::sem::selective_scan
