// What the engines do not ask of energy_flow.metrics: how much is evaluated where little is on, a run in two halves.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "src/energy_flow/common/metric_table.h"
#include "src/inputs.h"
#include "src/registry.h"

namespace twinbench::energy_flow::metrics {
namespace {

constexpr std::int64_t kWindows = 6;

struct Given {
  Setting setting;
  NamedTensors inputs;
};

Given given(const Options& options) {
  const Component& component = find_component("energy_flow.metrics");
  Setting setting;
  setting.input_case = component.spec.cases.front();
  setting.input_case.sizes = {{"windows", kWindows}, {"micro_steps", 4}, {"samples", 5}};
  setting.input_case.options = options;
  setting = completed(component.spec.signature, setting);
  return {setting, generate_inputs(component.spec, setting, 3)};
}

NamedTensors outputs_of(Variant variant, Device device, const NamedTensors& inputs, const Setting& setting) {
  const auto runnable = find_component("energy_flow.metrics").make(variant, device, inputs, setting);
  runnable->run();
  NamedTensors copies;
  for (const auto& [name, tensor] : runnable->outputs()) copies.set(name, tensor.clone());
  return copies;
}

TEST(Metrics, ProductionAsksForTheBasicOnesOnceAWindow) {
  const Given production = given({{"metric_categories", static_cast<double>(kBasicCategory)}});
  std::int64_t basic = 0;
  for (std::int64_t metric = 0; metric < kMetrics; ++metric) basic += category_of(metric) == kBasicCategory;
  EXPECT_EQ(basic, 10);
  for (const Device device : {Device(), Device::simt()})
    EXPECT_EQ(outputs_of(Variant::kOptimized, device, production.inputs, production.setting)["evaluated"]
                  .item<std::int64_t>(),
              kWindows * basic);
  EXPECT_EQ(
      outputs_of(Variant::kBaseline, Device(), production.inputs, production.setting)["evaluated"].item<std::int64_t>(),
      kWindows * 4 * kMetrics)
      << "the baseline: all of them, every micro-step";
}

TEST(Metrics, SwitchedOffNothingIsAskedFor) {
  const Given slow = given({{"slow_window", 2}});
  for (const Device device : {Device(), Device::simt()})
    EXPECT_EQ(outputs_of(Variant::kOptimized, device, slow.inputs, slow.setting)["evaluated"].item<std::int64_t>(),
              2 * kMetrics);
}

TEST(Metrics, TwoRunsAreOneInTwoHalves) {
  const Given whole = given({{"kept_before", 497}});
  for (const auto& [variant, device] : {std::pair{Variant::kBaseline, Device()},
                                        {Variant::kOptimized, Device()},
                                        {Variant::kOptimized, Device::simt()}}) {
    const NamedTensors expected = outputs_of(variant, device, whole.inputs, whole.setting);
    Setting half = whole.setting;
    half.input_case.sizes["windows"] = kWindows / 2;
    NamedTensors inputs = whole.inputs;
    for (const char* part : {"first", "second"}) {
      const std::int64_t from = part == std::string("first") ? 0 : kWindows / 2;
      for (const char* name : {"losses", "rows", "sample_steps", "reason", "flow_steps", "counts", "gradient_norm",
                               "learning_rate", "clock", "timings", "memory", "device"})
        inputs.set(name, whole.inputs[name].slice(0, from, from + kWindows / 2).contiguous());
      const NamedTensors outputs = outputs_of(variant, device, inputs, half);
      for (const char* name : {"timing_ring", "memory_ring", "kept", "disabled"}) inputs.set(name, outputs[name]);
      EXPECT_TRUE(outputs["metrics"].equal(expected["metrics"].slice(0, from, from + kWindows / 2))) << part;
    }
    for (const char* name : {"timing_ring", "memory_ring", "kept", "disabled"})
      EXPECT_TRUE(inputs[name].equal(expected[name])) << name;
  }
}

}  // namespace
}  // namespace twinbench::energy_flow::metrics
