// A watch notes the choices of its thread and demands a way; without one nothing is kept.
#include "src/common/choice.h"

#include <gtest/gtest.h>

#include "src/common/error.h"

namespace twinbench {
namespace {

TEST(Choice, IsToldToTheWatchOfItsThread) {
  announce_choice({"nobody listens", {"a", "b"}, "a", ""});
  EXPECT_FALSE(demanded_way().has_value());
  {
    const ChoiceWatch watch("b");
    EXPECT_EQ(demanded_way(), "b");
    announce_choice({"a product", {"a", "b"}, "b", "demanded"});
    ASSERT_EQ(watch.made().size(), 1u);
    EXPECT_EQ(watch.made().front().taken, "b");
    EXPECT_THROW(ChoiceWatch(), Error);
  }
  const ChoiceWatch watch;
  EXPECT_FALSE(demanded_way().has_value());
  EXPECT_TRUE(watch.made().empty());
}

}  // namespace
}  // namespace twinbench
