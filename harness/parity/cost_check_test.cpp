// Every component's declared cost against what is counted, and costs planted wrong.
#include "harness/parity/cost_check.h"

#include <gtest/gtest.h>

#include "harness/compare/inputs.h"
#include "src/inputs.h"

namespace twinbench {
namespace {

std::string finding(const Component& component, const Case& one, Dtype dtype) {
  const Setting setting = completed(component.spec.signature, {one, dtype});
  CheckResult result;
  check_cost(component, setting, generated_inputs(component.spec, setting, 1), result);
  return result.reason;
}

TEST(CostCheck, EveryDeclaredCost) {
  int judged = 0;
  for (const auto& component : components())
    for (const auto& one : component.spec.cases)
      for (const Dtype dtype : component.spec.dtypes) {
        if (one.timed || one.degenerate || !one.specimen.empty()) continue;
        ++judged;
        EXPECT_EQ(finding(component, one, dtype), "")
            << component.spec.id() << "/" << to_string(dtype) << "/" << one.name;
      }
  EXPECT_GT(judged, 100);
}

// A tenth of the bytes or of the FLOPs is found in every component, in some small case of each pass.
TEST(CostCheck, ATenthIsFoundInEveryComponent) {
  for (const auto& right : components())
    for (const Pass pass : {Pass::kForward, Pass::kBackward})
      for (const bool bytes : {true, false}) {
        Component component = right;
        bool any = false, nothing_to_compute = true;
        component.spec.cost = [&](const Setting& setting) {
          Cost cost = right.spec.cost(setting);
          nothing_to_compute = nothing_to_compute && cost.flops == 0;
          (bytes ? cost.bytes : cost.flops) /= 10;
          return cost;
        };
        std::string found;
        for (const auto& one : right.spec.cases) {
          if (one.pass != pass || one.timed || one.degenerate || !one.specimen.empty()) continue;
          any = true;
          if (found.empty()) found = finding(component, one, right.spec.dtypes.front());
        }
        if (any && (bytes || !nothing_to_compute))
          EXPECT_NE(found, "") << right.spec.id() << ": a tenth of its " << (bytes ? "bytes" : "FLOPs") << " passes";
      }
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
