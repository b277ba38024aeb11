// energy_flow.flow_movement's kernels on the host executor, in every thread order: the rules by name on planted flows,
// whole steps against a plain loop, the counts, and the step in place.
#include "kernels/energy_flow/flow_movement/kernel.h"

#include "harness/simt/kernel_testing.h"
#include "kernels/common/grid.h"

#include <limits>

namespace twinbench::energy_flow::flow_movement {
namespace {

using simt::Buffer;
using simt::GuardedBuffer;
using simt::spread;
using Integers = GuardedBuffer<std::int32_t>;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();

std::int32_t outcome(float x, float y, float z, std::int32_t age, Rule rule = {.projection_age = 3}) {
  return verdict_of(rule, false, x, y, z, age).outcome;
}
std::int32_t projected_to(float z) { return verdict_of<float>({.projection_age = 3}, false, 0, 0, z, 2).status; }

TEST(FlowRules, TheFirstOneThatAppliesDecides) {
  const Rule kill = {.kill = true, .projection_age = 3};
  EXPECT_EQ(outcome(kNan, 5, -2, 9, kill), kDiedNonFinite);
  EXPECT_EQ(outcome(0, kInfinity, 0, 0), kDiedNonFinite);
  EXPECT_EQ(outcome(0, 0, -kInfinity, 0), kDiedNonFinite);  // not done on z0
  EXPECT_EQ(outcome(1.4f, 0, -2, 9, kill), kDiedOfBounds);  // before it is done
  EXPECT_EQ(outcome(0, -1.4f, 0, 0, kill), kDiedOfBounds);
  EXPECT_EQ(outcome(1.4f, 0, -2, 9), kReachedZ0);
  EXPECT_EQ(outcome(0, 0, 2, 9), kReachedZD);
  EXPECT_EQ(outcome(0, 0, 0, 2), kProjectedByAge);
  EXPECT_EQ(outcome(0, 0, 0, 1), kStaysActive);
  EXPECT_EQ(outcome(0, 0, 0, 1 << 30, {}), kStaysActive);  // t_proj 0: off
}

TEST(FlowRules, Borders) {
  const Rule kill = {.kill = true, .projection_age = 3};
  const float beyond = std::nextafter(1.0f, 2.0f), within = std::nextafter(1.0f, 0.0f);
  EXPECT_EQ(outcome(1, -1, 0, 0, kill), kStaysActive);
  EXPECT_EQ(outcome(beyond, 0, 0, 0, kill), kDiedOfBounds);
  EXPECT_EQ(outcome(0, 0, -1, 0), kReachedZ0);
  EXPECT_EQ(outcome(0, 0, 1, 0), kReachedZD);
  EXPECT_EQ(outcome(0, 0, within, 0), kStaysActive);
  EXPECT_EQ(projected_to(0.0f), kDoneZ0);
  EXPECT_EQ(projected_to(-0.0f), kDoneZ0);
  EXPECT_EQ(projected_to(1e-30f), kDoneZD);
  EXPECT_EQ(verdict_of<float>({.drop = true}, true, 0, 0, 0.5f, 0).status, kDead);
  EXPECT_EQ(verdict_of<float>({}, true, kNan, 0, 0.5f, 0).status, kDoneZD);  // where it is, not where it goes
  for (const float a : {1.0f, -1.0f, 0.25f, -0.5f}) EXPECT_EQ(reflected(a), a);
  EXPECT_EQ(reflected(beyond), 2 - beyond);
  EXPECT_EQ(reflected(-1.5f), -0.5f);
  EXPECT_EQ(reflected(3.0f), -1.0f);
  for (const float a : {3.2f, 5.0f, 1e30f}) EXPECT_EQ(reflected(a) - reflected(-a), -2.0f);
  EXPECT_EQ(reflected_slope(1.0f), 1);
  EXPECT_EQ(reflected_slope(-beyond), -1);
  EXPECT_EQ(reflected_slope(3.0f), -1);
  EXPECT_EQ(reflected_slope(std::nextafter(-3.0f, -4.0f)), 0);
}

struct Shape {
  std::int64_t flows, samples;
  bool shuffled;
};

// One launch's tensors. Every kind of end is there: raw spreads over two borders, ages around t_proj, a third of the
// samples has stopped, every eleventh flow is not finite.
struct Step {
  explicit Step(const Shape& s) : shape(s) {
    for (std::int64_t f = 0; f < s.flows; ++f) {
      age[f] = static_cast<std::int32_t>(f % 4);
      sample[f] = static_cast<std::int32_t>(s.shuffled ? f * 31 % s.samples : f * s.samples / s.flows);
      if (f % 11 == 5) raw[3 * f + f % 3] = f % 2 == 0 ? kNan : kInfinity;
    }
    for (std::int64_t i = 0; i < s.samples; ++i) stopped[i] = i % 3 == 1;
  }

