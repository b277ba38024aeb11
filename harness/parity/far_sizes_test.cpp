// Each size by itself far beyond what any case has, and each two and three some hundreds, at one to five threads,
// judged as parity judges it. Of small cases of each pass in fp32, and of one in turn in each dtype with drawn options.
// A revision takes some; TWINBENCH_EVERY takes all of them, TWINBENCH_FAR_COMPONENTS, an expression as of --filter,
// some components by their ids, TWINBENCH_FAR_TIMES tells each.
#include "harness/parity/far_sizes.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>

#include "harness/parity/far_judgement.h"
#include "harness/runner/components_in_turn.h"
#include "harness/runner/share.h"
#include "src/common/error.h"

namespace twinbench {
namespace {

constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
constexpr double kOfCpu = 300'000, kOfSimt = 60'000;  // most elements of a setting's inputs

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

// `most` of them in each revision: of others the component refuses the sizes, or all that fit lie within its cases.
std::size_t expect_right(FarSizes& sizes, const std::vector<FarSetting>& settings, std::size_t most,
                         const Device& device) {
  std::size_t tried = 0, judged = 0;
  for (FarSetting far : in_turn(settings, [](const FarSetting& one) { return one.name(); })) {
    if (judged == most) break;
    const auto started = std::chrono::steady_clock::now();
    const FarJudgement judgement = grown_and_judged(sizes, far, device);
    EXPECT_EQ(judgement.wrong, "") << far.name();
    ++tried;
    judged += judgement.judged;
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    if (std::getenv("TWINBENCH_FAR_TIMES"))
      std::printf("%7.3f s %s%s\n", seconds, far.name().c_str(), judgement.judged ? "" : " (none)");
  }
  at::set_num_threads(1);
  std::printf("TWINBENCH_SAMPLE=%s: %zu settings judged, %zu tried of %zu\n", sample_of_tests().c_str(), judged, tried,
              settings.size());
  return judged;
}

// So many of them as they are listed, and of drawn ones.
void expect_right(const Device& device, std::size_t together, std::size_t plain, std::size_t drawn) {
  const bool every = std::getenv("TWINBENCH_EVERY");
  FarSizes sizes(device, device.is_cpu() ? kOfCpu : kOfSimt, sample_of_tests(), every);
  const auto all = far_components(device);
  const std::size_t judged = expect_right(sizes, sizes.settings(all, together, false), every ? kAll : plain, device) +
                             expect_right(sizes, sizes.settings(all, together, true), every ? kAll : drawn, device);
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
