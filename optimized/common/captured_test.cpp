// A refused capture: tried once, said, and not passed over where it is demanded.
#define TWINBENCH_SIMT
#include "optimized/common/captured.h"

#include <gtest/gtest.h>

namespace twinbench {
namespace {

TEST(Captured, ARefusalIsSaidAndFallsBackOnce) {
  int tries = 0;
  const ChoiceWatch watch;
  const auto refuses = [&] {
    ++tries;
    throw kernels::CaptureRefused("stream is legacy");
  };
  EXPECT_FALSE(record_graphs("steps of 7 flows", false, refuses));
  EXPECT_EQ(tries, 1);
  ASSERT_EQ(watch.made().size(), 1u);
  EXPECT_EQ(watch.made()[0].of, "steps of 7 flows");
  EXPECT_EQ(watch.made()[0].taken, "eager");
  EXPECT_NE(watch.made()[0].why.find("stream is legacy"), std::string::npos) << watch.made()[0].why;
}

TEST(Captured, ADemandIsRefusedAloudAndOtherErrorsPass) {
  const ChoiceWatch watch;
  EXPECT_THROW(record_graphs("steps", true, [] { throw kernels::CaptureRefused("refused"); }), kernels::CaptureRefused);
  EXPECT_THROW(record_graphs("steps", false, [] { throw std::bad_alloc(); }), std::bad_alloc);
  EXPECT_TRUE(record_graphs("steps", true, [] {}));
  EXPECT_TRUE(watch.made().empty());
}

}  // namespace
}  // namespace twinbench
