// What counts as a change of instructions, and what as padding.
#include "harness/instructions/instruction_pins.h"

#include <gtest/gtest.h>

namespace twinbench {
namespace {

TEST(InstructionPins, HalfAPercentIsTheSameAndTwoPercentAreNot) {
  EXPECT_EQ(instruction_change("cell", 1'000'000, 1'005'000), "");
  EXPECT_NE(instruction_change("cell", 1'000'000, 1'020'000).find("+2.00 %"), std::string::npos);
  EXPECT_NE(instruction_change("cell", 1'000'000, 980'000), "") << "less work is pinned on purpose, too";
  EXPECT_NE(instruction_change("cell", 1'000, 1'080), "") << "of few instructions, too";
  EXPECT_NE(instruction_change("cell", std::nullopt, 1'000'000).find("not pinned"), std::string::npos);
}

TEST(InstructionPins, ABaselineThatIsMostlyNoOperatorsIsPadded) {
  EXPECT_EQ(padding_of({1'000'000, 290'000}), "");
  EXPECT_NE(padding_of({1'000'000, 310'000}).find("padded"), std::string::npos);
  EXPECT_NE(padding_of({201'000, 62'000}), "");
  EXPECT_EQ(padding_of({36'000, 35'000}), "");
}

TEST(InstructionPins, ARunThatIsCheaperAfterItselfRemembers) {
  EXPECT_EQ(remembering_of({1'000'000, 0}), "") << "nothing changes under a set-up";
  EXPECT_EQ(remembering_of({900'000, 0, 1'120'000, 1'000'000}), "");
  EXPECT_EQ(remembering_of({2'000'000, 0, 400'000, 1'000'000}), "") << "it is those after itself that are timed";
  EXPECT_NE(remembering_of({1'000'000, 0, 1'300'000, 1'000'000}).find("keeps what it has computed"), std::string::npos)
      << "1.3 times as fast is not little";
  EXPECT_NE(remembering_of({1'000'000, 0, 1'180'000, 1'000'000}), "");
  EXPECT_EQ(remembering_of({8'000, 0, 58'000, 8'000}), "");
}

}  // namespace
}  // namespace twinbench
