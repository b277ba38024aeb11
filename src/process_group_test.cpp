// The loop-back's sums, its order, and what it refuses. Processes: optimized/energy_flow/data_parallel.
#include "src/process_group.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "src/common/error.h"

namespace twinbench {
namespace {

std::string refused(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(LoopBack, SumsInTheOrderOfRanksWhoeverComesLast) {
  // In fp32 1e8 + 3 + -1e8 is 0 in the order of ranks, 3 in others.
  for (const std::vector<int> order : {std::vector{0, 1, 2}, {2, 0, 1}, {1, 2, 0}}) {
    const auto ranks = ProcessGroup::loop_back(3);
    const std::vector<at::Tensor> tensors = {at::full({40000}, 1e8), at::full({40000}, 3.0), at::full({40000}, -1e8)};
    for (const int rank : order)
      ranks[static_cast<std::size_t>(rank)]->begin_all_reduce(tensors[static_cast<std::size_t>(rank)]);
    for (const auto& rank : ranks) rank->wait_all();
    for (const at::Tensor& tensor : tensors) EXPECT_TRUE(tensor.eq(0).all().item<bool>());
  }
}

TEST(LoopBack, MeetingsAreMatchedByTheirPlace) {
  const auto ranks = ProcessGroup::loop_back(2);
  const at::Tensor few[] = {at::full({2}, 1.0, at::kDouble), at::full({2}, 2.0, at::kDouble)};
  const at::Tensor first[] = {at::full({3}, 7, at::kLong), at::full({3}, 9, at::kLong)};
  for (int rank = 0; rank < 2; ++rank) {
    ranks[static_cast<std::size_t>(rank)]->begin_all_reduce_together({few[rank]});
    ranks[static_cast<std::size_t>(rank)]->begin_broadcast(first[rank]);
    EXPECT_EQ(ranks[static_cast<std::size_t>(rank)]->done(), 2 * rank);
  }
  for (int rank = 0; rank < 2; ++rank) {
    ranks[static_cast<std::size_t>(rank)]->wait_all();
    EXPECT_EQ(few[rank][1].item<double>(), 3);
    EXPECT_EQ(first[rank][2].item<std::int64_t>(), 7);
    EXPECT_EQ(ranks[static_cast<std::size_t>(rank)]->calls(), 1);
    EXPECT_EQ(ranks[static_cast<std::size_t>(rank)]->bytes(), 16);
  }
}

TEST(LoopBack, ToWaitForRanksOfTheOwnThreadIsAnError) {
  const auto ranks = ProcessGroup::loop_back(2);
  ranks[0]->begin_all_reduce(at::ones({5}));
  EXPECT_NE(refused([&] { ranks[0]->wait_all(); }).find("loop-back rank 0"), std::string::npos);
}

TEST(LoopBack, RanksThatAskForDifferentThingsAreNamed) {
  const auto ranks = ProcessGroup::loop_back(2);
  ranks[0]->begin_all_reduce(at::ones({5}));
  EXPECT_NE(refused([&] { ranks[1]->begin_all_reduce(at::ones({6})); }).find("loop-back rank 1"), std::string::npos);
  EXPECT_NE(refused([&] { ranks[1]->begin_broadcast(at::ones({5})); }).find("asks for something else"),
            std::string::npos);
}

}  // namespace
}  // namespace twinbench
