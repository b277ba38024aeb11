// What counts are excused from on a card and of a library, and that nothing else is.
#include "harness/counters/excused_counts.h"

#include <gtest/gtest.h>

namespace twinbench {
namespace {

Setting on(c10::DeviceType device) {
  Setting setting;
  setting.device = Device(c10::Device(device));
  return setting;
}
const Setting kCard = on(c10::DeviceType::CUDA), kHost = on(c10::DeviceType::CPU);

bool fits(const char* counter, std::int64_t measured, Variant variant, const Setting& setting, bool chose = false) {
  return fits_formula(counter, 10, measured, chose, variant, setting);
}

TEST(ExcusedCounts, ABaselineCopiesMoreOnACardAndNeverLess) {
  EXPECT_TRUE(fits("copies", 12, Variant::kBaseline, kCard));
  EXPECT_FALSE(fits("copies", 9, Variant::kBaseline, kCard));
  EXPECT_FALSE(fits("copies", 12, Variant::kBaseline, kHost));
  EXPECT_FALSE(fits("copies", 12, Variant::kOptimized, kCard));
  EXPECT_FALSE(fits("dispatches", 12, Variant::kBaseline, kCard));
  EXPECT_FALSE(fits("scalar_reads", 12, Variant::kBaseline, kCard));
}

TEST(ExcusedCounts, BytesOfBlocksAreNotCompared) {
  EXPECT_TRUE(fits("peak_bytes", 4, Variant::kLibrary, kCard));
  EXPECT_FALSE(fits("peak_bytes", 4, Variant::kLibrary, kHost));
  EXPECT_FALSE(fits("peak_bytes", 4, Variant::kOptimized, kCard));
}

TEST(ExcusedCounts, AChoiceMayNeedLess) {
  EXPECT_TRUE(fits("dispatches", 9, Variant::kOptimized, kCard, true));
  EXPECT_FALSE(fits("dispatches", 11, Variant::kOptimized, kCard, true));
}

TEST(ExcusedCounts, StepsAheadAreTheirsAloneWhoSaySo) {
  ComponentSpec polls;
  polls.runs_ahead = "a flag";
  CounterSnapshot one, other;
  other.launches_by_kernel["Step"] = 8;
  const auto same = [&](const ComponentSpec& spec, Variant variant, const Setting& setting) {
    return difference(comparable(one, spec, variant, setting), comparable(other, spec, variant, setting)).empty();
  };
  EXPECT_TRUE(same(polls, Variant::kOptimized, kCard));
  EXPECT_FALSE(same(ComponentSpec{}, Variant::kOptimized, kCard));
  EXPECT_FALSE(same(polls, Variant::kOptimized, kHost));
  other = {};
  other.allocations = 1;
  EXPECT_FALSE(same(polls, Variant::kOptimized, kCard));
}

TEST(ExcusedCounts, APeakOfThreadsIsAboutTheSame) {
  CounterSnapshot expected, measured;
  expected.peak_bytes = 19'013'888, measured.peak_bytes = 19'013'760;
  EXPECT_EQ(with_settled_peak(measured, expected), expected);
  measured.peak_bytes = 19'300'000;
  EXPECT_NE(with_settled_peak(measured, expected), expected);
  measured = expected;
  measured.allocations = 1;
  EXPECT_NE(with_settled_peak(measured, expected), expected);
}

TEST(ExcusedCounts, ALeakIsWhatEveryLifeHas) {
  EXPECT_EQ(leaked_in_both(512, 512), 512);
  EXPECT_EQ(leaked_in_both(512, -512), 0);
  EXPECT_EQ(leaked_in_both(-512, -1024), -1024);
  EXPECT_EQ(leaked_in_both(0, 512), 0);
}

}  // namespace
}  // namespace twinbench
