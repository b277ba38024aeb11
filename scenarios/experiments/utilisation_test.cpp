// Kind `utilisation` on a run that has a clock of its own, and the rate of kind `sweep`: each catches what it is for.
#include <gtest/gtest.h>

#include "scenarios/runner/fake_run.h"

namespace twinbench::fake {
namespace {

const std::vector<std::string> kBusy = {
    "measure: baseline.busy_mean, at_most: 0.3", "measure: optimized.busy_mean, at_least: 0.6",
    "measure: optimized.busy_spread, at_most: 0.1", "measure: optimized.non_finite, equals: 0"};
const std::string kUtilisation = scenario("utilisation", "windows: 8\nsteps_per_window: 2\nwarm_up_windows: 2", kBusy);

TEST(Utilisation, PassesADeviceThatIsBusyInEveryWindow) {
  const auto row = run(kUtilisation, {.busy_share = 0.8});
  EXPECT_EQ(verdict(row), "pass") << row.dump(1);
  ASSERT_EQ(row["variants"].size(), 2u);
  EXPECT_EQ(row["variants"][1]["timelines"][0]["values"].size(), 6u) << "two windows warm up";
}

TEST(Utilisation, CatchesADeviceThatMostlyWaits) {
  EXPECT_EQ(verdict(run(kUtilisation, {.busy_share = 0.5})), "optimized.busy_mean >= 0.6");
}

TEST(Utilisation, CatchesOneIdleWindow) {
  // Half of the sixth window: the mean stays above its limit.
  EXPECT_EQ(verdict(run(kUtilisation, {.busy_share = 0.8, .idle_step = 12})), "optimized.busy_spread <= 0.1");
}

TEST(Utilisation, WhatWarmsUpIsNotJudged) {
  EXPECT_EQ(verdict(run(kUtilisation, {.busy_share = 0.8, .idle_step = 3})), "pass");
}

TEST(Utilisation, WithoutADeviceNothingIsRunAndNothingPasses) {
  auto text = kUtilisation;
  text.replace(text.find("energy_flow.fake"), 16, "energy_flow.stateless");
  const auto row = run(text, {.busy_share = 0.8});
  EXPECT_EQ(row["verdict"], "skip");
  EXPECT_TRUE(row["variants"].empty());
  for (const auto& criterion : row["criteria"]) {
    EXPECT_EQ(criterion["verdict"], "skip");
    EXPECT_NE(criterion["reason"].get<std::string>().find("no GPU"), std::string::npos);
  }
}

TEST(Utilisation, ABaselineMayHaveFewerWindowsAllOfThemJudged) {
  auto text = kUtilisation;
  text.replace(text.find("windows: 8"), 10, "baseline_windows: 1\nwindows: 8");
  const auto row = run(text, {.busy_share = 0.8});
  EXPECT_EQ(verdict(row), "pass") << row.dump(1);
  EXPECT_EQ(row["variants"][0]["timelines"][0]["values"].size(), 1u);
  EXPECT_EQ(row["variants"][1]["timelines"][0]["values"].size(), 6u);
}

TEST(Utilisation, ASpreadNeedsWindows) {
  auto text = kUtilisation;
  text.replace(text.find("windows: 8"), 10, "windows: 3");
  EXPECT_THROW(run(text), Error);
}

TEST(Sweep, TellsARateThatFalls) {
  const auto text =
      scenario("sweep", "over: items\nvalues: [64, 512, 2048]\nrepeats: 3",
               {"measure: optimized.rate_falls, equals: 0", "measure: baseline.exponent.scalar_reads, at_least: 0.9",
                "measure: optimized.exponent.scalar_reads, equals: 0", "measure: parity.worst_ratio, at_most: 1"});
  EXPECT_EQ(verdict(run(text)), "pass");
  EXPECT_EQ(verdict(run(text, {.slows_down = true})), "optimized.rate_falls = 0");
}

}  // namespace
}  // namespace twinbench::fake
