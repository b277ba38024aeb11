// energy_flow.adaptive_stop's rule by name, and its kernel on the host executor in every thread order: step by step
// against the rule, samples that have finished, and the flag.
#include "kernels/energy_flow/adaptive_stop/kernel.h"

#include "harness/simt/kernel_testing.h"

#include <algorithm>
#include <vector>

namespace twinbench::energy_flow::adaptive_stop {
namespace {

using simt::GuardedBuffer;
using Integers = GuardedBuffer<std::int32_t>;

constexpr StopRule kDocumented = {.max_steps = 50};

// The state when the sample has finished; `completed` goes on as it ends. The flows that have not completed are active.
StopState finished(const std::vector<std::int32_t>& completed, std::int32_t created, const StopRule& rule) {
  StopState state;
  for (std::int32_t step = 0; !state.finished(); ++step) {
    const std::int32_t done = completed[std::min<std::size_t>(static_cast<std::size_t>(step), completed.size() - 1)];
    state = decided(rule, step, state, {.completed = done, .created = created, .active = created - done});
  }
  return state;
}
void expect(StopReason reason, std::int32_t steps, const StopState& state) {
  EXPECT_EQ(state.reason, reason);
  EXPECT_EQ(state.steps, steps);
}

TEST(StopRule, DocumentedExamples) {
  expect(StopReason::kThreshold, 6, finished({0, 0, 0, 10, 40, 70, 99}, 100, kDocumented));
  expect(StopReason::kThreshold, 5, finished({0, 0, 10, 40, 80, 96}, 100, kDocumented));
  expect(StopReason::kThreshold, 5, finished({0, 0, 0, 5, 10, 19}, 20, kDocumented));
  expect(StopReason::kPatience, 13, finished({0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 50}, 100, kDocumented));
  expect(StopReason::kMaxSteps, 50, finished({0}, 100, kDocumented));
}

TEST(StopRule, EdgeCases) {
  expect(StopReason::kExhausted, 0, finished({0}, 0, kDocumented));
  expect(StopReason::kExhausted, 2, finished({0, 50, 100}, 100, kDocumented));  // before anything is asked
  expect(StopReason::kMaxSteps, 8, finished({99}, 100, {.max_steps = 8, .min_steps = 20}));
  expect(StopReason::kMaxSteps, 8, finished({99}, 100, {.max_steps = 8, .convergence = false}));
  expect(StopReason::kMaxSteps, 0, finished({99}, 100, {.max_steps = 0, .min_steps = 1}));
  expect(StopReason::kPatience, 8, finished({99}, 100, {.threshold = 1, .max_steps = 50}));
  // Shares of twentieths are the literals: a division in double, as IEEE has it.
  for (std::int32_t part = 1; part <= 20; ++part) {
    const StopRule rule = {.threshold = part / 20.0, .max_steps = 9, .min_steps = 1, .patience = 99};
    const StopCounts even = {.completed = 7 * part, .created = 140, .active = 1};
    EXPECT_EQ(decided(rule, 1, {}, even).reason, StopReason::kThreshold) << part;
    EXPECT_EQ(decided(rule, 1, {}, {.completed = 7 * part - 1, .created = 140, .active = 1}).reason, StopReason::kNone);
  }
}

TEST(StopRule, WhatHasFinishedStaysAsItIs) {
  const StopState before = finished({0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 50}, 100, kDocumented);
  for (const std::int32_t step : {14, 20, 50})
    for (const std::int32_t active : {0, 7}) {
      const StopState now = decided(kDocumented, step, before, {.completed = 99, .created = 100, .active = active});
      EXPECT_EQ(now.reason, before.reason);
      EXPECT_EQ(now.steps, 13);
      EXPECT_EQ(now.best, 50);
      EXPECT_EQ(now.stall, 3);
    }
}

TEST(StopRule, PollsEveryEighthStep) {
  for (std::int32_t step = 0; step < 30; ++step) EXPECT_EQ(polls_before(step), step == 8 || step == 16 || step == 24);
}

// Counts that end samples at many steps and for every reason: none need add up for the rule.
struct History {
  History(std::int64_t all, std::int32_t most) : samples(all), max_steps(most) {
    std::uint32_t state = 7;
    const auto below = [&](std::uint32_t bound) {
      state = state * 1664525u + 1013904223u;
      return static_cast<std::int32_t>((state >> 8) % bound);
    };
    for (std::int64_t i = 0; i < (most + 1) * all; ++i)
      completed[i] = below(18), created[i] = 19 + below(3), active[i] = below(12);
    best[0] = stall[0] = 77;  // what an earlier pass has left
  }
  Arguments before(std::int32_t step) const {
    return {.rule = rule,
            .samples = samples,
            .completed = completed.data(),
            .created = created.data(),
            .active = active.data(),
            .states = {.best = best.data(), .stall = stall.data(), .steps = steps.data(), .reason = reason.data()},
            .flow_steps = flow_steps.data(),
            .step = step,
            .pass = 5,
            .all_finished = flag.data()};
  }

