// Numbers at the ends of their ranges and beyond what any case has, and each two options together, judged as parity
// judges. A revision takes some; TWINBENCH_EVERY takes all of them, TWINBENCH_FAR_COMPONENTS, an expression as of
// --filter, some components by their ids, TWINBENCH_FAR_TIMES tells each.
#include "harness/parity/beyond/far_options.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "harness/parity/beyond/far_judgement.h"
#include "harness/parity/held_out.h"

namespace twinbench {
namespace {

using Settings = std::vector<FarSetting> (*)(const std::vector<const Component*>&, Device, const std::string&);

// `most` of them in each revision: others the component refuses.
void expect_right(Settings settings, std::size_t most, const Device& device) {
  const std::size_t judged = expect_far_right(settings(far_components(device), device, sample_of_tests()),
                                              std::getenv("TWINBENCH_EVERY") ? kEveryFarSetting : most,
                                              [&](const FarSetting& far) { return far_judgement(far, device); });
  if (!std::getenv("TWINBENCH_FAR_COMPONENTS")) EXPECT_GE(judged, most);
  EXPECT_GT(judged, 0u) << "TWINBENCH_FAR_COMPONENTS names no component that has options";
}

TEST(FarOptions, Ends) { expect_right(options_at_their_ends, 150, Device()); }

TEST(FarOptions, EachTwo) { expect_right(options_in_pairs, 300, Device()); }

TEST(FarOptions, EndsOnThePathOfTheCard) { expect_right(options_at_their_ends, 25, Device::simt()); }

TEST(FarOptions, EachTwoOnThePathOfTheCard) { expect_right(options_in_pairs, 25, Device::simt()); }

// Both ends beyond what is listed are there, and values of two options that no case has together.
TEST(FarOptions, SettingsLieBeyondTheCases) {
  const Component& component = find_component("energy_flow.flow_movement");
  const auto& options = component.spec.signature.options;
  const auto ends = options_at_their_ends({&component}, Device(), "a revision");
  const OptionSpec& age = *std::ranges::find(options, "projection_age", &OptionSpec::name);
  const auto is_end = [&](const FarSetting& far) { return far.base->options.at("projection_age") == age.high; };
  EXPECT_GE(std::ranges::count_if(ends, is_end), 2) << "of each pass";

  int unlisted = 0;
  for (const FarSetting& far : options_in_pairs({&component}, Device(), "a revision")) {
    const auto is_listed = [&](const Case& listed) {
      return std::ranges::all_of(
          options, [&](const OptionSpec& option) { return value_of(listed, option) == value_of(*far.base, option); });
    };
    unlisted += std::ranges::none_of(component.spec.cases, is_listed);
  }
  EXPECT_GT(unlisted, 10);
}

}  // namespace
}  // namespace twinbench
