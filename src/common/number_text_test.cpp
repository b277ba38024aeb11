// Numbers in messages are those that were given.
#include "src/common/number_text.h"

#include <gtest/gtest.h>

#include <limits>

namespace twinbench {
namespace {

TEST(NumberText, SaysTheNumberItself) {
  EXPECT_EQ(number_text(9007199254740992), "9007199254740992");
  EXPECT_EQ(number_text(-1e6), "-1000000");
  EXPECT_EQ(number_text(0.1), "0.1");
  EXPECT_EQ(number_text(0.9999999999999999), "0.9999999999999999");
  EXPECT_EQ(number_text(1e30), "1e+30");
  EXPECT_EQ(number_text(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_EQ(number_text(std::numeric_limits<double>::quiet_NaN()), "nan");
}

}  // namespace
}  // namespace twinbench
