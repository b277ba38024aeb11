// Exceptions hold for the variants and cases that are named, and on a card alone; every check they set aside exists.
#include "harness/parity/card_exceptions.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "harness/parity/parity.h"

namespace twinbench {
namespace {

ComponentSpec spec() {
  ComponentSpec spec;
  spec.unordered_on_card = {{"library", "atomics"}};
  spec.library_limits = {{"hard", "NaN"}};
  return spec;
}

Setting setting(const std::string& name, c10::DeviceType device) {
  Setting setting;
  setting.input_case.name = name;
  setting.device = Device(c10::Device(device));
  return setting;
}

TEST(CardExceptions, HoldOfWhatIsNamedAndOnACardAlone) {
  const auto on_card = setting("hard", c10::DeviceType::CUDA), on_cpu = setting("hard", c10::DeviceType::CPU);
  EXPECT_NE(why_never_the_same_bits(spec(), Variant::kLibrary, on_card), "");
  EXPECT_EQ(why_never_the_same_bits(spec(), Variant::kOptimized, on_card), "");
  EXPECT_EQ(why_never_the_same_bits(spec(), Variant::kBaseline, on_card), "");
  EXPECT_EQ(why_never_the_same_bits(spec(), Variant::kLibrary, on_cpu), "");
  EXPECT_EQ(library_limit_of(spec(), Variant::kLibrary, on_card), "NaN");
  EXPECT_EQ(library_limit_of(spec(), Variant::kOptimized, on_card), "");
  EXPECT_EQ(library_limit_of(spec(), Variant::kLibrary, on_cpu), "");
  EXPECT_EQ(library_limit_of(spec(), Variant::kLibrary, setting("easy", c10::DeviceType::CUDA)), "");
}

TEST(CardExceptions, TheOracleIsAskedAndWhatIsNotIsACheck) {
  const auto& all = parity_check_names();
  EXPECT_FALSE(asks_for_the_same_bits("oracle"));
  EXPECT_EQ(std::count_if(all.begin(), all.end(), asks_for_the_same_bits), 8);
}

}  // namespace
}  // namespace twinbench
