// trainer2.metric_update's kernel on the host executor, in every thread order, against a plain loop in fp64.
#include "kernels/trainer2/metric_update/kernel.h"

#include <limits>

#include "harness/simt/kernel_testing.h"

namespace twinbench::trainer2::metric_update {
namespace {

using kernels::simt::Floats;
using Indices = std::vector<std::int32_t>;
using Doubles = std::vector<double>;

struct Problem {
  int axes, planes, layer;
  std::int64_t batch;
  Floats velocity, theta, metric, coupling;
  Indices first, second;
  float lior_nudged = 1.05f;

  Problem(int axes_, int planes_, std::int64_t batch_)
      : axes(axes_),
        planes(planes_),
        layer(std::max(axes_ / 2, 1)),
        batch(batch_),
        velocity(kernels::simt::spread(batch_ * axes_, 1)),
        theta(kernels::simt::spread(planes_, 2)),
        metric(kernels::simt::spread(axes_, 3, 0.4f)),
        coupling(kernels::simt::spread(axes_ / 2, 4, 0.01f)) {
    for (float& value : metric) value += 1;
    for (int plane = 0; plane < planes; ++plane) {
      first.push_back((2 * (plane % layer) + plane / layer) % axes);
      second.push_back((first.back() + 1) % axes);
    }
  }
};

struct Expected {
  Doubles metric, coupling, report;
};

Expected plain_loop(const Problem& p, double rate) {
  Doubles rho(static_cast<std::size_t>(p.axes), 0.0);
  for (std::size_t i = 0; i < p.velocity.size(); ++i)
    rho[i % rho.size()] += p.velocity[i] / static_cast<double>(p.batch);
  for (std::size_t plane = 0; plane < p.first.size(); ++plane) {
    double &a = rho[static_cast<std::size_t>(p.first[plane])], &b = rho[static_cast<std::size_t>(p.second[plane])];
    const double cosine = std::cos(p.theta[plane]), sine = std::sin(p.theta[plane]), one = a;
    a = cosine * one - sine * b;
    b = sine * one + cosine * b;
  }
  double total = 1e-8, largest = 0, sum = 0;
  for (const double r : rho) total += r * r, largest = std::max(largest, r * r);
  const double change = double{p.lior_nudged} - 1;
  Expected result;
  for (std::size_t i = 0; i < rho.size(); ++i) {
    const double by = rate * change * rho[i] * rho[i] / total;
    result.metric.push_back(std::min(std::max(p.metric[i] + by, 0.01), 100.0));
    sum += std::abs(by);
  }
  for (std::size_t b = 0; b < p.coupling.size(); ++b) {
    const double most = 0.99 * std::sqrt(result.metric[2 * b] * result.metric[2 * b + 1]);
    const double moved = p.coupling[b] + rate * change * rho[2 * b] * rho[2 * b + 1] / total;
    result.coupling.push_back(std::min(std::max(moved, -most), most));
  }
  result.report = {change, sum / p.axes, largest};
  return result;
}

struct Result {
  Floats metric, coupling, report;
  std::vector<std::int64_t> rejects;
};

Result run(const Problem& p, const std::vector<std::int64_t>& rejects_before, kernels::simt::Order order) {
  using kernels::simt::Buffer;
  using kernels::simt::GuardedBuffer;
  const Buffer velocity(p.velocity), theta(p.theta), metric(p.metric), coupling(p.coupling), free(Floats{1.0f}),
      nudged(Floats{p.lior_nudged}), report(std::size_t{3});
  const GuardedBuffer<std::int32_t> first(p.first), second(p.second);
  const GuardedBuffer<std::int64_t> rejects(rejects_before);
  kernels::simt::run_clean(Update{}, 1, kThreads, order,
                           Arguments{.axes = p.axes,
                                     .planes = p.planes,
                                     .layer = p.layer,
                                     .blocks = true,
                                     .batch = p.batch,
                                     .most_rejects = 3,
                                     .rate = 10.0f,
                                     .velocity = velocity.data(),
                                     .batch_stride = p.axes,
                                     .axis_stride = 1,
                                     .lior_free = free.data(),
                                     .lior_nudged = nudged.data(),
                                     .theta = theta.data(),
                                     .first_axis = first.data(),
                                     .second_axis = second.data(),
                                     .metric = metric.data(),
                                     .coupling = coupling.data(),
                                     .rejects = rejects.data(),
                                     .report = report.data()});
  const auto floats = [](const Buffer& b) { return Floats(b.data(), b.data() + b.size()); };
  return {floats(metric), floats(coupling), floats(report), {rejects.data(), rejects.data() + 3}};
}

TEST(MetricUpdateKernel, MatchesAPlainLoop) {
  for (const Problem& p :
       {Problem(1, 0, 3), Problem(4, 3, 2), Problem(7, 6, 5), Problem(8, 17, 8), Problem(300, 400, 2)}) {
    const Expected expected = plain_loop(p, 10);
    for (const auto order : kernels::simt::kAllOrders) {
      const Result result = run(p, {5, 2, 0}, order);
      kernels::simt::expect_close(result.metric, expected.metric, 1e-6);
      kernels::simt::expect_close(result.coupling, expected.coupling, 1e-6);
      kernels::simt::expect_close(result.report, expected.report, 1e-6);
      EXPECT_EQ(result.rejects, (std::vector<std::int64_t>{5, 0, 0}));
    }
  }
}

TEST(MetricUpdateKernel, RefusesWhatIsNotFiniteAndFreezes) {
  for (const auto order : kernels::simt::kAllOrders) {
    Problem p(8, 6, 4);
    p.lior_nudged = std::numeric_limits<float>::infinity();
    Result result = run(p, {5, 1, 0}, order);
    EXPECT_EQ(result.metric, p.metric);
    EXPECT_EQ(result.coupling, p.coupling);
    EXPECT_EQ(result.rejects, (std::vector<std::int64_t>{6, 2, 0}));
    p.lior_nudged = 1.05f;
    p.velocity[3] = std::numeric_limits<float>::quiet_NaN();
    result = run(p, {6, 2, 0}, order);
    EXPECT_EQ(result.metric, p.metric);
    EXPECT_EQ(result.rejects, (std::vector<std::int64_t>{7, 3, 1})) << "the third in a row freezes";
    result = run(Problem(8, 6, 4), {7, 3, 1}, order);
    EXPECT_EQ(result.metric, Problem(8, 6, 4).metric) << "frozen: a good update moves nothing";
    EXPECT_EQ(result.rejects, (std::vector<std::int64_t>{7, 3, 1}));
  }
}

}  // namespace
}  // namespace twinbench::trainer2::metric_update
