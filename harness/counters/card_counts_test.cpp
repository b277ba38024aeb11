// What counts on a card are excused from, and that nothing else is, nor on the host.
#include "harness/counters/card_counts.h"

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

TEST(CardCounts, ABaselineCopiesMoreOnACardAndNeverLess) {
  EXPECT_TRUE(fits("copies", 12, Variant::kBaseline, kCard));
  EXPECT_FALSE(fits("copies", 9, Variant::kBaseline, kCard));
  EXPECT_FALSE(fits("copies", 12, Variant::kBaseline, kHost));
  EXPECT_FALSE(fits("copies", 12, Variant::kOptimized, kCard));
  EXPECT_FALSE(fits("dispatches", 12, Variant::kBaseline, kCard));
  EXPECT_FALSE(fits("scalar_reads", 12, Variant::kBaseline, kCard));
}

TEST(CardCounts, BytesOfBlocksAreNotCompared) {
  EXPECT_TRUE(fits("peak_bytes", 4, Variant::kLibrary, kCard));
  EXPECT_FALSE(fits("peak_bytes", 4, Variant::kLibrary, kHost));
  EXPECT_FALSE(fits("peak_bytes", 4, Variant::kOptimized, kCard));
}

TEST(CardCounts, AChoiceMayNeedLess) {
  EXPECT_TRUE(fits("dispatches", 9, Variant::kOptimized, kCard, true));
  EXPECT_FALSE(fits("dispatches", 11, Variant::kOptimized, kCard, true));
}

TEST(CardCounts, StepsAheadAreTheirsAloneWhoSaySo) {
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

TEST(CardCounts, ALeakIsWhatEveryLifeHas) {
  EXPECT_EQ(leaked_in_both(512, 512), 512);
  EXPECT_EQ(leaked_in_both(512, -512), 0);
  EXPECT_EQ(leaked_in_both(-512, -1024), -1024);
  EXPECT_EQ(leaked_in_both(0, 512), 0);
}

}  // namespace
}  // namespace twinbench
