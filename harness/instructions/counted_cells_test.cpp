// One small cell of each way that options send a variant; of one way the one with more work, up to what is countable;
// of ways of what is written in operators the fewest that hold each option's each value.
#include "harness/instructions/counted_cells.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace twinbench {
namespace {

class CountedCells : public ::testing::Test {
 protected:
  CountedCells() {
    spec_.name = "counted";
    spec_.dtypes = {Dtype::kFp32, Dtype::kBf16};
    spec_.signature.options = {switch_option("gate", false, ""), real_option("noise", 0, 0, 1, ""),
                               choice_option("spawn", {"none", "one", "many"}, "none", ""),
                               of_inputs(switch_option("ties", false, ""))};
    spec_.cost = [](const Setting& setting) { return Cost{static_cast<double>(setting.size("rows")), 0}; };
  }

  void add(const std::string& name, std::int64_t rows, Options options = {}, Pass pass = Pass::kForward) {
    Case one;
    one.name = name, one.sizes = {{"rows", rows}}, one.options = std::move(options), one.pass = pass;
    spec_.cases.push_back(one);
  }

  std::set<std::string> counted(Dtype dtype = Dtype::kFp32, Device device = Device(),
                                Variant variant = Variant::kOptimized) {
    component_.spec = spec_;
    std::vector<Cell> cells;
    for (const auto& one : component_.spec.cases) cells.push_back({&component_, variant, device, dtype, &one});
    std::set<std::string> names;
    for (const auto& cell : counted_by_instructions(cells)) names.insert(cell.input_case->name);
    return names;
  }

  ComponentSpec spec_;
  Component component_;
};

using Names = std::set<std::string>;

TEST_F(CountedCells, OfOneWayTheOneWithMostWorkThatIsCountable) {
  add("few", 10), add("more", 4'000'000), add("many", 4'000'001), add("fewest", 1);
  EXPECT_EQ(counted(), Names{"more"});
}

TEST_F(CountedCells, WhereAllAreTooMuchTheOneWithLeast) {
  add("many", 5'000'000), add("less", 4'500'000), add("most", 6'000'000);
  EXPECT_EQ(counted(), Names{"less"});
}

TEST_F(CountedCells, EachSwitchAndEachNumberThatIsNotZeroIsAWayOfItsOwn) {
  add("plain", 3), add("gated", 2, {{"gate", 1}}), add("noisy", 2, {{"noise", 0.1}});
  add("noisier", 1, {{"noise", 0.3}}), add("default", 1, {{"gate", 0}});
  EXPECT_EQ(counted(), (Names{"plain", "gated", "noisy"}));
}

TEST_F(CountedCells, OfABaselineEachValueOfEachOptionIsCountedAndNotEachPairOfThem) {
  add("plain", 3), add("gated", 2, {{"gate", 1}}), add("noisy", 2, {{"noise", 0.1}});
  add("both", 1, {{"gate", 1}, {"noise", 0.1}});
  EXPECT_EQ(counted(Dtype::kFp32, Device(), Variant::kBaseline), (Names{"plain", "both"}));
  EXPECT_EQ(counted(Dtype::kFp32, Device(), Variant::kLibrary), (Names{"plain", "both"}));
  EXPECT_EQ(counted(), (Names{"plain", "gated", "noisy", "both"}));
}

TEST_F(CountedCells, ABaselineWithoutOptionsIsCountedOnceAndInEachPass) {
  spec_.signature.options.clear();
  add("few", 1), add("plain", 3), add("back", 1, {}, Pass::kBackward);
  EXPECT_EQ(counted(Dtype::kFp32, Device(), Variant::kBaseline), (Names{"plain", "back"}));
}

TEST_F(CountedCells, EachChoiceIsAWayOfItsOwn) {
  add("plain", 3), add("one", 2, {{"spawn", 1}}), add("many", 2, {{"spawn", 2}});
  EXPECT_EQ(counted(), (Names{"plain", "one", "many"}));
  EXPECT_EQ(counted(Dtype::kFp32, Device(), Variant::kBaseline), (Names{"plain", "one", "many"}));
}

TEST_F(CountedCells, OptionsOfTheInputsAreNoWay) {
  add("plain", 3), add("ties", 4, {{"ties", 1}});
  EXPECT_EQ(counted(), Names{"ties"});
}

TEST_F(CountedCells, BothPassesAreCounted) {
  add("plain", 3), add("back", 1, {}, Pass::kBackward);
  EXPECT_EQ(counted(), (Names{"plain", "back"}));
}

TEST_F(CountedCells, InAnotherNumericModeWhatIsWrittenInOperatorsIsCountedOnce) {
  add("plain", 3), add("gated", 2, {{"gate", 1}});
  EXPECT_EQ(counted(Dtype::kBf16), (Names{"plain", "gated"}));
  EXPECT_EQ(counted(Dtype::kBf16, Device(), Variant::kBaseline), Names{"plain"});
  EXPECT_EQ(counted(Dtype::kBf16, Device(), Variant::kLibrary), Names{"plain"});
}

TEST_F(CountedCells, OfABaselineLessIsCountable) {
  add("few", 10), add("more", 100'000), add("many", 100'001);
  EXPECT_EQ(counted(Dtype::kFp32, Device(), Variant::kBaseline), Names{"more"});
  EXPECT_EQ(counted(Dtype::kFp32, Device(), Variant::kLibrary), Names{"more"});
  EXPECT_EQ(counted(), Names{"many"});
}

TEST_F(CountedCells, WhereNothingIsToBeDoneNothingIsCounted) {
  add("plain", 3), add("empty", 4);
  spec_.cases.back().degenerate = true;
  EXPECT_EQ(counted(), Names{"plain"});
}

TEST_F(CountedCells, TimedCasesSpecimensAndOtherDevicesAreNotCounted) {
  add("plain", 3), add("specimen", 4);
  spec_.cases.back().specimen = "gate";
  add("timed", 5);
  spec_.cases.back().timed = true;
  EXPECT_EQ(counted(), Names{"plain"});
  EXPECT_EQ(counted(Dtype::kFp32, Device::simt()), Names{});
}

TEST_F(CountedCells, OfEachBaselineAndPassTheTimedOneWithLeastWork) {
  add("small", 3), add("train", 6), add("unit", 5), add("stress", 7), add("back", 9, {}, Pass::kBackward);
  for (std::size_t i = 1; i < spec_.cases.size(); ++i) spec_.cases[i].timed = true;
  const auto timed = [this](Variant variant, Dtype dtype, Device device) {
    component_.spec = spec_;
    std::vector<Cell> cells;
    for (const auto& one : component_.spec.cases) cells.push_back({&component_, variant, device, dtype, &one});
    Names names;
    for (const auto& cell : timed_baselines(cells)) names.insert(cell.input_case->name);
    return names;
  };
  EXPECT_EQ(timed(Variant::kBaseline, Dtype::kFp32, Device()), (Names{"unit", "back"}));
  EXPECT_EQ(timed(Variant::kOptimized, Dtype::kFp32, Device()), Names{});
  EXPECT_EQ(timed(Variant::kBaseline, Dtype::kBf16, Device()), Names{});
  EXPECT_EQ(timed(Variant::kBaseline, Dtype::kFp32, c10::DeviceType::CUDA), Names{});
}

}  // namespace
}  // namespace twinbench
