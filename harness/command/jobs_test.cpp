// The limits that a job gets: what it needs, unless the user said what it may take.
#include "harness/command/jobs.h"

#include <gtest/gtest.h>

namespace twinbench {
namespace {

double limit_of(const CommandOptions& options, double needed_s) {
  return limited_job(options, "a", needed_s, nullptr).limits.wall_s;
}

TEST(LimitedJob, HasWhatItNeedsWhereThatIsMoreThanTheLimit) {
  const CommandOptions options;
  EXPECT_EQ(limit_of(options, 0), options.time_limit_s);
  EXPECT_EQ(limit_of(options, options.time_limit_s / 2), options.time_limit_s);
  EXPECT_EQ(limit_of(options, 10 * options.time_limit_s), 10 * options.time_limit_s);
}

TEST(LimitedJob, HasNoMoreThanTheUserGave) {
  CommandOptions options;
  options.time_limit_given = true;
  options.time_limit_s = 7;
  EXPECT_EQ(limit_of(options, 0), 7);
  EXPECT_EQ(limit_of(options, 1000), 7);
  const Batch batch = limited_batch(options, "b", {"x", "y"}, nullptr);
  EXPECT_EQ(batch.limits.part_s, 7);
  EXPECT_EQ(batch.limits.wall_s, 14);
}

}  // namespace
}  // namespace twinbench
