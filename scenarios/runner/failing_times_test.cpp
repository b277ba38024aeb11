// A scenario that fails by times alone runs again; what anything else fails by is not asked twice.
#include <gtest/gtest.h>

#include "scenarios/runner/fake_run.h"

namespace twinbench::fake {
namespace {

// A kind whose times are too long in its first runs, and whose count is what a test says.
int runs_so_far = 0, slow_runs = 0;
double reads = 0;

Findings slow_at_first(const Trial&) {
  ++runs_so_far;
  Findings findings;
  findings.measures["speedup.lower"] = {runs_so_far <= slow_runs ? 0.5 : 2, "", true};
  for (const char* const name : {"parity.worst_ratio", "optimized.non_finite"}) findings.measures[name] = {0.0, ""};
  findings.measures["baseline.scalar_reads"] = {1.0, ""};
  findings.measures["optimized.scalar_reads"] = {reads, ""};
  return findings;
}

nlohmann::json row_of(int slow, double optimized_reads = 0) {
  runs_so_far = 0, slow_runs = slow, reads = optimized_reads;
  Catalogue all = fake_catalogue();
  for (Experiment& kind : all.experiments)
    if (kind.name == "speed") kind.run = slow_at_first;
  const auto config =
      read(scenario("speed", "pairs: 8\nseconds: 1",
                    {"measure: baseline.scalar_reads, equals: 1", "measure: optimized.scalar_reads, equals: 0",
                     "measure: parity.worst_ratio, at_most: 1", "measure: optimized.non_finite, equals: 0",
                     "measure: speedup.lower, at_least: 1"}),
           all);
  return run_scenario(config, all, c10::Device(c10::DeviceType::CPU), true);
}

TEST(FailingTimes, AreShownAgain) {
  const auto passes = row_of(0);
  EXPECT_EQ(verdict(passes), "pass");
  EXPECT_EQ(runs_so_far, 1);
  EXPECT_FALSE(passes.contains("failed_before"));
  const auto moment = row_of(2);
  EXPECT_EQ(verdict(moment), "pass");
  EXPECT_EQ(moment["failed_before"], (nlohmann::json{"speedup.lower >= 1: 0.5", "speedup.lower >= 1: 0.5"}));
  const auto slow = row_of(100);
  EXPECT_EQ(verdict(slow), "speedup.lower >= 1");
  EXPECT_EQ(runs_so_far, kRunsOfFailingTimes);
  EXPECT_EQ(slow["failed_before"].size(), 2u);
}

TEST(FailingTimes, AreNotAskedAgainWhereACountFails) {
  EXPECT_EQ(verdict(row_of(1, 3)), "optimized.scalar_reads = 0; speedup.lower >= 1");
  EXPECT_EQ(runs_so_far, 1);
  EXPECT_EQ(verdict(row_of(0, 3)), "optimized.scalar_reads = 0");
  EXPECT_EQ(runs_so_far, 1);
}

}  // namespace
}  // namespace twinbench::fake
