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
  auto component = selftest::row_scale_component(make<Watching>);
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

// Work that depends on nothing but the clock rate, about 25 us at 20,000 links: work in memory differs by percents with
// where a process happens to have its stack and its data.
struct Chain final : Runnable {
  explicit Chain(int links) : links(links) {}
  void run() override {
    double x = value;
    for (int i = 0; i < links; ++i) x = x * 0.999 + 0.001;
    value = x;
  }
  NamedTensors outputs() override { return {}; }
  const int links;
  double value = 0;
};

constexpr int kLooks = 10;

// Time of a run of `measured` in the harness over that of a run of `bare` in a bare loop, less 1. Both take turns; the
// smallest of many is compared, because other work on the machine only ever adds. Looks `least` times, and again while
// it is at least `limit`: a real cost stays however long one looks, a neighbour's disturbance of either does not.
double added_share(Chain& measured, Chain& bare, double limit, int least) {
  constexpr std::int64_t kRuns = 10;
  SteadyClock clock;
  Side side;
  side.run = [&] { measured.run(); };
  const auto bare_sample = [&] {
    const auto start = clock.now();
    for (std::int64_t i = 0; i < kRuns; ++i) bare.run();
    return seconds_between(start, clock.now());
  };
  double bare_s = 1e30, harness_s = 1e30, added = limit;
  for (int attempt = 0; attempt < kLooks && (attempt < least || added >= limit); ++attempt) {
    for (int round = 0; round < 300; ++round) {  // ABBA
      bare_s = std::min(bare_s, bare_sample());
      harness_s = std::min({harness_s, take_sample(side, kRuns, clock), take_sample(side, kRuns, clock)});
      bare_s = std::min(bare_s, bare_sample());
    }
    added = harness_s / bare_s - 1;
  }
  std::printf("timed region: %.2f us a run bare, %+.3f %% in the harness\n", 1e6 * bare_s / kRuns, 100 * added);
  return added;
}

TEST(TimedRegion, CostsLessThanOnePercentOfABareLoop) {
  Chain measured(20'000), bare(20'000);
  EXPECT_LT(added_share(measured, bare, 0.01, 1), 0.01);
  EXPECT_GT(measured.value, 0.0);  // the work was done
}

// The planted mistake: 2 % more work a run. One look whose bare runs were all disturbed is no proof that it isn't seen.
TEST(TimedRegion, TwoPercentWouldBeSeen) {
  Chain measured(20'400), bare(20'000);
  EXPECT_GE(added_share(measured, bare, 0.01, kLooks), 0.01);
}

}  // namespace
}  // namespace twinbench
