// What the CUDA path asks of its device is counted on simt, pinned by name and held against the specification's bounds.
#include <gtest/gtest.h>

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
