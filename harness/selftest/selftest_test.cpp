// Every planted twin gets its expected verdict: one test per case, named after it.
#include "harness/selftest/selftest.h"

#include <gtest/gtest.h>

#include <set>

namespace twinbench {
namespace {

class Selftest : public testing::TestWithParam<std::size_t> {};

TEST_P(Selftest, GetsItsExpectedVerdict) {
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
  EXPECT_GE(wrong, 16u);
  EXPECT_GE(correct, 8u);
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
                            "answers"})
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
