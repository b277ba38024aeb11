// Sectors and wavefronts of known patterns, worked by hand.
#include "harness/simt/counting/warp_request.h"

#include <gtest/gtest.h>

#include <functional>

namespace twinbench::kernels::simt {
namespace {

WarpRequest32 request(std::uint32_t bytes, const std::function<std::uint64_t(int)>& address, int lanes = 32) {
  WarpRequest32 result{.bytes = bytes, .count = lanes};
  for (int lane = 0; lane < lanes; ++lane) {
    result.addresses[lane] = address(lane);
    result.lanes[lane] = static_cast<std::uint8_t>(lane);
  }
  return result;
}

RequestCost global(std::uint32_t bytes, const std::function<std::uint64_t(int)>& address, int lanes = 32) {
  std::vector<Interval> touched;
  return cost_of_global(request(bytes, address, lanes), touched);
}
RequestCost shared(std::uint32_t bytes, const std::function<std::uint64_t(int)>& address, int lanes = 32) {
  std::vector<Interval> touched;
  return cost_of_shared(request(bytes, address, lanes), touched);
}

TEST(GlobalRequest, NeighboursShareSectors) {
  const RequestCost cost = global(4, [](int lane) { return 1024 + 4 * lane; });
  EXPECT_EQ(cost.units, 4u);
  EXPECT_EQ(cost.ideal, 4u);
  EXPECT_EQ(cost.unique_bytes, 128u);
}

TEST(GlobalRequest, ARowThatStartsWithinASectorTakesOneMore) {
  const RequestCost cost = global(4, [](int lane) { return 1024 + 8 + 4 * lane; });
  EXPECT_EQ(cost.units, 5u);
  EXPECT_EQ(cost.ideal, 4u);
}

TEST(GlobalRequest, AStrideOfASectorTakesOneEach) {
  const RequestCost cost = global(4, [](int lane) { return 1024 + 32 * lane; });
  EXPECT_EQ(cost.units, 32u);
  EXPECT_EQ(cost.ideal, 4u);
}

TEST(GlobalRequest, OneAddressForAllIsOneSector) {
  const RequestCost cost = global(4, [](int) { return 1024; });
  EXPECT_EQ(cost.units, 1u);
  EXPECT_EQ(cost.unique_bytes, 4u);
  EXPECT_EQ(cost.most_on_one_address, 32);
}

TEST(GlobalRequest, VectorsAndOrderDoNotMatter) {
  const RequestCost cost = global(16, [](int lane) { return 4096 + 16 * (31 - lane); });
  EXPECT_EQ(cost.units, 16u);
  EXPECT_EQ(cost.ideal, 16u);
  EXPECT_EQ(cost.misaligned, 0);
  EXPECT_EQ(global(16, [](int lane) { return 4100 + 16 * lane; }).misaligned, 32);
}

TEST(GlobalRequest, FewLanes) {
  const RequestCost cost = global(
      2, [](int lane) { return 64 + 2 * lane; }, 5);
  EXPECT_EQ(cost.units, 1u);
  EXPECT_EQ(cost.ideal, 1u);
  EXPECT_EQ(cost.unique_bytes, 10u);
}

TEST(SharedRequest, ConsecutiveWordsTakeOneWavefront) {
  const RequestCost cost = shared(4, [](int lane) { return 4 * lane; });
  EXPECT_EQ(cost.units, 1u);
  EXPECT_EQ(cost.ideal, 1u);
}

TEST(SharedRequest, StridesOfTwoAndThirtyTwoWords) {
  EXPECT_EQ(shared(4, [](int lane) { return 8 * lane; }).units, 2u);
  EXPECT_EQ(shared(4, [](int lane) { return 128 * lane; }).units, 32u);
  EXPECT_EQ(shared(4, [](int lane) { return 132 * lane; }).units, 1u);
}

TEST(SharedRequest, HalvesOfWordsAreNoConflict) {
  EXPECT_EQ(shared(2, [](int lane) { return 2 * lane; }).units, 1u);
}

TEST(SharedRequest, EightBytesGoInHalvesAndSixteenInQuarters) {
  const RequestCost eight = shared(8, [](int lane) { return 8 * lane; });
  EXPECT_EQ(eight.units, 2u);
  EXPECT_EQ(eight.ideal, 2u);
  const RequestCost sixteen = shared(16, [](int lane) { return 16 * lane; });
  EXPECT_EQ(sixteen.units, 4u);
  EXPECT_EQ(sixteen.ideal, 4u);
  // A stride of 32 bytes: each quarter has two words in each of 16 banks.
  EXPECT_EQ(shared(16, [](int lane) { return 32 * lane; }).units, 8u);
}

TEST(SharedRequest, ABroadcastIsOneWavefrontAtAnySize) {
  EXPECT_EQ(shared(4, [](int) { return 12; }).units, 1u);
  EXPECT_EQ(shared(16, [](int) { return 16; }).units, 1u);
}

TEST(SharedRequest, IdleQuartersAreFree) {
  EXPECT_EQ(shared(
                16, [](int lane) { return 16 * lane; }, 8)
                .units,
            1u);
}

}  // namespace
}  // namespace twinbench::kernels::simt
