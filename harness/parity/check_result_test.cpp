// The first reason of a failing check decides which kind of failure it is, whoever failed it first.
#include "harness/parity/check_result.h"

#include <gtest/gtest.h>

#include <limits>

namespace twinbench {
namespace {

TEST(CheckResult, AComparisonThatFailsIsMarked) {
  CheckResult result;
  EXPECT_FALSE(result.in_comparison);
  result.fail_comparison("output 'y': too far");
  EXPECT_EQ(result.verdict, CheckVerdict::kFail);
  EXPECT_EQ(result.reason, "output 'y': too far");
  EXPECT_TRUE(result.in_comparison);
}

TEST(CheckResult, TheFirstReasonDecides) {
  CheckResult written;
  written.fail("input 'x' was changed");
  written.fail_comparison("output 'y': too far");
  EXPECT_EQ(written.reason, "input 'x' was changed");
  EXPECT_FALSE(written.in_comparison) << "a comparison that fails later excuses nothing";

  CheckResult compared;
  compared.fail_comparison("output 'y': too far");
  compared.fail("output 'z' is missing");
  EXPECT_EQ(compared.reason, "output 'y': too far");
  EXPECT_TRUE(compared.in_comparison);
}

TEST(CheckResult, AFailureInsideAnotherCheckKeepsItsKind) {
  CheckResult inner, outer;
  inner.fail_comparison("output 'y': too far");
  outer.fail_as(inner, "with 2 threads");
  EXPECT_EQ(outer.verdict, CheckVerdict::kFail);
  EXPECT_EQ(outer.reason, "with 2 threads: output 'y': too far");
  EXPECT_TRUE(outer.in_comparison);

  CheckResult missing, with_missing;
  missing.fail("output 'z' is missing");
  with_missing.fail_as(missing, "with 2 threads");
  EXPECT_EQ(with_missing.reason, "with 2 threads: output 'z' is missing");
  EXPECT_FALSE(with_missing.in_comparison);
}

TEST(CheckResult, AFailureInsideAnotherCheckDoesNotReplaceItsOwn) {
  CheckResult inner, outer;
  inner.fail_comparison("output 'y': too far");
  outer.fail("input 'x' was changed");
  outer.fail_as(inner, "with 2 threads");
  EXPECT_EQ(outer.reason, "input 'x' was changed");
  EXPECT_FALSE(outer.in_comparison);
}

TEST(CheckResult, ARowOfTheRecordHasNoInfinity) {
  CheckResult result;
  result.check = "oracle";
  OutputRow row;
  row.name = "y";
  row.comparison.worst_ratio = std::numeric_limits<double>::infinity();
  result.outputs.push_back(row);
  result.fail("output 'y': Inf");
  const auto json = to_json("a.b/optimized/cpu/fp32/tiny", result);
  EXPECT_TRUE(json["outputs"][0]["worst_ratio"].is_null());
  EXPECT_EQ(json["verdict"], "fail");
  EXPECT_EQ(json["reason"], "output 'y': Inf");
}

}  // namespace
}  // namespace twinbench
