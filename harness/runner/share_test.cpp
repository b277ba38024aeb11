// Shards part any list completely and disjointly and stay where they are; budgets are spent once and for all.
#include "harness/runner/share.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "src/common/error.h"

namespace twinbench {
namespace {

TEST(Share, TheHashIsTheSameEverywhere) {
  EXPECT_EQ(name_hash(""), 0xFDBDF6AC4FC52E7Full) << std::hex << name_hash("");
  EXPECT_EQ(name_hash("sem.cayley/cpu/fp32/train"), name_hash(std::string("sem.cayley/cpu/") + "fp32/train"));
  EXPECT_NE(name_hash("a/train"), name_hash("b/train"));
}

TEST(Share, EveryNameIsInExactlyOneShardAndEachHasItsPart) {
  for (const std::uint64_t of : {1, 2, 3, 7}) {
    std::vector<int> counts(of);
    for (int i = 0; i < 700; ++i) {
      const std::string name = "pipeline.component_" + std::to_string(i) + "/cpu/fp32/train";
      int shards = 0;
      for (std::uint64_t index = 1; index <= of; ++index)
        if (Shard{index, of}.has(name)) {
          ++shards;
          ++counts[index - 1];
        }
      EXPECT_EQ(shards, 1) << name << " of " << of;
    }
    for (const int count : counts) EXPECT_GT(count, 700 / static_cast<int>(of) / 2) << "of " << of;
  }
}

TEST(Share, ReadsShardsAndRefusesOthers) {
  EXPECT_TRUE(shard_named("").has("anything"));
  EXPECT_EQ(shard_named("2/3").index, 2u);
  EXPECT_EQ(shard_named("2/3").of, 3u);
  for (const char* wrong : {"0/3", "4/3", "1/0", "2", "/", "a/b", "1/3x", "-1/3", "1/3/5", " 1/3"})
    EXPECT_THROW(shard_named(wrong), Error) << wrong;
}

TEST(Share, ABudgetIsSpentAndSaysSo) {
  EXPECT_FALSE(TimeBudget(0).spent());
  EXPECT_FALSE(TimeBudget(10).spent());
  const TimeBudget budget(0.0005);  // 30 ms
  EXPECT_FALSE(budget.spent());
  std::this_thread::sleep_for(std::chrono::milliseconds(40));
  EXPECT_TRUE(budget.spent());
  EXPECT_NE(TimeBudget(2).reason().find("2 minutes"), std::string::npos);
}

}  // namespace
}  // namespace twinbench
