// What the engines do not ask of energy_flow.gated_logging: the optimized version makes exactly what it says, a factory
// behind a closed gate does not run, and a line has an end.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdio>

#include <stdexcept>

#include "optimized/energy_flow/common/log_gate.h"
#include "src/inputs.h"
#include "src/registry.h"

namespace twinbench::energy_flow::gated_logging {
namespace {

// Formatted and emitted.
std::pair<std::int64_t, std::int64_t> counts_of(Variant variant, double profile) {
  const Component& component = find_component("energy_flow.gated_logging");
  Setting setting;
  setting.input_case = component.spec.cases.front();
  setting.input_case.sizes = {{"steps", 30}, {"messages", 24}};
  setting.input_case.options = {{"log_profile", profile}};
  setting = completed(component.spec.signature, setting);
  const auto runnable = component.make(variant, Device(), generate_inputs(component.spec, setting, 3), setting);
  runnable->run();
  const NamedTensors outputs = runnable->outputs();
  return {outputs["formatted"].item<std::int64_t>(), outputs["emitted"].sum().item<std::int64_t>()};
}

TEST(GatedLogging, WhatIsMadeIsSaid) {
  for (const double profile : {0.0, 1.0, 2.0, 3.0}) {
    const auto [formatted, emitted] = counts_of(Variant::kOptimized, profile);
    EXPECT_EQ(formatted, emitted) << profile;
    EXPECT_EQ(counts_of(Variant::kBaseline, profile), std::pair(std::int64_t{30 * 24}, emitted)) << profile;
  }
  EXPECT_EQ(counts_of(Variant::kOptimized, 0).second, 3) << "in production one line in ten steps";
}

TEST(GatedLogging, AFactoryRunsOnlyBehindAnOpenGate) {
  LogGate gate({kBasicMetrics, 16});
  gate.restart(-1);
  std::vector<std::int64_t> ran, said;
  for (std::int64_t step = 0; step <= 30; ++step)
    for (const std::int64_t category : {16, 21})
      gate.log(
          category, step, {5, 10}, [&](LogLine&) { ran.push_back(step); },
          [&](std::string_view) { said.push_back(step); });
  const std::vector<std::int64_t> expected = {0, 1, 2, 3, 4, 10, 20, 30};
  EXPECT_EQ(ran, expected);
  EXPECT_EQ(said, expected);
}

// Halves go to the even digit, as printf has it: a number moved by its last place goes elsewhere.
TEST(GatedLogging, SixDigitsAreThoseOfTheNumberItself) {
  for (const double number : {100000.5, 100001.5, 1234565.0, 1234575.0, 0.0001000005, 2.5e-310, -1e300, 999999.5}) {
    char expected[40];
    std::snprintf(expected, sizeof expected, "%.6g", number);
    LogLine line;
    line << number;
    EXPECT_EQ(line.text(), expected);
  }
}

TEST(GatedLogging, WhatTheFactoryThrowsIsTheTextAndLinesEnd) {
  LogGate gate({16});
  std::string line;
  const auto keep = [&](std::string_view text) { line = text; };
  gate.log(
      16, 3, {},
      [](LogLine& to) {
        to << "half of it";
        throw std::runtime_error("no card");
      },
      keep);
  EXPECT_EQ(line, "step 3 TRAINING no card");
  gate.log(
      16, 3, {}, [](LogLine& to) { to << std::string(500, 'x') << 1.5; }, keep);
  EXPECT_EQ(line.size(), static_cast<std::size_t>(kLineBytes));
  gate.log(
      16, 4, {}, [](LogLine& to) { to << 0.1 + 0.2 << ' ' << std::int64_t{-7} << ' ' << 1e-30; }, keep);
  EXPECT_EQ(line, "step 4 TRAINING 0.3 -7 1e-30");
}

}  // namespace
}  // namespace twinbench::energy_flow::gated_logging