  std::int64_t samples;
  std::int32_t max_steps;
  std::size_t each = static_cast<std::size_t>(samples), all = each * (static_cast<std::size_t>(max_steps) + 1);
  StopRule rule = {.threshold = 0.8, .max_steps = max_steps, .min_steps = 3};
  Integers completed{all}, created{all}, active{all}, best{each}, stall{each}, steps{each}, reason{each};
  GuardedBuffer<std::int64_t> flow_steps{each};
  Integers flag{std::vector<std::int32_t>{4}};  // as an earlier pass has left it
};

class StopKernel : public testing::TestWithParam<std::pair<std::int64_t, std::int32_t>> {};

TEST_P(StopKernel, DecidesForEverySample) {
  for (const auto order : simt::kAllOrders) {
    const History h(GetParam().first, GetParam().second);
    std::vector<Look> due(h.each);
    for (std::int32_t step = 0; step <= h.max_steps; ++step) {
      bool all = true;
      for (std::int64_t b = 0; b < h.samples; ++b) {
        Look& look = due[static_cast<std::size_t>(b)];
        look = looked(h.rule, step, look, h.before(step).counts(step, b));
        all = all && look.state.finished();
      }
      simt::run_clean(Decide{}, 1, kThreads, order, h.before(step));
      for (std::int64_t b = 0; b < h.samples; ++b) {
        const Look& look = due[static_cast<std::size_t>(b)];
        ASSERT_EQ(h.best[b], look.state.best) << step << ' ' << b;
        ASSERT_EQ(h.stall[b], look.state.stall) << step << ' ' << b;
        ASSERT_EQ(h.steps[b], look.state.steps) << step << ' ' << b;
        ASSERT_EQ(h.reason[b], static_cast<std::int32_t>(look.state.reason)) << step << ' ' << b;
        ASSERT_EQ(h.flow_steps[b], look.flow_steps) << step << ' ' << b;
      }
      ASSERT_EQ(h.flag[0], all ? 5 : 4) << step;
    }
    EXPECT_EQ(h.flag[0], 5);
  }
}

INSTANTIATE_TEST_SUITE_P(Batches, StopKernel,
                         testing::Values(std::pair(1, 6), std::pair(33, 12), std::pair(64, 5), std::pair(200, 9)));

// Iterations beyond a sample's end, with whatever counts: not a bit of its state changes.
TEST(StopKernel, IterationsIssuedInVainChangeNothing) {
  const History h(40, 9);
  for (std::int32_t step = 0; step <= h.max_steps; ++step)
    simt::run_clean(Decide{}, 1, kThreads, simt::Order::kForward, h.before(step));
  const std::vector<std::int32_t> steps(h.steps.begin(), h.steps.end()), best(h.best.begin(), h.best.end());
  const std::vector<std::int64_t> executed(h.flow_steps.begin(), h.flow_steps.end());
  for (const std::int32_t step : {2, 5, 9})
    simt::run_clean(Decide{}, 1, kThreads, simt::Order::kShuffled, h.before(step));
  simt::expect_close(h.steps, steps, 0, "steps");
  simt::expect_close(h.best, best, 0, "best");
  simt::expect_close(h.flow_steps, executed, 0, "flow-steps");
}

}  // namespace
}  // namespace twinbench::energy_flow::adaptive_stop
