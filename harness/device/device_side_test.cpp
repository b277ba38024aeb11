// Samples on a simulated device: order, clocks, regimes, throttling, expiry; and pairs of them.
#include "harness/device/device_side.h"

#include <gtest/gtest.h>

#include "harness/device/device_session.h"
#include "harness/device/simulated_device.h"
#include "harness/timing/paired.h"
#include "src/common/error.h"

namespace twinbench {
namespace {

constexpr double kEvent = SimulatedDevice::kEvent, kLaunch = SimulatedDevice::kLaunch;

DeviceSampling held(Regime regime = Regime::kHot) { return decide_sampling(regime, {}, {}, true); }

TEST(DeviceSample, HeldSpanIsKernelTimeAlone) {
  SimulatedDevice device;
  const auto work = device.work(10, 1e-6, 1e-6);  // each shorter than its launch: host-bound
  EXPECT_NEAR(take_device_sample(device, device, work, {false, true}).span_s, 10e-6 + kEvent, 1e-9);
}

TEST(DeviceSample, WithoutTheBlockingKernelLaunchesShowInTheSpan) {
  SimulatedDevice device({.hold_does_nothing = true});
  const DeviceSample sample = take_device_sample(device, device, device.work(10, 1e-6, 1e-6), {false, true});
  EXPECT_GT(sample.span_s, 10 * kLaunch);
}

TEST(DeviceSample, AThrowingBodyLeavesNothingHeld) {
  SimulatedDevice device;
  const auto body = [] { throw Error(ErrorKind::kInternal, "body", "planted", ""); };
  EXPECT_THROW(take_device_sample(device, device, body, {false, true}), Error);
  EXPECT_FALSE(device.holding());
}

TEST(DeviceSample, ASynchronisationUnderTheHoldExpiresIt) {
  SimulatedDevice device;
  EXPECT_TRUE(take_device_sample(device, device, device.work(1, 1e-5, 1e-5, true), {false, true}).hold_expired);
  EXPECT_TRUE(take_device_sample(device, device, device.work(2000, 1e-6, 1e-6), {false, true}).hold_expired)
      << "the queue is full";
  EXPECT_FALSE(take_device_sample(device, device, device.work(100, 1e-6, 1e-6), {false, true}).hold_expired);
}

TEST(Regimes, ColdIsSlowerThanHotAndRotatingIsCold) {
  SimulatedDevice device;
  const auto one = device.work(1, 20e-6, 60e-6, false, 1), other = device.work(1, 20e-6, 60e-6, false, 2);
  const auto span = [&](Regime regime, std::vector<std::function<void()>> copies) {
    DeviceSide side("side", std::move(copies), device, device, held(regime));
    take_sample(side.side(), 8, device);  // the first sample finds what was there before
    take_sample(side.side(), 8, device);
    return side.samples().back().span_s;
  };
  EXPECT_NEAR(span(Regime::kHot, {one}), 20e-6, 1e-6);
  EXPECT_NEAR(span(Regime::kCold, {one}), 60e-6 + kEvent, 1e-9);
  EXPECT_NEAR(span(Regime::kRotating, {one, other}), 60e-6, 1e-6);
}

TEST(Regimes, HotMeansItsOwnDataAlsoBesideAnotherSide) {
  SimulatedDevice device;
  DeviceSide a("a", {device.work(1, 20e-6, 60e-6, false, 1)}, device, device, held()),
      b("b", {device.work(1, 20e-6, 60e-6, false, 2)}, device, device, held());
  for (int pair = 0; pair < 3; ++pair) {
    EXPECT_NEAR(take_sample(a.side(), 1, device), 20e-6 + kEvent, 1e-9);
    EXPECT_NEAR(take_sample(b.side(), 1, device), 20e-6 + kEvent, 1e-9);
  }
}

TEST(Regimes, EnoughCopiesToExceedTheCacheTwice) {
  EXPECT_EQ(rotating_copies(30e6, 60e6), 5u);
  EXPECT_EQ(rotating_copies(500e6, 60e6), 2u);
  EXPECT_EQ(rotating_copies(1e3, 60e6), 0u) << "120,000 copies are refused, not cut short";
  EXPECT_EQ(regime_named("rotating"), Regime::kRotating);
  EXPECT_THROW(regime_named("warm"), Error);
}

TEST(Decision, TheDeviceClockOnlyWhereNeitherSideWaits) {
  EXPECT_EQ(decide_sampling(Regime::kHot, {}, {}, true).clock, PublishedClock::kDeviceSpan);
  for (const RunCounts& waiting :
       {RunCounts{.sync_calls = 1}, RunCounts{.scalar_reads = 1}, RunCounts{.device_copies = 1}})
    for (const auto& sampling :
         {decide_sampling(Regime::kHot, waiting, {}, true), decide_sampling(Regime::kHot, {}, waiting, true)}) {
      EXPECT_EQ(sampling.clock, PublishedClock::kHostWall);
      EXPECT_FALSE(sampling.hold);
      EXPECT_NE(sampling.reason.find("waits for the device"), std::string::npos);
    }
  EXPECT_EQ(decide_sampling(Regime::kHot, {}, {}, false).clock, PublishedClock::kHostWall);
  EXPECT_EQ(decide_sampling(Regime::kHot, {.dispatches = 4000}, {}, true).clock, PublishedClock::kHostWall);
  EXPECT_LE(decide_sampling(Regime::kHot, {.dispatches = 20}, {}, true).most_iterations * 100, 512);
}

TEST(Throttle, LowClockSamplesAreDiscardedWithGrowingRests) {
  SimulatedDevice device;
  DeviceSampling sampling = held();
  sampling.reference_clock_hz = SimulatedDevice::kNominalHz;
  device.clock = [](std::int64_t sample) { return sample < 3 ? 0.5 : 1.0; };
  DeviceSide side("side", {device.work(1, 1e-4, 1e-4)}, device, device, sampling);
  EXPECT_NEAR(take_sample(side.side(), 1, device), 1e-4 + kEvent, 1e-9);
  EXPECT_EQ(side.discarded(), 3u);
  EXPECT_EQ(side.samples().size(), 1u);
  ASSERT_EQ(device.rests.size(), 3u);
  EXPECT_LT(device.rests[0], device.rests[2]);
}

TEST(Throttle, APermanentlyLowClockIsKeptMarkedAndCalledAProblem) {
  SimulatedDevice device;
  DeviceSampling sampling = held();
  sampling.reference_clock_hz = SimulatedDevice::kNominalHz;
  device.clock = [](std::int64_t) { return 0.6; };
  DeviceSide side("side", {device.work(1, 1e-4, 1e-4)}, device, device, sampling);
  take_sample(side.side(), 1, device);
  EXPECT_TRUE(side.samples().back().throttled);
  EXPECT_NE(clock_problem(side.samples(), side.samples()).find("throttled"), std::string::npos);
  sampling.reference_clock_hz.reset();  // no reference: nothing is discarded
  DeviceSide free("side", {device.work(1, 1e-4, 1e-4)}, device, device, sampling);
  take_sample(free.side(), 1, device);
  EXPECT_EQ(free.discarded(), 0u);
}

TEST(Throttle, PairsAtDifferentClocksAreAProblem) {
  const KeptSample fast{1e-3, 1e-3, 1e-3, 2e9, false}, slow{1e-3, 1e-3, 1e-3, 1.9e9, false};
  EXPECT_EQ(clock_problem({fast, fast}, {fast, fast}), "");
  EXPECT_NE(clock_problem({fast, fast}, {fast, slow}).find("2 % apart"), std::string::npos);
  const KeptSample brief{1e-5, 1e-5, 1e-5, 1.9e9, false};
  EXPECT_EQ(clock_problem({fast}, {brief}), "") << "too short for the device's timers to resolve 2 %";
}

TEST(Quality, AWindowNearTheTimersCostIsMarked) {
  SimulatedDevice device;
  const auto quality = [&](double seconds) {
    DeviceSide side("side", {device.work(1, seconds, seconds)}, device, device, held(Regime::kCold));
    take_sample(side.side(), 4, device);
    return quality_of(side.samples(), kEvent);
  };
  EXPECT_TRUE(quality(5e-6).timer_limited);
  EXPECT_FALSE(quality(50e-6).timer_limited);
  EXPECT_NEAR(*quality(50e-6).clock_hz, SimulatedDevice::kNominalHz, 1);
}

PairedResult pair_on(SimulatedDevice& device, const DeviceSampling& sampling, double a_s, double b_s) {
  DeviceSide a("a", {device.work(2, a_s / 2, a_s / 2)}, device, device, sampling),
      b("b", {device.work(1, b_s, b_s)}, device, device, sampling);
  PairedOptions options;
  options.clock_quality = ClockQuality{1e-9, kEvent};
  options.sample.maximum_iterations = sampling.most_iterations;
  options.sample.minimum_sample_s = 5e-4;
  return measure_pair(a.side(), b.side(), options, device);
}

TEST(PairsOnADevice, TheRatioIsThatOfTheKernels) {
  SimulatedDevice device;
  const PairedResult result = pair_on(device, held(), 80e-6, 20e-6);
  EXPECT_EQ(result.verdict, TimeVerdict::kFaster) << result.explanation();
  EXPECT_NEAR(result.ratio, 4, 0.02);
}

TEST(PairsOnADevice, AgainstItselfIsTheSameInEachRegime) {
  for (const Regime regime : {Regime::kHot, Regime::kCold}) {
    SimulatedDevice device;
    EXPECT_EQ(pair_on(device, held(regime), 40e-6, 40e-6).verdict, TimeVerdict::kSame) << name_of(regime);
  }
}

TEST(PairsOnADevice, AHiddenSynchronisationStopsTheComparison) {
  SimulatedDevice device;
  DeviceSide a("a", {device.work(1, 1e-5, 1e-5, true)}, device, device, held()),
      b("b", {device.work(1, 1e-5, 1e-5)}, device, device, held());
  EXPECT_THROW(measure_pair(a.side(), b.side(), {}, device), HoldExpired);
}

}  // namespace
}  // namespace twinbench
