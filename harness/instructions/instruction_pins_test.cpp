// What counts as a change of instructions, and what as padding.
#include "harness/instructions/instruction_pins.h"

#include <gtest/gtest.h>

namespace twinbench {
namespace {

TEST(InstructionPins, AQuarterOfAPercentIsTheSameAndOnePercentIsNot) {
  const InstructionCounts pinned{1'000'000, 200'000};
  EXPECT_EQ(instruction_change("cell", &pinned, {1'002'400, 199'600}), "");
  EXPECT_NE(instruction_change("cell", &pinned, {1'010'000, 200'000}).find("+1.00 %"), std::string::npos);
  EXPECT_NE(instruction_change("cell", &pinned, {990'000, 200'000}), "") << "less work is pinned on purpose, too";
  EXPECT_NE(instruction_change("cell", &pinned, {1'000'000, 204'000}).find("outside operators"), std::string::npos);
  EXPECT_NE(instruction_change("cell", nullptr, pinned).find("not pinned"), std::string::npos);
}

TEST(InstructionPins, ABaselineThatIsMostlyNoOperatorsIsPadded) {
  EXPECT_EQ(padding_of({1'000'000, 470'000}), "");
  EXPECT_NE(padding_of({1'000'000, 510'000}).find("padded"), std::string::npos);
  EXPECT_EQ(padding_of({35'000, 36'000}), "");
}

}  // namespace
}  // namespace twinbench
