// The losses' kernel on the host executor, in every thread order, against plain sums in fp64: both widths, with and
// without gradients, without an encoder, without a value.
#include "kernels/energy_flow/losses/kernel.h"

#include "harness/simt/kernel_testing.h"

#include <limits>

namespace twinbench::energy_flow::losses {
namespace {

using simt::Buffer;
using simt::GuardedBuffer;
using simt::Order;

struct Surfaces {
  explicit Surfaces(std::int64_t values, unsigned seed)
      : surface(simt::spread(values, seed)), target(simt::spread(values, seed + 1)), gradient(values), count(values) {}

  SurfacePair<float> pair(bool backward) const {
    return {.surface = surface.data(),
            .target = target.data(),
            .gradient = backward ? gradient.data() : nullptr,
            .count = count};
  }
  double mean() const {
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i) sum += std::pow(static_cast<double>(surface[i]) - target[i], 2);
    return count == 0 ? 0 : sum / static_cast<double>(count);
  }

  Buffer surface, target, gradient;
  std::int64_t count;
};

struct Launched {
  Launched(const Surfaces& energy, const Surfaces& encoder, bool backward, Order order, double weight = 0.1) {
    const std::int32_t blocks = loss_blocks(energy.count);
    const SurfaceLossArguments a = {.energy = energy.pair(backward),
                                    .encoder = encoder.pair(backward),
                                    .weight = weight,
                                    .decoder = 0.3,
                                    .upstream = backward ? upstream.data() : nullptr,
                                    .losses = {.energy = losses.data(),
                                               .encoder = losses.data() + 1,
                                               .decoder = losses.data() + 2,
                                               .text = losses.data() + 3,
                                               .total = losses.data() + 4,
                                               .finite = finite.data()},
                                    .partial = partial.data(),
                                    .arrived = arrived.data(),
                                    .energy_blocks = blocks > 0 ? blocks : 1,
                                    .encoder_blocks = loss_blocks(encoder.count)};
    if (lies_in_fours(a.energy) && lies_in_fours(a.encoder))
      simt::run_clean(SurfaceLosses{}, a.energy_blocks + a.encoder_blocks, kLossThreads, order, a);
    else
      simt::run_clean(SurfaceLossesAnyWidth{}, a.energy_blocks + a.encoder_blocks, kLossThreads, order, a);
  }

  Buffer upstream{std::vector<float>{0.25f}}, losses{5};
  GuardedBuffer<std::int64_t> finite{1};
  GuardedBuffer<double> partial{2 * kMostLossBlocks};
  GuardedBuffer<unsigned> arrived{std::vector<unsigned>{0}};
};

class LossesKernel : public testing::TestWithParam<std::int64_t> {};

TEST_P(LossesKernel, LossesAndGradientsInOnePass) {
  for (const Order order : simt::kAllOrders)
    for (const bool backward : {false, true}) {
      const Surfaces energy(GetParam(), 1), encoder(GetParam(), 3);
      const Launched run(energy, encoder, backward, order);
      const double text = encoder.mean() + 0.1 * 0.3,
                   expected[] = {energy.mean(), encoder.mean(), 0.3, text, energy.mean() + 0.1 * text};
      for (std::size_t i = 0; i < 5; ++i) ASSERT_NEAR(run.losses[i], expected[i], 1e-6 * expected[i]) << i;
      ASSERT_EQ(run.finite[0], 1);
      ASSERT_EQ(run.arrived[0], 0u) << "the next launch starts from 0";
      for (std::int64_t i = 0; backward && i < GetParam(); ++i) {
        const double by = 2 * 0.25 / static_cast<double>(GetParam());
        ASSERT_NEAR(energy.gradient[i], by * (energy.surface[i] - energy.target[i]), 1e-7);
        ASSERT_NEAR(encoder.gradient[i], 0.1 * by * (encoder.surface[i] - encoder.target[i]), 1e-7);
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Counts, LossesKernel, testing::Values(1, 4, 37, 1024, 4099, 9216),
                         [](const auto& info) { return std::to_string(info.param); });

TEST(LossesKernel, WithoutAnEncoder) {
  const Surfaces energy(37, 1), none(0, 3);
  const Launched run(energy, none, true, Order::kForward, 0.0);
  EXPECT_NEAR(run.losses[4], energy.mean(), 1e-6);
  EXPECT_EQ(run.losses[1], 0.0f);
  EXPECT_NEAR(run.losses[3], 0.03f, 1e-7);
}

TEST(LossesKernel, AnEmptyMicroStepHasLossesOfNothing) {
  const Surfaces none(0, 1);
  const Launched run(none, none, true, Order::kForward);
  EXPECT_EQ(run.losses[0], 0.0f);
  EXPECT_EQ(run.finite[0], 1);
}

TEST(LossesKernel, OneValueThatIsNoNumberIsTold) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const Surfaces energy(1030, 1);
    energy.surface[1029] = bad;
    const Launched run(energy, Surfaces(1030, 3), true, Order::kReverse);
    EXPECT_EQ(run.finite[0], 0);
    EXPECT_FALSE(std::isfinite(run.losses[0]));
    EXPECT_TRUE(std::isfinite(run.losses[1]));
    EXPECT_TRUE(std::isfinite(energy.gradient[1028]));
    EXPECT_FALSE(std::isfinite(energy.gradient[1029]));
  }
}

// Whether a step may follow is asked of the total as it is given: one that is a number in fp64 alone is none.
TEST(LossesKernel, ATotalThatIsANumberInFp64AloneIsNone) {
  float energy = 0, encoder = 0, decoder = 0, text = 0, total = 0;
  std::int64_t finite = 1;
  const LossPlaces<float> to{&energy, &encoder, &decoder, &text, &total, &finite};
  set_losses(to, 9e38, 1, 0, 1, 0, 0.1);
  EXPECT_EQ(finite, 0);
  EXPECT_TRUE(std::isinf(total));
  set_losses(to, 3e38, 1, 0, 1, 0, 0.1);
  EXPECT_EQ(finite, 1);
}

}  // namespace
}  // namespace twinbench::energy_flow::losses
