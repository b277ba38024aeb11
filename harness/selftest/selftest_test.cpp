// The list of planted twins. Their verdicts are the test selftest.harness: a process each, since some change theirs.
#include "harness/selftest/selftest.h"

#include <gtest/gtest.h>

#include <set>

namespace twinbench {
namespace {

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
                            "ways",
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
                            "carried",
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
