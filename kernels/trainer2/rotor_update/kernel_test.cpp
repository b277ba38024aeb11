// trainer2.rotor_update's kernel on the host executor, in every thread order, against a plain loop in fp64.
#include "kernels/trainer2/rotor_update/kernel.h"

#include <numeric>

#include "harness/simt/kernel_testing.h"

namespace twinbench::trainer2::rotor_update {
namespace {

using kernels::simt::Buffer;
using kernels::simt::Floats;

struct Expected {
  Floats theta;
  std::int64_t updates = 0;
  double sum = 0;
};

Expected plain_loop(double rate, const Floats& velocity, float lior_change, const std::vector<std::int32_t>& first,
                    const std::vector<std::int32_t>& second, Floats theta) {
  Expected result;
  for (std::size_t p = 0; p < theta.size(); ++p) {
    const double a = velocity[static_cast<std::size_t>(first[p])], b = velocity[static_cast<std::size_t>(second[p])];
    const double length = std::sqrt(a * a + b * b), change = rate * -double{lior_change} * std::atan2(b, a) * length;
    double angle = theta[p];
    if (length >= 1e-6 && std::isfinite(change)) {
      angle += change;
      ++result.updates;
      result.sum += std::abs(change);
    }
    theta[p] = static_cast<float>(std::remainder(angle, 2 * M_PI));
  }
  result.theta = theta;
  return result;
}

TEST(RotorUpdateKernel, MatchesAPlainLoop) {
  for (const std::size_t planes : {1u, 6u, 31u, 128u, 129u, 300u}) {
    constexpr int kAxes = 9;
    Floats velocity = kernels::simt::spread(kAxes, 1);
    velocity[3] = velocity[4] = 0;  // their plane stays
    const Floats theta = kernels::simt::spread(static_cast<std::int64_t>(planes), 2);
    std::vector<std::int32_t> first(planes), second(planes);
    for (std::size_t p = 0; p < planes; ++p) {
      first[p] = static_cast<std::int32_t>(p % kAxes);
      second[p] = static_cast<std::int32_t>((p + 1) % kAxes);
    }
    const Expected expected = plain_loop(0.1f, velocity, 0.7f, first, second, theta);
    for (const auto order : kernels::simt::kAllOrders) {
      const Buffer values(velocity), change(Floats{0.7f}), angles(theta), mean(std::size_t{1});
      const kernels::simt::GuardedBuffer<std::int32_t> a(first), b(second);
      const kernels::simt::GuardedBuffer<std::int64_t> updates(std::size_t{1});
      kernels::simt::run_clean(Update{}, 1, kThreads, order,
                               Arguments{.planes = static_cast<std::int64_t>(planes),
                                         .rate = 0.1f,
                                         .first_axis = a.data(),
                                         .second_axis = b.data(),
                                         .velocity = values.data(),
                                         .lior_change = change.data(),
                                         .theta = angles.data(),
                                         .updates = updates.data(),
                                         .mean_change = mean.data()});
      kernels::simt::expect_close(angles, expected.theta, 1e-6);
      EXPECT_EQ(updates.data()[0], expected.updates);
      EXPECT_NEAR(mean.data()[0], expected.updates > 0 ? expected.sum / static_cast<double>(expected.updates) : 0,
                  1e-6);
    }
  }
}

}  // namespace
}  // namespace twinbench::trainer2::rotor_update
