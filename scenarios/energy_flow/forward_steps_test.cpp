// The whole forward's steps one by one are those of its run, and a state that is taken and put back loses nothing.
#include <gtest/gtest.h>

#include "harness/compare/inputs.h"
#include "scenarios/runner/observe.h"
#include "src/registry.h"
#include "src/stepwise.h"

namespace twinbench::energy_flow {
namespace {

struct Kind {
  Variant variant;
  Device device;
};
const Kind kKinds[] = {{Variant::kBaseline, c10::DeviceType::CPU},
                       {Variant::kOptimized, c10::DeviceType::CPU},
                       {Variant::kOptimized, Device::simt()}};
constexpr const char* kCases[] = {"gate", "spawning",   "kill",           "drop",
                                  "long", "non_finite", "stored_in_bf16", "no_step"};

class ForwardSteps : public testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<Runnable> make(const Kind& kind) {
    const Component& component = find_component("energy_flow.flow_forward");
    const auto& cases = component.spec.cases;
    const auto found = std::find_if(cases.begin(), cases.end(), [](const Case& one) { return one.name == GetParam(); });
    const Setting setting{*found, Dtype::kFp32, kind.device};
    steps_ = setting.input_case.sizes.at("max_steps");
    return component.make(
        kind.variant, placed_inputs(generated_inputs(component.spec, setting, 7), Dtype::kFp32, kind.device), setting);
  }
  static Stepwise& steps_of(Runnable& runnable) { return dynamic_cast<Stepwise&>(runnable); }
  static NamedTensors results_of(Runnable& runnable, const std::vector<std::string>& names) {
    NamedTensors results;
    const NamedTensors outputs = runnable.outputs();
    for (const auto& name : names) results.set(name, outputs[name].cpu().clone());
    return results;
  }
  std::int64_t steps_ = 0;
};

TEST_P(ForwardSteps, AreThoseOfARun) {
  for (const Kind& kind : kKinds) {
    const auto whole = make(kind), stepped = make(kind);
    whole->run();
    steps_of(*stepped).begin();
    for (std::int64_t i = 0; i <= steps_ + 1; ++i) steps_of(*stepped).step();  // one more than there are
    const std::vector<std::string> names = {"surface", "stats", "active", "margin"};
    EXPECT_EQ(mismatched_bits(results_of(*whole, names), results_of(*stepped, names)), 0) << to_string(kind.device);
  }
}

TEST_P(ForwardSteps, GoOnFromAStateThatWasGiven) {
  for (const Kind& kind : kKinds) {
    const auto first = make(kind), second = make(kind), third = make(kind);
    for (auto* one : {first.get(), second.get(), third.get()}) steps_of(*one).begin();
    for (int i = 0; i < 2; ++i) steps_of(*first).step();
    const NamedTensors state = steps_of(*first).state();
    steps_of(*second).set_state(state);
    EXPECT_EQ(mismatched_bits(state, steps_of(*second).state()), 0) << to_string(kind.device);
    for (std::int64_t i = 2; i <= steps_ + 2; ++i) {
      for (auto* one : {first.get(), second.get()}) steps_of(*one).step();
      EXPECT_EQ(mismatched_bits(steps_of(*first).state(), steps_of(*second).state()), 0)
          << to_string(kind.device) << ", step " << i;
      steps_of(*third).set_state(steps_of(*first).state());  // after two steps no look has been in vain
      EXPECT_EQ(mismatched_bits(steps_of(*first).state(), steps_of(*third).state()), 0)
          << to_string(kind.device) << ", taken after step " << i;
    }
    EXPECT_EQ(mismatched_bits(results_of(*first, {"surface", "stats"}), results_of(*second, {"surface", "stats"})), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, ForwardSteps, testing::ValuesIn(kCases),
                         [](const auto& instance) { return std::string(instance.param); });

}  // namespace
}  // namespace twinbench::energy_flow
