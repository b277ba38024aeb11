// Moved bytes of a cell by hand, and costs planted wrong on either side.
#include "harness/command/kernel_cost.h"

#include <gtest/gtest.h>

namespace twinbench {
namespace {

// A launch of 8 blocks, all run, that reads 100 sectors and writes 20, and a product.
CountedCell cell_with(double declared, bool timed = true) {
  CountedCell cell;
  cell.name = "energy_flow.simple_neuron/optimized/simt/fp32/train";
  cell.timed = timed;
  cell.cost.bytes = declared;
  kernels::simt::LaunchCounts launch;
  launch.grid = {4, 2, 1};
  launch.blocks = 8;
  launch.read_sectors = 100;
  launch.read_sectors_of_grid = 100;
  launch.written_sectors = 20;
  cell.launches.push_back(launch);
  cell.products.push_back("mm 2x3x5 bf16");  // 2 * (6 + 15) + 4 * 10 = 82 bytes
  return cell;
}

constexpr double kMoved = 32 * 120 + 82;

std::string bounds_broken(const CountedCell& cell) {
  std::string names;
  for (const auto& breach : cost_breaches(cell)) {
    names += breach.bound;
    EXPECT_EQ(breach.kernel, "energy_flow.simple_neuron");
    EXPECT_NE(breach.text.find(cell.name), std::string::npos) << breach.text;
  }
  return names;
}

TEST(KernelCost, AKernelBelongsToTheComponentWhoseNamespaceItIsIn) {
  EXPECT_EQ(owner_of("energy_flow::flow_forward::ListFlows"), "energy_flow.flow_forward");
  EXPECT_EQ(owner_of("kernels::RoundToBf16"), "");
  EXPECT_EQ(owner_of("energy_flow::common::Word"), "");
  EXPECT_EQ(owner_of("gemm"), "");
}

TEST(KernelCost, MovedBytesAreSectorsAndProducts) {
  CountedCell cell = cell_with(0);
  EXPECT_EQ(moved_bytes(cell), kMoved);
  cell.launches[0].blocks = 2;  // of the 8: they stand for the rest
  cell.launches[0].written_sectors = 5;
  EXPECT_EQ(moved_bytes(cell), kMoved);
}

TEST(KernelCost, MoreThanWasMovedAndFarLessAreFound) {
  EXPECT_EQ(bounds_broken(cell_with(kMoved)), "");
  EXPECT_EQ(bounds_broken(cell_with(kMoved + 1)), "bytes");
  EXPECT_EQ(bounds_broken(cell_with(kMoved + 1, false)), "") << "nothing is held against it";
  EXPECT_EQ(bounds_broken(cell_with(kMoved / kMostHiddenBytes)), "");
  EXPECT_EQ(bounds_broken(cell_with(kMoved / kMostHiddenBytes - 1)), "roof");
  EXPECT_EQ(bounds_broken(cell_with(kMoved / kMostHiddenBytes - 1, false)), "") << "small cases are all tail";
  CountedCell sampled = cell_with(1.09 * kMoved);
  sampled.launches[0].blocks = 2;
  sampled.launches[0].written_sectors = 5;
  EXPECT_EQ(bounds_broken(sampled), "");
  sampled.cost.bytes = 1.11 * kMoved;
  EXPECT_EQ(bounds_broken(sampled), "bytes");
  CountedCell nothing = cell_with(1);
  nothing.launches.clear();
  nothing.products.clear();
  EXPECT_EQ(bounds_broken(nothing), "bytes");
}

}  // namespace
}  // namespace twinbench
