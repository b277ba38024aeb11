// What the CUDA path asks of its device is counted on simt, pinned by name and held against the specification's bounds.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "harness/counters/count_component.h"
#include "harness/counters/pins.h"

namespace twinbench {
namespace {

const Cell kCell = find_cell("energy_flow.simple_neuron/optimized/simt/fp32/odd");

CounterSnapshot counted() {
  static const CountedRun run = count_run(*kCell.component, kCell.variant, kCell.setting(), 1);
  return run.counters;
}

TEST(DeviceLimits, LaunchesAreCountedByKernelAndNothingIsAllocatedOrRead) {
  const CounterSnapshot run = counted();
  EXPECT_EQ(run.launches_by_kernel, (std::map<std::string, std::int64_t>{{"energy_flow::simple_neuron::Forward", 1}}));
  EXPECT_EQ(run.value("launches"), 1);
  EXPECT_EQ(run.value("products"), 0);
  EXPECT_EQ(run.allocations, 0);
  EXPECT_EQ(run.sync_calls, 0);
  EXPECT_EQ(device_limits_broken(kCell, run), "");
}

TEST(DeviceLimits, ProductsAreCountedByShapeAndAreNoDispatchOfTheHostsOwn) {
  const Cell cell = find_cell("energy_flow.energy_carrier/optimized/simt/bf16/odd");
  const CounterSnapshot run = count_run(*cell.component, cell.variant, cell.setting(), 1).counters;
  EXPECT_GT(run.value("products"), 0);
  EXPECT_EQ(run.value("products"), run.dispatches) << "as on a card, where each is one operator";
  EXPECT_EQ(run.allocations, 0) << "what the host needs for bf16 operands is not the adapter's";
  EXPECT_EQ(device_limits_broken(cell, run), "");
}

// Of the whole forward's flows every step that is issued has as many launches, and the host sees a pass's end before
// steps 8, 16, ...
TEST(DeviceLimits, AWholePassLaunchesByTheStepsItIssues) {
  for (const char* input_case : {"tiny", "gate", "run_a", "run_s", "one", "long", "no_step", "drop", "non_finite"}) {
    const Cell cell = find_cell(std::string("energy_flow.flow_forward/optimized/simt/fp32/") + input_case);
    const Setting setting = cell.setting();
    const CountedRun run = count_run(*cell.component, cell.variant, setting, 1);
    const std::int64_t executed = run.outputs["stats"].select(1, 12).max().item<std::int64_t>();
    const std::int64_t seen = std::max<std::int64_t>(8, (executed + 7) / 8 * 8);
    const std::int64_t issued = std::min(setting.size("max_steps"), seen), layers = setting.size("layers");
    EXPECT_EQ(run.counters.value("launches"), 7 + issued * (6 + layers)) << input_case << ", executed " << executed;
    EXPECT_LE(run.counters.value("launches"), issued * (8 + 3 * layers) + 15) << "the specification's bound";
    EXPECT_EQ(run.counters.value("products") + run.counters.dispatches + run.counters.allocations, 0) << input_case;
  }
}

// With recorded steps each is one graph: what is launched beside them is the pass's own, and nothing is recorded in it.
TEST(DeviceLimits, ACapturedPassStartsAGraphAStep) {
  for (const char* input_case : {"tiny", "gate", "long", "no_step", "captured", "empty"}) {
    const Cell cell = find_cell(std::string("energy_flow.flow_forward/optimized/simt/fp32/") + input_case);
    Setting setting = cell.setting();
    setting.input_case.options["captured_steps"] = 2;
    const CountedRun run = count_run(*cell.component, cell.variant, setting, 1);
    const bool empty = setting.size("samples") == 0;
    const std::int64_t executed = empty ? 0 : run.outputs["stats"].select(1, 12).max().item<std::int64_t>();
    const std::int64_t seen = std::max<std::int64_t>(8, (executed + 7) / 8 * 8);
    EXPECT_EQ(run.counters.value("graph_launches"), empty ? 0 : std::min(setting.size("max_steps"), seen))
        << input_case;
    EXPECT_EQ(run.counters.value("launches"), empty ? 0 : 7) << input_case;
    EXPECT_EQ(run.counters.value("captures"), 0) << input_case;
  }
}

// The whole backward pass goes back through as many steps as were issued, with as many launches each; without children
// no step is issued that no flow lives to.
TEST(DeviceLimits, AWholeWayBackLaunchesByTheStepsThatWereIssued) {
  const std::string all = "energy_flow.flow_backward/optimized/simt/fp32/";
  for (const char* input_case : {"tiny", "gate", "run_a", "run_s", "long", "no_step", "tiles"})
    for (const bool keeps : {false, true}) {
      const Cell cell = find_cell(all + input_case);
      Setting setting = cell.setting();
      setting.input_case.options["keep_everything"] = keeps ? 1 : 0;
      const std::int64_t layers = setting.size("layers"), each = keeps ? 11 + 4 * layers : 12 + 5 * layers;
      const std::int64_t age = static_cast<std::int64_t>(setting.option("projection_age")),
                         most = setting.size("max_steps");
      const std::int64_t there = setting.option("spawn") == 0 && age > 0 ? std::min(age, most) : most;
      const CountedRun run = count_run(*cell.component, cell.variant, setting, 1);
      const std::int64_t launches = run.counters.value("launches");
      const std::int64_t issued = run.counters.launches_by_kernel.count("energy_flow::flow_backward::NeuronBack") == 0
                                      ? 0
                                      : run.counters.launches_by_kernel.at("energy_flow::flow_backward::NeuronBack");
      EXPECT_EQ(launches, (issued == 0 ? 6 : 9) + issued * each) << input_case;
      EXPECT_TRUE(issued == there || (issued % 8 == 0 && issued < there)) << input_case << ", issued " << issued;
      EXPECT_TRUE(launches <= issued * (20 + 8 * layers) || issued == 0) << "the specification's bound";
      EXPECT_EQ(run.counters.value("products") + run.counters.dispatches + run.counters.allocations, 0) << input_case;
    }
}

// Where states are kept every second step all but the last segment are issued once more (C31).
TEST(DeviceLimits, SegmentsLaunchTheirStepsOnceMore) {
  for (const char* input_case : {"tiny", "gate", "run_s", "long", "tiles"}) {
    const Cell cell = find_cell(std::string("energy_flow.flow_backward/optimized/simt/fp32/") + input_case);
    Setting setting = cell.setting();
    setting.input_case.options["ckpt_every"] = 2;
    const std::int64_t layers = setting.size("layers");
    const CountedRun run = count_run(*cell.component, cell.variant, setting, 1);
    const std::int64_t issued = run.counters.launches_by_kernel.at("energy_flow::flow_backward::NeuronBack"),
                       again = (issued - 1) / 2;
    EXPECT_EQ(run.counters.value("launches"),
              9 + issued * (11 + 4 * layers) + (issued + 1) / 2 + again * (2 * (3 + layers) + 2))
        << input_case;
    EXPECT_LE(run.counters.value("launches"), issued * (20 + 8 * layers)) << "the specification's bound";
    EXPECT_EQ(run.counters.value("products") + run.counters.dispatches + run.counters.allocations, 0) << input_case;
  }
}

TEST(DeviceLimits, AChosenWayMayDispatchLessThanTheFormulaButNotMore) {
  const Cell cell = find_cell("energy_flow.energy_carrier/optimized/simt/bf16/one");
  CountedRun run = count_run(*cell.component, cell.variant, cell.setting(), 1);
  ASSERT_EQ(run.choices.size(), 1u);
  EXPECT_EQ(run.choices.front().taken, "fused tiles of 64x16");
  EXPECT_EQ(run.counters.dispatches, 0);
  EXPECT_EQ(device_limits_broken(cell, run.counters, true), "");
  EXPECT_EQ(device_limits_broken(cell, run.counters), "dispatches = 0 instead of 3");
  run.counters.dispatches = 4;
  EXPECT_EQ(device_limits_broken(cell, run.counters, true), "dispatches = 4 instead of 3");
}

TEST(DeviceLimits, OneLaunchMoreThanTheSpecificationAllowsIsNamed) {
  CounterSnapshot run = counted();
  run.launches_by_kernel["planted"] = 1;
  EXPECT_EQ(device_limits_broken(kCell, run), "a run launches 2 kernels and 0 products, the specification allows 1");
  Cell on_cpu = kCell;
  on_cpu.device = Device();
  EXPECT_EQ(device_limits_broken(on_cpu, run), "") << "the CPU launches nothing";
}

TEST(DeviceLimits, APinHoldsKernelsAndProducts) {
  CounterSnapshot run = counted();
  Pins pins;
  pins.set(kCell.name(), run);
  EXPECT_TRUE(pins.check(kCell.name(), run).pass);
  run.launches_by_kernel["energy_flow::simple_neuron::Forward"] = 2;
  EXPECT_NE(pins.check(kCell.name(), run).reason.find("Forward 1 -> 2"), std::string::npos);
  run = counted();
  run.products_by_shape["mm 4x5x6 bf16"] = 1;
  EXPECT_NE(pins.check(kCell.name(), run).reason.find("mm 4x5x6 bf16 0 -> 1"), std::string::npos);
}

}  // namespace
}  // namespace twinbench
