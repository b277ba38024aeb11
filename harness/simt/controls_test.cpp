// Correct kernels must run without findings, with right results, in every thread order, at tails and empty sizes.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "harness/simt/example_kernels.h"
#include "harness/simt/host.h"

namespace twinbench::kernels::simt {
namespace {

using namespace examples;

constexpr std::uint64_t kSeed = 20260117;

std::vector<float> values(std::size_t count) {
  std::vector<float> result(count);
  for (std::size_t i = 0; i < count; ++i) result[i] = static_cast<float>((i * 37 + 11) % 101) / 16.0f - 3.0f;
  return result;
}

class Controls : public testing::TestWithParam<Order> {
 protected:
  HostOptions options() const { return {.order = GetParam(), .seed = kSeed}; }
};

TEST_P(Controls, BlockSum) {
  for (const std::size_t count : {0u, 1u, 31u, 255u, 256u, 257u, 1009u}) {
    const GuardedBuffer<float> input(values(count), "input");
    const GuardedBuffer<float> output(3, "output");
    const Report report =
        launch_on_host(BlockSum{}, 3, 128, 0, options(),
                       BlockSumArguments{input.data(), output.data(), static_cast<std::int64_t>(count)});
    EXPECT_TRUE(report.ok()) << report.text();
    EXPECT_EQ(report.barriers, 6u);
    const float expected = std::accumulate(input.begin(), input.end(), 0.0f);  // exact: multiples of 1/16
    EXPECT_EQ(output[0] + output[1] + output[2], expected) << count;
  }
}

TEST_P(Controls, TiledTranspose) {
  for (const auto& [rows, columns] : {std::pair{1, 1}, {31, 33}, {64, 32}, {65, 7}}) {
    const GuardedBuffer<float> input(values(static_cast<std::size_t>(rows * columns)), "input");
    const GuardedBuffer<float> output(input.size(), "output");
    const Report report = launch_on_host(TiledTranspose{}, {(columns + 31) / 32, (rows + 31) / 32}, {32, 8}, 0,
                                         options(), TransposeArguments{input.data(), output.data(), rows, columns});
    EXPECT_TRUE(report.ok()) << report.text();
    for (int r = 0; r < rows; ++r) {
      for (int c = 0; c < columns; ++c) {
        ASSERT_EQ(output[static_cast<std::size_t>(c * rows + r)], input[static_cast<std::size_t>(r * columns + c)]);
      }
    }
  }
}

TEST_P(Controls, RowSoftmax) {
  for (const int columns : {1, 2, 97, 128, 300}) {
    const GuardedBuffer<float> input(values(static_cast<std::size_t>(4 * columns)), "input");
    const GuardedBuffer<float> output(input.size(), "output");
    const Report report = launch_on_host(RowSoftmax{}, 4, 128, static_cast<std::size_t>(columns) * sizeof(float),
                                         options(), SoftmaxArguments{input.data(), output.data(), columns});
    EXPECT_TRUE(report.ok()) << report.text();
    for (int r = 0; r < 4; ++r) {
      double sum = 0;
      for (int c = 0; c < columns; ++c)
        sum += std::exp(static_cast<double>(input[static_cast<std::size_t>(r * columns + c)]));
      for (int c = 0; c < columns; ++c) {
        const auto i = static_cast<std::size_t>(r * columns + c);
        ASSERT_NEAR(output[i], std::exp(static_cast<double>(input[i])) / sum, 1e-6) << i;
      }
    }
  }
}

TEST_P(Controls, Histogram) {
  const std::size_t count = 777;
  const GuardedBuffer<int> input(count, "input");
  for (std::size_t i = 0; i < count; ++i) input[i] = static_cast<int>(i * i % 64);
  const GuardedBuffer<int> counts(std::vector<int>(64, 0), "counts");
  const Report report =
      launch_on_host(Histogram{}, 2, 96, 0, options(), HistogramArguments{input.data(), counts.data(), 777});
  EXPECT_TRUE(report.ok()) << report.text();
  std::vector<int> expected(64, 0);
  for (const int value : input) ++expected[static_cast<std::size_t>(value)];
  EXPECT_EQ(counts.values(), expected);
}

TEST_P(Controls, WarpCompact) {
  const GuardedBuffer<float> input(values(32), "input");
  const GuardedBuffer<int> positions(32, "positions");
  const Report report =
      launch_on_host(WarpCompact{}, 1, 32, 0, options(), CompactArguments{input.data(), positions.data()});
  EXPECT_TRUE(report.ok()) << report.text();
  std::vector<int> expected;
  for (int i = 0; i < 32; ++i) {
    if (input[static_cast<std::size_t>(i)] > 0) expected.push_back(i);
  }
  expected.resize(32, -1);
  EXPECT_EQ(positions.values(), expected);
}

// What every lane gets from each warp operation, by the definition of the CUDA intrinsics.
struct WarpTableArguments {
  int* down;        // [32], by 5
  int* exchange;    // [32], with lane ^ 6
  int* indexed;     // [32], lane (3 * lane) mod 32, given without the mod
  unsigned* votes;  // [32], of odd lanes, asked in the lower and the upper half separately
};
struct WarpTable {
  static constexpr int kMaxThreads = 32;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const WarpTableArguments& a) const {
    const int own = lane(block);
    a.down[own] = block.shuffle_down(100 + own, 5);
    a.exchange[own] = block.shuffle_xor(100 + own, 6);
    a.indexed[own] = block.shuffle_index(100 + own, 3 * own);
    a.votes[own] = block.ballot(own % 2 == 1, own < 16 ? 0x0000ffffu : 0xffff0000u);
  }
};

TEST_P(Controls, WarpOperationsGiveWhatCudaGives) {
  const GuardedBuffer<int> down(32, "down"), exchange(32, "exchange"), indexed(32, "indexed");
  const GuardedBuffer<unsigned> votes(32, "votes");
  const Report report = launch_on_host(WarpTable{}, 1, 32, 0, options(),
                                       WarpTableArguments{down.data(), exchange.data(), indexed.data(), votes.data()});
  EXPECT_TRUE(report.ok()) << report.text();
  for (int i = 0; i < 32; ++i) {
    const auto at = static_cast<std::size_t>(i);
    EXPECT_EQ(down[at], i + 5 < 32 ? 105 + i : 100 + i);
    EXPECT_EQ(exchange[at], 100 + (i ^ 6));
    EXPECT_EQ(indexed[at], 100 + 3 * i % 32);
    EXPECT_EQ(votes[at], i < 16 ? 0x0000aaaau : 0xaaaa0000u);
  }
}

INSTANTIATE_TEST_SUITE_P(AllOrders, Controls, testing::ValuesIn(kAllOrders),
                         [](const auto& order) { return std::string(to_string(order.param)); });

TEST(HostRun, EmptyGridRunsNothing) {
  const Report report = launch_on_host(BlockSum{}, 0, 128, 0, {}, BlockSumArguments{nullptr, nullptr, 0});
  EXPECT_TRUE(report.ok());
  EXPECT_EQ(report.threads, 0u);
}

TEST(HostRun, OnlyTheNamedBlocksRun) {
  const GuardedBuffer<float> input(values(512), "input");
  const GuardedBuffer<float> output(std::vector<float>(4, -1.0f), "output");
  const Report report = launch_on_host(BlockSum{}, 4, 128, 0, {.order = Order::kForward, .seed = 0, .only_blocks = {2}},
                                       BlockSumArguments{input.data(), output.data(), 512});
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(output[1], -1.0f);
  EXPECT_EQ(output[2], std::accumulate(input.begin() + 256, input.begin() + 384, 0.0f));
}

TEST(HostRun, RefusesLaunchesThatCudaRefuses) {
  const BlockSumArguments none{nullptr, nullptr, 0};
  EXPECT_THROW(launch_on_host(BlockSum{}, 1, 512, 0, {}, none), std::invalid_argument);  // above its launch bound
  EXPECT_THROW(launch_on_host(BlockSum{}, 1, 0, 0, {}, none), std::invalid_argument);
  EXPECT_THROW(launch_on_host(BlockSum{}, {1, 70000}, 32, 0, {}, none), std::invalid_argument);
}

TEST(HostRun, EqualSeedsGiveEqualRuns) {
  const GuardedBuffer<float> input(values(1000), "input");
  const GuardedBuffer<float> output(3, "output");
  const HostOptions options{.order = Order::kShuffled, .seed = kSeed};
  const BlockSumArguments arguments{input.data(), output.data(), 1000};
  const Report first = launch_on_host(BlockSum{}, 3, 128, 0, options, arguments);
  const Report second = launch_on_host(BlockSum{}, 3, 128, 0, options, arguments);
  EXPECT_EQ(first.switches, second.switches);
}

}  // namespace
}  // namespace twinbench::kernels::simt
