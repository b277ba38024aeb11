// Nothing of the harness works inside a timed region: no operator callback, no counting allocator, a bare loop's time.
#include <ATen/core/TensorBody.h>
#include <ATen/record_function.h>
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "harness/bench/twin_timing.h"
#include "harness/counters/counter_scope.h"
#include "harness/selftest/row_scale.h"
#include "harness/timing/calibration.h"
#include "harness/timing/clock.h"


namespace twinbench {
namespace {

using selftest::RowScale;

struct Observed {
  bool callbacks = false, allocator_changed = false;
  std::int64_t runs = 0;
} observed;
c10::Allocator* plain_allocator = nullptr;

struct Watching : RowScale {
  using RowScale::RowScale;
  void run() override {
    observed.callbacks = observed.callbacks || at::hasCallbacks();
    observed.allocator_changed = observed.allocator_changed || c10::GetCPUAllocator() != plain_allocator;
    ++observed.runs;
    RowScale::run();
  }
};

nlohmann::json time_watching() {
  plain_allocator = c10::GetCPUAllocator();
  observed = {};
  auto component = selftest::row_scale_component(selftest::make<Watching>);
  selftest::row_scale_setting(component, 64, 64);
  component.spec.cases.front().timed = true;
  const Twin twin{&component, c10::DeviceType::CPU, Dtype::kFp32, &component.spec.cases.front()};
  TwinTimingOptions options;
  options.max_pairs = 12;
  options.seconds = 1;
  SteadyClock clock;
  options.clock = measure_clock(clock);
  return time_twin(twin, options, {});
}

TEST(TimedRegion, HoldsNoObserver) {
  const auto rows = time_watching();
  ASSERT_GE(rows["timings"][0]["n"].get<int>(), 2);
  EXPECT_GT(observed.runs, 10);
  EXPECT_FALSE(observed.callbacks);
  EXPECT_FALSE(observed.allocator_changed);
}

// The planted mistake: a scope left open is seen by the same look.
TEST(TimedRegion, AnOpenCounterScopeWouldBeSeen) {
  CounterScope forgotten;
  time_watching();
  EXPECT_TRUE(observed.callbacks);
}

// What the loop around a run costs, against the same runs in a bare loop. Both sides take turns; the smallest of many
// is compared, because other work on the machine only ever adds.
TEST(TimedRegion, CostsLessThanOnePercentOfABareLoop) {
  auto component = selftest::row_scale_component(selftest::make<RowScale>);
  const auto setting = selftest::row_scale_setting(component, 64, 64);
  const auto runnable = component.optimized(component.spec.make_inputs(setting, 1), setting);
  auto* const twin = dynamic_cast<RowScale*>(runnable.get());
  ASSERT_NE(twin, nullptr);
  SteadyClock clock;
  Side side;
  side.run = [&] { runnable->run(); };
  constexpr std::int64_t kRuns = 10;
  double bare = 1e30, harness = 1e30;
  for (int round = 0; round < 600; ++round) {
    const auto start = clock.now();
    for (std::int64_t i = 0; i < kRuns; ++i) twin->run();
    bare = std::min(bare, seconds_between(start, clock.now()));
    harness = std::min(harness, take_sample(side, kRuns, clock));
  }
  const double added = harness / bare - 1;
  std::printf("timed region: %.2f us a run bare, %+.3f %% in the harness\n", 1e6 * bare / kRuns, 100 * added);
  EXPECT_LT(added, 0.01);
}

}  // namespace
}  // namespace twinbench
