// Numbers at the ends of their ranges and beyond what any case has, and each two options together, judged as parity
// judges. A revision takes some; TWINBENCH_EVERY takes all of them, TWINBENCH_FAR_COMPONENTS, an expression as of
// --filter, some components by their ids, TWINBENCH_FAR_TIMES tells each.
#include "harness/parity/far_options.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "harness/parity/far_judgement.h"

namespace twinbench {
namespace {

// `most` of them in each revision: others the component refuses.
void expect_options_right(const std::vector<FarSetting>& settings, std::size_t most, const Device& device) {
  const bool every = std::getenv("TWINBENCH_EVERY") != nullptr;
  std::size_t tried = 0, judged_ones = 0;
  for (const FarSetting& far : in_turn(settings, [](const FarSetting& one) { return one.name(); })) {
    if (!every && judged_ones == most) break;
    const auto started = std::chrono::steady_clock::now();
    if (std::getenv("TWINBENCH_FAR_TIMES")) std::fprintf(stderr, "%s\n", far.name().c_str());
    const FarJudgement judgement = far_judgement(far, device);
    EXPECT_EQ(judgement.wrong, "") << far.name();
    ++tried;
    judged_ones += judgement.judged;
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    if (std::getenv("TWINBENCH_FAR_TIMES"))
      std::printf("%7.3f s %s%s\n", seconds, far.name().c_str(), judgement.judged ? "" : " (none)");
  }
  at::set_num_threads(1);
  std::printf("TWINBENCH_SAMPLE=%s: %zu settings judged, %zu tried of %zu\n", sample_of_tests().c_str(), judged_ones,
              tried, settings.size());
  if (!std::getenv("TWINBENCH_FAR_COMPONENTS")) EXPECT_GE(judged_ones, most);
}

TEST(FarOptions, Ends) {
  expect_options_right(options_at_their_ends(far_components(Device()), Device(), sample_of_tests()), 150, Device());
}

TEST(FarOptions, EachTwo) {
  expect_options_right(options_in_pairs(far_components(Device()), Device(), sample_of_tests()), 300, Device());
}

TEST(FarOptions, EndsOnThePathOfTheCard) {
  expect_options_right(options_at_their_ends(far_components(Device::simt()), Device::simt(), sample_of_tests()), 25,
                       Device::simt());
}

TEST(FarOptions, EachTwoOnThePathOfTheCard) {
  expect_options_right(options_in_pairs(far_components(Device::simt()), Device::simt(), sample_of_tests()), 25,
                       Device::simt());
}

// Both ends beyond what is listed are there, and values of two options that no case has together.
TEST(FarOptions, SettingsLieBeyondTheCases) {
  const std::vector<const Component*> one = {&find_component("energy_flow.flow_movement")};
  const auto ends = options_at_their_ends(one, Device(), "a revision");
  const OptionSpec& age = *std::ranges::find(one.front()->spec.signature.options, "projection_age", &OptionSpec::name);
  const auto is_end = [&](const FarSetting& far) { return far.base->options.at("projection_age") == age.high; };
  EXPECT_GE(std::ranges::count_if(ends, is_end), 2) << "of each pass";

  int unlisted = 0;
  for (const FarSetting& far : options_in_pairs(one, Device(), "a revision")) {
    const auto has = [](const Case& one, const OptionSpec& option) {
      const auto found = one.options.find(option.name);
      return found == one.options.end() ? option.otherwise : found->second;
    };
    const auto is_listed = [&](const Case& listed) {
      return std::ranges::all_of(one.front()->spec.signature.options, [&](const OptionSpec& option) {
        return has(listed, option) == has(*far.base, option);
      });
    };
    unlisted += std::ranges::none_of(one.front()->spec.cases, is_listed);
  }
  EXPECT_GT(unlisted, 10) << unlisted;
}

}  // namespace
}  // namespace twinbench