  FlowsRead<float> read() const {
    return {.raw = raw.data(),
            .position = position.data(),
            .age = age.data(),
            .sample = sample.data(),
            .stopped = stopped.data()};
  }
  ForwardArguments<float> forward(Rule rule) const {
    return {.rule = rule,
            .flows = shape.flows,
            .samples = shape.samples,
            .read = read(),
            .energy = energy.data(),
            .next_energy = next_energy.data(),
            .new_position = new_position.data(),
            .new_energy = new_energy.data(),
            .new_age = new_age.data(),
            .status = status.data(),
            .distance = distance.data(),
            .counts = counts.data(),
            .tally = tally.data()};
  }
  Flow<float> expected(Rule rule, std::int64_t f) const {
    const bool stops = stopped[sample[f]];
    const Buffer& from = stops ? position : raw;
    return moved(rule, stops, from[3 * f], from[3 * f + 1], from[3 * f + 2], stops ? energy[f] : next_energy[f],
                 age[f]);
  }
  std::vector<std::int32_t> expected_counts(Rule rule) const {
    std::vector<std::int32_t> sums(static_cast<std::size_t>(shape.samples * kOutcomes));
    for (std::int64_t f = 0; f < shape.flows; ++f) ++sums[sample[f] * kOutcomes + expected(rule, f).outcome];
    return sums;
  }

