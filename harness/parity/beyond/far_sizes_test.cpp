// Each size by itself far beyond what any case has, and each two and three some hundreds, at one to five threads,
// judged as parity judges it. Of small cases of each pass in fp32, and of one in turn in each dtype with drawn options.
// A revision takes some; TWINBENCH_EVERY takes all of them, TWINBENCH_FAR_COMPONENTS, an expression as of --filter,
// some components by their ids, TWINBENCH_FAR_TIMES tells each.
#include "harness/parity/beyond/far_sizes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "harness/parity/beyond/far_judgement.h"
#include "harness/runner/components_in_turn.h"
#include "harness/runner/share.h"
#include "src/common/error.h"

namespace twinbench {
namespace {

constexpr double kOfSimt = 60'000;  // most elements of a setting's inputs

// Whole vectors or not by turns, and what divides by heads and by vectors where the component refuses others.
FarJudgement grown_and_judged(FarSizes& sizes, FarSetting& far, const Device& device) {
  const bool vectors_first = name_hash(sample_of_tests() + far.name()) % 2 == 0;
  for (const std::int64_t whole : {vectors_first ? 16 : 1, vectors_first ? 1 : 16, 64}) {
    try {
      if (!sizes.extend(far, whole)) continue;
    } catch (const Error&) {  // a size that goes with others
      continue;
    }
    if (const FarJudgement judgement = far_judgement(far, device); judgement.judged) return judgement;
  }
  return {};
}

// So many of them as they are listed, and of drawn ones.
void expect_right(const Device& device, std::size_t together, std::size_t plain, std::size_t drawn) {
  const bool every = std::getenv("TWINBENCH_EVERY");
  FarSizes sizes(device, device.is_cpu() ? kMostFarElements : kOfSimt, sample_of_tests(), every);
  const auto all = far_components(device);
  const auto judge = [&](FarSetting& far) { return grown_and_judged(sizes, far, device); };
  const auto right = [&](bool with_draws, std::size_t most) {
    return expect_far_right(sizes.settings(all, together, with_draws), every ? kEveryFarSetting : most, judge);
  };
  const std::size_t judged = right(false, plain) + right(true, drawn);
  const bool some = std::getenv("TWINBENCH_FAR_COMPONENTS") != nullptr;  // which may have no so many sizes that grow
  EXPECT_FALSE(all.empty()) << "TWINBENCH_FAR_COMPONENTS names no component that is asked";
  if (!every && !some)
    EXPECT_EQ(judged, plain + drawn) << "hardly any size grows any more";
  else if (!some)
    EXPECT_GT(judged, 0U);
}

TEST(FarSizes, EachByItself) { expect_right(Device(), 1, 250, 80); }

TEST(FarSizes, EachTwo) { expect_right(Device(), 2, 50, 50); }

TEST(FarSizes, EachThree) { expect_right(Device(), 3, 25, 25); }

TEST(FarSizes, EachByItselfOnThePathOfTheCard) { expect_right(Device::simt(), 1, 15, 15); }

TEST(FarSizes, EachTwoOnThePathOfTheCard) { expect_right(Device::simt(), 2, 15, 15); }

// Beyond the limits above, where it is known how far the base must go.
void expect_right_at(const Device& device, const std::string& id, const std::string& name, const std::string& size,
                     std::int64_t value) {
  const Component& component = find_component(id);
  const auto& cases = component.spec.cases;
  const auto base = std::find_if(cases.begin(), cases.end(), [&](const Case& one) { return one.name == name; });
  ASSERT_NE(base, cases.end()) << id << ": the case that this test grows is gone: " << name;
  const FarSetting far{&component, std::make_shared<const Case>(*base), "", {{size, value}}};
  const FarJudgement judgement = far_judgement(far, device);
  EXPECT_TRUE(judgement.judged) << far.name();
  EXPECT_EQ(judgement.wrong, "") << far.name();
}

// All of them asking, beyond what two bytes count; with noise, flows that live for a hundred steps.
TEST(FarSizes, SomeThatAreKnown) {
  expect_right_at({}, "energy_flow.spawn_admission", "full", "slots", 70'001);
  expect_right_at({}, "energy_flow.flow_forward", "late_keys", "max_steps", 300);
  expect_right_at({}, "energy_flow.memory_footprint", "tiny", "steps", 601);
}

// Beyond what a thread keeps.
TEST(FarSizes, SomeThatAreKnownOnThePathOfTheCard) {
  expect_right_at(Device::simt(), "energy_flow.spawn_admission", "full", "slots", 7'001);
}

// They shrink until they fit, and do not give up.
TEST(FarSizes, SizesThatAreTooLargeTogetherShrink) {
  FarSizes sizes(Device(), 30'000, "a revision", false);
  const std::vector<const Component*> one = {&find_component("trainer2.metric_update")};
  int shrunk = 0;
  for (FarSetting far : sizes.settings(one, 2, false)) {
    FarSizes roomy(Device(), 1e9, "a revision", false);
    FarSetting large = far;
    if (!roomy.extend(large, 1) || !sizes.extend(far, 1)) continue;
    for (const auto& [name, value] : far.sizes) EXPECT_GT(value, 100) << far.name();
    shrunk += far.sizes != large.sizes;
  }
  EXPECT_GT(shrunk, 0);
}

}  // namespace
}  // namespace twinbench
