// Every component's declared cost against what is counted, and costs planted wrong.
#include "harness/parity/cost_check.h"

#include <gtest/gtest.h>

#include "harness/compare/inputs.h"
#include "harness/runner/components_in_turn.h"
#include "src/inputs.h"

namespace twinbench {
namespace {

std::string finding(const Component& component, const Case& one, Dtype dtype) {
  const Setting setting = completed(component.spec.signature, {one, dtype});
  CheckResult result;
  check_cost(component, setting, generated_inputs(component.spec, setting, 1), result);
  return result.reason;
}

// Parity asks the same of every case that it takes; here no small one is left out.
TEST(CostCheck, EveryDeclaredCost) {
  int judged = 0;
  for (const Component* const component : components_in_turn(8, [](const Component&) { return true; }))
    for (const auto& one : component->spec.cases)
      for (const Dtype dtype : component->spec.dtypes) {
        if (one.timed || one.degenerate || !one.specimen.empty()) continue;
        ++judged;
        EXPECT_EQ(finding(*component, one, dtype), "")
            << component->spec.id() << "/" << to_string(dtype) << "/" << one.name;
      }
  EXPECT_GT(judged, 30);
}

TEST(CostCheck, WhatLoopsHandleIsNoMoreThanIsThere) {
  Component component = find_component("energy_flow.dataset_loader");
  const auto right = component.spec.host_bytes;
  const Case& small = component.spec.cases.at(1);
  EXPECT_EQ(finding(component, small, Dtype::kFp32), "");
  component.spec.host_bytes = [&](const Setting& setting) { return 3 * right(setting); };
  EXPECT_NE(finding(component, small, Dtype::kFp32).find("beside operators"), std::string::npos);
}

// A tenth of the bytes is found where every input is used, one of the FLOPs where matrix products are counted, in some
// small case of each pass. Elsewhere no count bounds a cost from below: there `twinbench coverage` pins it.
TEST(CostCheck, ATenthIsFound) {
  int judged = 0;
  for (const auto& right : components())
    for (const Pass pass : {Pass::kForward, Pass::kBackward})
      for (const bool bytes : {true, false}) {
        Component component = right;
        component.spec.cost = [&](const Setting& setting) {
          Cost cost = right.spec.cost(setting);
          (bytes ? cost.bytes : cost.flops) /= 10;
          return cost;
        };
        bool bounded = false;
        std::string found;
        for (const auto& one : right.spec.cases) {
          if (bounded && !found.empty()) break;
          if (one.pass != pass || one.timed || one.degenerate || !one.specimen.empty()) continue;
          const Setting setting = completed(right.spec.signature, {one, right.spec.dtypes.front()});
          bounded = bounded ||
                    (bytes ? !right.spec.batch_size.empty()
                           : counted_cost(right, setting, generated_inputs(right.spec, setting, 1)).product_flops > 0);
          if (found.empty()) found = finding(component, one, right.spec.dtypes.front());
        }
        judged += bounded;
        if (bounded)
          EXPECT_NE(found, "") << right.spec.id() << ": a tenth of its " << (bytes ? "bytes" : "FLOPs") << " passes";
      }
  EXPECT_GE(judged, 14);
}

TEST(CostCheck, PlantedCosts) {
  const Component& right = find_component("energy_flow.simple_neuron");
  const auto planted = [&](double bytes, double flops, bool blind, Dtype dtype) {
    Component component = right;
    component.spec.cost = [&, bytes, flops, blind](const Setting& given) {
      Setting setting = given;
      if (blind) setting.dtype = Dtype::kFp32;
      const Cost cost = right.spec.cost(setting);
      return Cost{cost.bytes * bytes, cost.flops * flops};
    };
    return finding(component, right.spec.cases.front(), dtype);
  };
  const auto says = [](const std::string& reason, const char* part) {
    return reason.find(part) != std::string::npos ? "" : part + (" is not in: " + reason);
  };
  EXPECT_EQ(planted(1, 1, false, Dtype::kBf16), "");
  EXPECT_EQ(says(planted(1.1, 1, false, Dtype::kFp32), "bytes, more than all inputs and outputs"), "");
  EXPECT_EQ(says(planted(1, 1, true, Dtype::kBf16), "bytes, more than all inputs and outputs in this mode"), "");
  EXPECT_EQ(says(planted(0.1, 1, false, Dtype::kFp32), "bytes, less than"), "");
  EXPECT_EQ(says(planted(1, 10, false, Dtype::kFp32), "FLOPs, more than the baseline's"), "");
  EXPECT_EQ(says(planted(1, 0.1, false, Dtype::kFp32), "FLOPs, less than"), "");
  EXPECT_EQ(says(planted(std::nan(""), 1, false, Dtype::kFp32), "no number"), "");
}

}  // namespace
}  // namespace twinbench
