// The training step's own kernels on the host executor, in every thread order, against plain loops.
#include "kernels/energy_flow/train_step/kernel.h"

#include "harness/simt/kernel_testing.h"

#include <limits>

namespace twinbench::energy_flow::train_step {
namespace {

using simt::Buffer;
using simt::GuardedBuffer;
using simt::Order;
using Integers = std::vector<std::int64_t>;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();

class TrainStepKernel : public testing::TestWithParam<std::int64_t> {};

TEST_P(TrainStepKernel, AWindowBeginsWithZerosAndScaledShares) {
  for (const Order order : simt::kAllOrders) {
    const std::int64_t count = GetParam();
    const GuardedBuffer<WindowState> state(std::vector<WindowState>{{1, 2, 3, 4, 5}}, "state", 16);
    const Buffer sums(simt::spread(count, 1)), shares(simt::Floats{0.5f, 0.25f, 1}), upstream(std::size_t{3}),
        losses(simt::Floats{7, 7, 7});
    const GuardedBuffer<std::int64_t> exponent(Integers{3}), applied(Integers{119});
    const Buffer scales(simt::Floats{4, 3, 2, 1}), scale(simt::Floats{0});
    const GuardedBuffer<std::int64_t> anomaly(Integers{1, 2});
    simt::run_clean(Begin{}, 2, kThreads, order,
                    BeginArguments{.state = state.data(),
                                   .sums = sums.data(),
                                   .count = count,
                                   .micro_steps = 3,
                                   .shares = shares.data(),
                                   .exponent = exponent.data(),
                                   .upstream = upstream.data(),
                                   .losses = losses.data(),
                                   .applied = applied.data(),
                                   .scales = scales.data(),
                                   .last_scale = 3,
                                   .scale = scale.data(),
                                   .anomaly = anomaly.data()});
    for (std::int64_t i = 0; i < count; ++i) ASSERT_EQ(sums[i], 0.0f) << i;
    for (std::int64_t i = 0; i < 3; ++i) ASSERT_EQ(upstream[i], 8 * shares[i]);
    for (std::int64_t i = 0; i < 3; ++i) ASSERT_EQ(losses[i], 0.0f);
    EXPECT_EQ(state[0].contributed, 0);
    EXPECT_EQ(state[0].skipped, 0);
    EXPECT_EQ(state[0].loss_rows, 0.0);
    EXPECT_EQ(scale[0], 2.0f);
    EXPECT_EQ(anomaly[0], -1);
    EXPECT_EQ(anomaly[1], -1);
  }
}

TEST_P(TrainStepKernel, RowsAreMadeFitAndThoseThatWereNotAreCounted) {
  for (const Order order : simt::kAllOrders)
    for (const bool sanitises : {true, false}) {
      const std::int64_t width = GetParam(), rows = 3;
      simt::Floats input = simt::spread(rows * width, 1), target = simt::spread(rows * width, 2);
      input[static_cast<std::size_t>(width - 1)] = kNan;            // row 0
      target[static_cast<std::size_t>(2 * width)] = -kInfinity;     // row 2
      target[static_cast<std::size_t>(3 * width - 1)] = kInfinity;  // likewise
      const Buffer in(input), out(target), to_input(static_cast<std::size_t>(rows * width)),
          to_target(static_cast<std::size_t>(rows * width));
      const GuardedBuffer<std::int32_t> count(std::vector<std::int32_t>{5});
      simt::run_clean(Stage{}, 4, kThreads, order,
                      StageArguments{.input = in.data(),
                                     .target = out.data(),
                                     .to_input = to_input.data(),
                                     .to_target = to_target.data(),
                                     .rows = rows,
                                     .width = width,
                                     .sanitises = sanitises,
                                     .sanitised = count.data()});
      EXPECT_EQ(count[0], sanitises ? 7 : 5);
      const float first = to_input[width - 1], last = to_target[3 * width - 1];
      EXPECT_TRUE(sanitises ? first == 0.0f : std::isnan(first));
      EXPECT_EQ(last, sanitises ? 10.0f : kInfinity);
      if (width > 1) {
        EXPECT_EQ(to_target[2 * width], sanitises ? -10.0f : -kInfinity);
      }
      EXPECT_EQ(to_input[2 * width], input[static_cast<std::size_t>(2 * width)]);
    }
}

TEST_P(TrainStepKernel, TheFirstStageThatIsNotAllNumbersIsNoted) {
  for (const Order order : simt::kAllOrders)
    for (const float last : {1.0f, kNan, -kInfinity})
      for (const std::int64_t before : {-1, 3}) {
        simt::Floats values = simt::spread(GetParam(), 1);
        values.back() = last;
        const Buffer of(values);
        const GuardedBuffer<std::int64_t> anomaly(Integers{before, before});
        simt::run_clean(
            Inspect{}, 1, kThreads, order,
            InspectArguments{
                .values = of.data(), .count = GetParam(), .micro_step = 2, .stage = 5, .anomaly = anomaly.data()});
        const bool noted = last != 1.0f && before < 0;
        EXPECT_EQ(anomaly[0], noted ? 2 : before);
        EXPECT_EQ(anomaly[1], noted ? 5 : before);
      }
}

TEST_P(TrainStepKernel, GradientsOfALossThatIsNoNumberAreSelectedAway) {
  for (const Order order : simt::kAllOrders)
    for (const bool finite : {true, false}) {
      const std::int64_t count = GetParam();
      simt::Floats gradients = simt::spread(count, 1);
      if (!finite) gradients[0] = kNan;
      const simt::Floats before = simt::spread(count, 2);
      const Buffer from(gradients), sums(before), loss(simt::Floats{finite ? 0.5f : kNan});
      const GuardedBuffer<std::int64_t> flag(Integers{finite ? 1 : 0});
      const GuardedBuffer<WindowState> state(std::vector<WindowState>{{1, 2, 3, 4, 5}}, "state", 16);
      simt::run_clean(Accumulate{}, 2, kThreads, order,
                      AccumulateArguments{.gradients = from.data(),
                                          .sums = sums.data(),
                                          .count = count,
                                          .rows = 6,
                                          .loss = loss.data(),
                                          .finite = flag.data(),
                                          .state = state.data()});
      for (std::int64_t i = 0; i < count; ++i) {
        const auto at = static_cast<std::size_t>(i);
        ASSERT_EQ(sums[i], finite ? before[at] + gradients[at] : before[at]) << i;
      }
      EXPECT_EQ(state[0].loss_sum, finite ? 4.0 : 1.0);
      EXPECT_EQ(state[0].loss_rows, finite ? 8.0 : 2.0);
      EXPECT_EQ(state[0].contributed, finite ? 4 : 3);
      EXPECT_EQ(state[0].skipped, finite ? 4 : 5);
    }
}

TEST_P(TrainStepKernel, SumsGoToTheArenasPlaces) {
  for (const Order order : simt::kAllOrders) {
    const std::int64_t count = GetParam();
    const Buffer sums(simt::spread(count, 1)), gradients(static_cast<std::size_t>(count)), factor(std::size_t{1}),
        loss(std::size_t{1});
    std::vector<std::int32_t> places;
    for (std::int64_t i = 0; i < count; ++i) places.push_back(i % 5 == 4 ? 0 : static_cast<std::int32_t>(count - i));
    const GuardedBuffer<std::int32_t> table(places);
    const GuardedBuffer<WindowState> state(std::vector<WindowState>{{3, 4, 1, 0, 0}}, "state", 16);
    const GuardedBuffer<std::int64_t> exponent(Integers{2});
    simt::run_clean(Gather{}, 2, kThreads, order,
                    GatherArguments{.sums = sums.data(),
                                    .places = table.data(),
                                    .gradients = gradients.data(),
                                    .count = count,
                                    .state = state.data(),
                                    .rescaling = 1.5,
                                    .exponent = exponent.data(),
                                    .factor = factor.data(),
                                    .loss = loss.data()});
    for (std::int64_t i = 0; i < count; ++i) ASSERT_EQ(gradients[i], i % 5 == 4 ? 0.0f : sums[count - i - 1]) << i;
    EXPECT_EQ(factor[0], 0.375f);
    EXPECT_EQ(loss[0], 0.75f);
  }
}

TEST_P(TrainStepKernel, PacksAreMadeAgainAndTheCountsMoveOn) {
  for (const Order order : simt::kAllOrders)
    for (const std::int64_t status : {0, 1, 2}) {
      const std::int64_t count = GetParam();
      const simt::Floats before = simt::spread(count, 3);
      const Buffer arena(simt::spread(count + 1, 1)), pack(before);
      std::vector<std::int32_t> first, second;
      for (std::int64_t i = 0; i < count; ++i) {
        const auto at = static_cast<std::int32_t>(i + 1);
        first.push_back(i % 4 == 0 ? 0 : i % 4 == 1 ? -at : at);
        second.push_back(i % 4 == 2 ? at + 1 : 0);
      }
      const GuardedBuffer<std::int32_t> one(first), other(second);
      const GuardedBuffer<PackPiece> pieces(
          std::vector<PackPiece>{{.to = pack.data(), .first = one.data(), .second = other.data(), .count = count}},
          "pieces", 8);
      const GuardedBuffer<WindowState> state(std::vector<WindowState>{{0, 0, 0, 2, 6}}, "state", 16);
      const GuardedBuffer<std::int64_t> told(Integers{status}), counts(Integers{11, 1, 12, 16, 1999}),
          record(std::size_t{2});
      simt::run_clean(Renew{}, 1, kThreads, order,
                      RenewArguments{.pieces = pieces.data(),
                                     .count = 1,
                                     .arena = arena.data(),
                                     .state = state.data(),
                                     .status = told.data(),
                                     .counts = counts.data(),
                                     .record = record.data(),
                                     .good_windows = 2000});
      for (std::int64_t i = 0; i < count; ++i) {
        const float expected[] = {before[static_cast<std::size_t>(i)], kernels::round_to_bf16(arena[i]),
                                  arena[i] + arena[i + 1], arena[i]};
        ASSERT_EQ(pack[i], expected[i % 4]) << i;
      }
      EXPECT_EQ(counts[2], 13);
      EXPECT_EQ(counts[3], status == 0 ? 17 : status == 1 ? 15 : 16);
      EXPECT_EQ(counts[4], status == 2 ? 1999 : 0);
      EXPECT_EQ(record[0], 2);
      EXPECT_EQ(record[1], 6);
    }
}

TEST(TrainStepScales, AreDueByTheWindowsThatWereApplied) {
  const std::int64_t applied[] = {0, 99, 100, 109, 110, 119, 120, 130, 1000000}, place[] = {0, 0, 1, 1, 2, 2, 3, 3, 3};
  for (int i = 0; i < 9; ++i) EXPECT_EQ(place_of_scale(applied[i], 3), place[i]) << applied[i];
}

INSTANTIATE_TEST_SUITE_P(Counts, TrainStepKernel, testing::Values(1, 5, 257, 1030),
                         [](const auto& info) { return std::to_string(info.param); });

}  // namespace
}  // namespace twinbench::energy_flow::train_step
