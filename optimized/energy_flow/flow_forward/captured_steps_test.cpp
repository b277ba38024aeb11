// Buckets of recorded steps: what the host knows of the flows without asking, and how often it records.
#define TWINBENCH_SIMT
#include "optimized/energy_flow/common/captured_steps.h"

#include <gtest/gtest.h>

#include <set>

namespace twinbench::energy_flow::flow_forward {
namespace {

TEST(CapturedSteps, BucketsArePowersOfTwoUpToAllSlots) {
  const MostFlows flows{.placed = 300, .slots = 3000, .children = 1};
  EXPECT_EQ(flows.bucket(0), 512);
  EXPECT_EQ(flows.bucket(1), 1024);
  EXPECT_EQ(flows.bucket(2), 2048);
  EXPECT_EQ(flows.bucket(3), 3000) << "2,400 flows: no more rows than slots";
  EXPECT_EQ(flows.bucket(65535), 3000);
  EXPECT_EQ((MostFlows{.placed = 300, .slots = 300, .children = 0}.bucket(9)), 300);
  EXPECT_EQ((MostFlows{.placed = 12, .slots = 5000, .children = 0}.bucket(9)), 256);
  EXPECT_EQ((MostFlows{.placed = 12, .slots = 20, .children = 3}.bucket(4)), 20) << "fewer slots than the least bucket";
}

TEST(CapturedSteps, ABucketIsRecordedOnceForEachOfTheStatesTwoMemories) {
  std::multiset<std::pair<std::int64_t, std::int32_t>> recorded;
  const CapturedSteps steps({.placed = 300, .slots = 3000, .children = 1}, 50,
                            [&](std::int64_t rows, std::int32_t t, kernels::Stream) { recorded.emplace(rows, t); });
  EXPECT_EQ(recorded, (std::multiset<std::pair<std::int64_t, std::int32_t>>{
                          {512, 0}, {1024, 1}, {2048, 0}, {3000, 0}, {3000, 1}}));
  EXPECT_EQ(&steps.of_step(4), &steps.of_step(48));
  EXPECT_NE(&steps.of_step(3), &steps.of_step(48));
}

}  // namespace
}  // namespace twinbench::energy_flow::flow_forward