  Shape shape;
  std::int64_t flows = shape.flows;
  Buffer raw{spread(3 * flows, 1, 2.2f)}, position{spread(3 * flows, 2)}, energy{spread(flows, 3)};
  Buffer next_energy{spread(flows, 4)};
  Integers age{static_cast<std::size_t>(flows)}, sample{static_cast<std::size_t>(flows)};
  GuardedBuffer<bool> stopped{static_cast<std::size_t>(shape.samples)};
  Buffer new_position{static_cast<std::size_t>(3 * flows)}, new_energy{static_cast<std::size_t>(flows)};
  Buffer distance{static_cast<std::size_t>(flows)};
  Integers new_age{static_cast<std::size_t>(flows)};
  GuardedBuffer<std::uint8_t> status{static_cast<std::size_t>(flows)};
  Integers counts{static_cast<std::size_t>(shape.samples * kOutcomes)};
  Integers tally{std::vector<std::int32_t>(static_cast<std::size_t>(shape.samples * kOutcomes + 1))};
};

std::int64_t blocks(const Shape& shape) { return kernels::striding_blocks(shape.flows, kThreads, kMostBlocks); }

const Rule kRules[] = {{.projection_age = 3}, {.kill = true, .drop = true, .projection_age = 2}, {.projection_age = 0}};

class FlowKernels : public testing::TestWithParam<Shape> {};

TEST_P(FlowKernels, MovesEveryFlow) {
  const Step s(GetParam());
  for (const Rule rule : kRules)
    for (const auto order : simt::kAllOrders) {
      // One block for all of them, as it strides where flows are many; then as many as are launched.
      const std::int64_t grid = order == simt::Order::kForward ? 1 : blocks(s.shape);
      simt::run_clean(Move{}, grid, kThreads, order, s.forward(rule));
      for (std::int64_t f = 0; f < s.flows; ++f) {
        const Flow<float> due = s.expected(rule, f);
        ASSERT_EQ(s.new_position[3 * f], due.x) << f;
        ASSERT_EQ(s.new_position[3 * f + 1], due.y) << f;
        ASSERT_EQ(s.new_position[3 * f + 2], due.z) << f;
        ASSERT_EQ(s.new_energy[f], due.energy) << f;
        ASSERT_EQ(s.new_age[f], due.age) << f;
        ASSERT_EQ(s.distance[f], due.distance) << f;
        ASSERT_EQ(s.status[f], due.status) << f;
      }
    }
}

TEST_P(FlowKernels, CountsEveryFlowOnceInEveryLaunch) {
  const Step s(GetParam());
  for (const Rule rule : kRules)
    for (const auto order : simt::kAllOrders) {
      simt::run_clean(Move{}, blocks(s.shape), kThreads, order, s.forward(rule));
      simt::expect_close(s.counts, s.expected_counts(rule), 0, "counts");
      simt::expect_close(s.tally, std::vector<std::int32_t>(s.tally.size()), 0, "tally");
    }
}

// As flow storage takes the step: position, energy and age become the new ones where they are.
TEST_P(FlowKernels, InPlace) {
  const Step apart(GetParam()), s(GetParam());
  simt::run_clean(Move{}, blocks(s.shape), kThreads, simt::Order::kShuffled, apart.forward(kRules[0]));
  ForwardArguments<float> a = s.forward(kRules[0]);
  a.new_position = s.position.data(), a.new_energy = s.energy.data(), a.new_age = s.age.data();
  simt::run_clean(Move{}, blocks(s.shape), kThreads, simt::Order::kShuffled, a);
  simt::expect_close(s.position, apart.new_position, 0, "position");
  simt::expect_close(s.energy, apart.new_energy, 0, "energy");
  simt::expect_close(s.age, apart.new_age, 0, "age");
}

TEST_P(FlowKernels, GradientsOfEveryFlow) {
  const Step s(GetParam());
  const Buffer given(spread(3 * s.flows, 5)), of_energy(spread(s.flows, 6));
  const auto made = [&](std::int64_t columns) { return Buffer(static_cast<std::size_t>(columns * s.flows)); };
  const Buffer grad_raw = made(3), grad_position = made(3), grad_energy = made(1), grad_next = made(1);
  for (const Rule rule : kRules)
    for (const auto order : simt::kAllOrders) {
      simt::run_clean(MoveBack{}, order == simt::Order::kReverse ? 1 : blocks(s.shape), kThreads, order,
                      BackwardArguments<float>{.rule = rule,
                                               .flows = s.flows,
                                               .samples = s.shape.samples,
                                               .read = s.read(),
                                               .grad_new_position = given.data(),
                                               .grad_new_energy = of_energy.data(),
                                               .grad_raw = grad_raw.data(),
                                               .grad_position = grad_position.data(),
                                               .grad_energy = grad_energy.data(),
                                               .grad_next_energy = grad_next.data()});
      for (std::int64_t f = 0; f < s.flows; ++f) {
        const std::int32_t end = s.expected(rule, f).outcome;
        const bool rests = end == kProjectedAtStop, moves = end <= kProjectedByAge;
        for (std::int64_t k = 0; k < 3; ++k) {
          const float slope = k < 2 ? reflected_slope(s.raw[3 * f + k]) : end == kStaysActive ? 1.0f : 0.0f;
          const float gradient = given[3 * f + k];
          ASSERT_EQ(grad_raw[3 * f + k], moves ? slope * gradient : 0) << f;
          ASSERT_EQ(grad_position[3 * f + k], rests && k < 2 ? gradient : 0) << f;
        }
        ASSERT_EQ(grad_next[f], moves ? of_energy[f] : 0) << f;
        ASSERT_EQ(grad_energy[f], rests ? of_energy[f] : 0) << f;
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Shapes, FlowKernels,
                         testing::Values(Shape{1, 1, false}, Shape{33, 2, false}, Shape{128, 5, false},
                                         Shape{129, 40, false}, Shape{500, 7, true}, Shape{1000, 3, false}));

// Flows of a sample that is not there move all the same, and nothing else is touched.
TEST(FlowKernels, ASampleThatIsNotThereIsNotCounted) {
  const Step s({40, 2, false});
  s.sample[3] = 2, s.sample[17] = -1, s.sample[39] = 1 << 30;
  simt::run_clean(Move{}, 1, kThreads, simt::Order::kForward, s.forward(kRules[0]));
  std::int32_t counted = 0;
  for (const std::int32_t count : s.counts) counted += count;
  EXPECT_EQ(counted, 37);
  EXPECT_NE(s.status[3], 0);
}

}  // namespace
}  // namespace twinbench::energy_flow::flow_movement
