// The rule of a handover, step by step: each step that is left out leaves the blocks unordered.
#include "harness/simt/counting/block_order.h"

#include <gtest/gtest.h>

namespace twinbench::kernels::simt {
namespace {

constexpr std::uint64_t kCounter = 0x1000;

struct Steps {
  bool barrier = true, first_fence = true, count = true, other_counts = true, second_fence = true;
};

// Warp 3 of block 1 writes; warp 0 hands over; block 2 takes over. Is the write ordered before what block 2 does?
bool handed_over(const Steps& steps) {
  BlockOrder order;
  order.begin_launch();
  order.begin_block(1);
  const std::uint32_t write = order.stamp(1, 3);
  if (steps.barrier) order.pass_barrier(1);
  if (steps.first_fence) order.fence(1, 0);
  if (steps.count) order.update(1, 0, kCounter);
  order.begin_block(2);
  if (steps.other_counts) order.update(2, 0, kCounter);
  if (steps.second_fence) order.fence(2, 0);
  return order.is_ordered(1, write, 2);
}

TEST(BlockOrder, AHandoverNeedsEveryStep) {
  EXPECT_TRUE(handed_over({}));
  EXPECT_FALSE(handed_over({.barrier = false}));
  EXPECT_FALSE(handed_over({.first_fence = false}));
  EXPECT_FALSE(handed_over({.count = false}));
  EXPECT_FALSE(handed_over({.other_counts = false}));
  EXPECT_FALSE(handed_over({.second_fence = false}));
}

TEST(BlockOrder, TheOrderOfTheStepsMatters) {
  BlockOrder order;
  order.begin_launch();
  order.fence(1, 0);
  order.update(1, 0, kCounter);
  const std::uint32_t late = order.stamp(1, 0);  // after the handover
  order.update(2, 0, kCounter);
  order.fence(2, 0);
  EXPECT_FALSE(order.is_ordered(1, late, 2));
  EXPECT_FALSE(order.is_ordered(2, order.stamp(2, 0), 1));  // nor the other way round
}

TEST(BlockOrder, AThirdBlockLearnsFromTheSecondWhatThatHasLearnt) {
  BlockOrder order;
  order.begin_launch();
  const std::uint32_t write = order.stamp(1, 0);
  order.fence(1, 0);
  order.update(1, 0, kCounter);
  order.update(2, 0, kCounter);
  order.fence(2, 0);
  order.update(2, 0, kCounter + 64);  // another word
  order.update(3, 0, kCounter + 64);
  order.fence(3, 0);
  EXPECT_TRUE(order.is_ordered(1, write, 3));
  EXPECT_TRUE(order.has_acquired_all(3));
}

TEST(BlockOrder, ABarrierOfAllOrdersAll) {
  BlockOrder order;
  order.begin_launch();
  const std::uint32_t write = order.stamp(1, 5);
  order.join(1, 2);
  EXPECT_TRUE(order.is_ordered(1, write, 2));
  EXPECT_FALSE(order.is_ordered(1, order.stamp(1, 5), 2));
  EXPECT_FALSE(order.is_ordered(1, write, 3));  // of another cluster
}

}  // namespace
}  // namespace twinbench::kernels::simt
