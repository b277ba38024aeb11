// What counts as a change of instructions, and what as padding.
#include "harness/instructions/instruction_pins.h"

#include <gtest/gtest.h>

namespace twinbench {
namespace {

TEST(InstructionPins, HalfAPercentIsTheSameAndTwoPercentAreNot) {
  const InstructionCounts pinned{1'000'000, 200'000};
  EXPECT_EQ(instruction_change("cell", &pinned, {1'005'000, 198'000}), "");
  EXPECT_NE(instruction_change("cell", &pinned, {1'020'000, 200'000}).find("+2.00 %"), std::string::npos);
  EXPECT_NE(instruction_change("cell", &pinned, {980'000, 200'000}), "") << "less work is pinned on purpose, too";
  EXPECT_NE(instruction_change("cell", &pinned, {1'000'000, 212'000}).find("outside operators"), std::string::npos);
  EXPECT_NE(instruction_change("cell", nullptr, pinned).find("not pinned"), std::string::npos);
}

TEST(InstructionPins, ABaselineThatIsMostlyNoOperatorsIsPadded) {
  EXPECT_EQ(padding_of({1'000'000, 470'000}, false), "");
  EXPECT_NE(padding_of({1'000'000, 510'000}, false).find("padded"), std::string::npos);
  EXPECT_EQ(padding_of({1'000'000, 560'000}, true), "");
  EXPECT_NE(padding_of({1'000'000, 610'000}, true).find("padded"), std::string::npos);
  EXPECT_EQ(padding_of({35'000, 36'000}, false), "");
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
