// The identity wall = host x launch gap x kernel, and what makes a factor absent.
#include "harness/timing/decomposition.h"

#include <gtest/gtest.h>

namespace twinbench {
namespace {

TEST(Decomposition, TheFactorsMultiplyToTheWallRatio) {
  const MeasuredTimes from{10e-3, 8e-3, 2e-3}, to{1e-3, 0.5e-3, 0.4e-3};
  const Decomposition parts = decompose(from, to);
  EXPECT_EQ(parts.reason, "");
  EXPECT_DOUBLE_EQ(*parts.wall, 10);
  EXPECT_DOUBLE_EQ(*parts.host, 1.25 / 2);
  EXPECT_DOUBLE_EQ(*parts.launch_gap, 4 / 1.25);
  EXPECT_DOUBLE_EQ(*parts.kernel, 5);
  EXPECT_DOUBLE_EQ(*parts.host * *parts.launch_gap * *parts.kernel, *parts.wall);
}

TEST(Decomposition, AgainstItselfIsOneThroughout) {
  const MeasuredTimes times{3e-3, 2e-3, 1e-3};
  const Decomposition parts = decompose(times, times);
  EXPECT_DOUBLE_EQ(*parts.host, 1);
  EXPECT_DOUBLE_EQ(*parts.launch_gap, 1);
  EXPECT_DOUBLE_EQ(*parts.kernel, 1);
}

TEST(Decomposition, UnknownBusyLeavesTheHostFactorAndAReason) {
  const Decomposition parts = decompose({10e-3, 8e-3, std::nullopt}, {1e-3, 0.5e-3, 0.4e-3});
  EXPECT_TRUE(parts.host);
  EXPECT_FALSE(parts.launch_gap);
  EXPECT_FALSE(parts.kernel);
  EXPECT_NE(parts.reason.find("from: the busy time is unknown"), std::string::npos);
}

TEST(Decomposition, ImpossibleTimesGiveNoFactors) {
  const MeasuredTimes sound{1e-3, 0.5e-3, 0.4e-3};
  EXPECT_NE(decompose({1e-3, 2e-3, 0.5e-3}, sound).reason.find("longer than the wall"), std::string::npos);
  EXPECT_NE(decompose(sound, {1e-3, 0.5e-3, 0.9e-3}).reason.find("another stream"), std::string::npos);
  EXPECT_NE(decompose(sound, {1e-3, 0.5e-3, 0.0}).reason.find("never busy"), std::string::npos);
  EXPECT_FALSE(decompose({0, 0, std::nullopt}, sound).wall);
  EXPECT_FALSE(decompose({1e-3, 2e-3, 0.5e-3}, sound).host);
}

}  // namespace
}  // namespace twinbench
