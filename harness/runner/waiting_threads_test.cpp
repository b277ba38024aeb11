// Every environment a policy can meet: what is set, what is taken away, what is reported.
#include "harness/runner/waiting_threads.h"

#include <gtest/gtest.h>

#include <map>

#include "src/common/error.h"

namespace twinbench {
namespace {

using Variables = std::map<std::string, std::string>;

WaitingThreads plan(const Variables& variables) {
  return plan_waiting_threads([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(WaitingThreads, SleepUnlessAskedOtherwise) {
  const auto nothing_set = plan({});
  EXPECT_EQ(nothing_set.policy, "passive");
  ASSERT_EQ(nothing_set.changes.size(), 1u);
  EXPECT_EQ(nothing_set.changes[0].first, "OMP_WAIT_POLICY");
  EXPECT_EQ(nothing_set.changes[0].second, "PASSIVE");
  EXPECT_EQ(nothing_set.overridden, "");
  EXPECT_TRUE(plan({{"OMP_WAIT_POLICY", "passive"}}).changes.empty());
  EXPECT_EQ(plan({{"TWINBENCH_WAIT_POLICY", ""}}).policy, "passive");
}

TEST(WaitingThreads, AnEnvironmentThatWantsOtherwiseIsOverriddenAndReported) {
  const auto spinning = plan({{"OMP_WAIT_POLICY", "ACTIVE"}, {"GOMP_SPINCOUNT", "infinite"}});
  EXPECT_EQ(spinning.overridden, "OMP_WAIT_POLICY=ACTIVE GOMP_SPINCOUNT=infinite");
  ASSERT_EQ(spinning.changes.size(), 2u);
  EXPECT_EQ(spinning.changes[1].first, "GOMP_SPINCOUNT");
  EXPECT_FALSE(spinning.changes[1].second.has_value());
  // A count beside the right policy would still win over it.
  EXPECT_EQ(plan({{"OMP_WAIT_POLICY", "PASSIVE"}, {"GOMP_SPINCOUNT", "9"}}).overridden, "GOMP_SPINCOUNT=9");
}

TEST(WaitingThreads, TheProjectsOwnVariableDecides) {
  const auto active = plan({{"TWINBENCH_WAIT_POLICY", "active"}, {"OMP_WAIT_POLICY", "PASSIVE"}});
  EXPECT_EQ(active.policy, "active");
  ASSERT_EQ(active.changes.size(), 1u);
  EXPECT_EQ(active.changes[0].second, "ACTIVE");
  const auto left = plan({{"TWINBENCH_WAIT_POLICY", "environment"}, {"GOMP_SPINCOUNT", "9"}});
  EXPECT_EQ(left.policy, "environment");
  EXPECT_TRUE(left.changes.empty());
}

// After its changes an environment asks for none: the program starts a second time at most.
TEST(WaitingThreads, ChangesSettle) {
  for (const char* policy : {"", "passive", "active", "environment"})
    for (const char* present : {"ACTIVE", "PASSIVE", "nonsense"}) {
      Variables variables{{"TWINBENCH_WAIT_POLICY", policy}, {"OMP_WAIT_POLICY", present}, {"GOMP_SPINCOUNT", "1"}};
      for (const auto& [name, value] : plan(variables).changes) {
        if (value)
          variables[name] = *value;
        else
          variables.erase(name);
      }
      EXPECT_TRUE(plan(variables).changes.empty()) << policy << " " << present;
    }
}

TEST(WaitingThreads, AnUnknownPolicyIsATypedError) {
  try {
    plan({{"TWINBENCH_WAIT_POLICY", "spin"}});
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadArgument);
    EXPECT_EQ(error.field(), "TWINBENCH_WAIT_POLICY");
    EXPECT_EQ(error.value(), "spin");
  }
}

}  // namespace
}  // namespace twinbench
