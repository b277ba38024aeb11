// Every planted twin gets its expected verdict: one test per case, named after it.
#include "harness/selftest/selftest.h"

#include <gtest/gtest.h>

#include <set>

namespace twinbench {
namespace {

// First, in a process without a second thread: planted jobs fork.
TEST(PlantedJobs, GetTheirExpectedVerdict) {
  std::size_t jobs = 0;
  for (const auto& planted : selftest_cases()) {
    if (!planted.job) continue;
    const SelftestRow row = run(planted);
    EXPECT_EQ(row.verdict, "pass") << row.name << ": " << row.reason;
    ++jobs;
  }
  EXPECT_GE(jobs, 8u);
}

class Selftest : public testing::TestWithParam<std::size_t> {};

TEST_P(Selftest, GetsItsExpectedVerdict) {
  if (selftest_cases()[GetParam()].job) GTEST_SKIP() << "judged by PlantedJobs, before any thread";
  const SelftestRow row = run(selftest_cases()[GetParam()]);
  std::printf("%-28s expected %-20s got %-40s %s\n", row.name.c_str(), row.expected.c_str(), row.got.c_str(),
              row.verdict.c_str());
  if (row.verdict == "skip") GTEST_SKIP() << row.reason;
  EXPECT_EQ(row.verdict, "pass") << row.reason;
}

INSTANTIATE_TEST_SUITE_P(Cases, Selftest, testing::Range<std::size_t>(0, selftest_cases().size()),
                         [](const auto& info) { return selftest_cases()[info.param].name; });

TEST(SelftestList, HasEnoughOfBothKindsAndUsesEveryCheck) {
  std::size_t wrong = 0, correct = 0;
  std::set<std::string> names, catching;
  for (const auto& one : selftest_cases()) {
    ++(one.wrong() ? wrong : correct);
    EXPECT_TRUE(names.insert(one.name).second) << one.name << " twice";
    if (one.wrong()) catching.insert(one.caught_by);
  }
  EXPECT_GE(wrong, 90u);
  EXPECT_GE(correct, 45u);
  for (const char* check : {"oracle",
                            "vacuity",
                            "determinism",
                            "input_mutation",
                            "guard_bands",
                            "non_contiguous",
                            "stale",
                            "batch_invariance",
                            "poisoned_neighbour",
                            "gradient",
                            "invariant",
                            "golden",
                            "relation",
                            "refusal",
                            "specimen",
                            "proof",
                            "growth",
                            "leak",
                            "pins",
                            "time",
                            "answers",
                            "late",
                            "threads",
                            "instances",
                            "sensitivity",
                            "precision",
                            "cost",
                            "global_state",
                            "outlives",
                            "sleeps",
                            "clock",
                            "no_gain",
                            "failed",
                            "protocol_error",
                            "timeout",
                            "crashed"})
    EXPECT_TRUE(catching.count(check)) << "no planted twin is caught by " << check;
}

TEST(SelftestRun, AnUncaughtWrongTwinFails) {
  SelftestCase blind = selftest_cases().front();
  ASSERT_EQ(blind.name, "zeros");
  blind.caught_by = "determinism";  // zeros are perfectly deterministic
  EXPECT_EQ(run(blind).verdict, "fail");
  blind.caught_by = "";  // and no correct control
  EXPECT_EQ(run(blind).verdict, "fail");
}

}  // namespace
}  // namespace twinbench
