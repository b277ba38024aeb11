// Asynchronous copies on the host: a correct pipeline, and planted misuse in every thread order.
#include <gtest/gtest.h>

#include "harness/simt/example_tensor_kernels.h"
#include "harness/simt/kernel_testing.h"

namespace twinbench::kernels::simt {
namespace {

using examples::AsyncSum;
using examples::AsyncSumArguments;

constexpr int kTiles = 5;
constexpr std::size_t kSharedBytes = 2 * 256 * sizeof(float);

TEST(AsyncCopies, TwoBuffersGiveThePlainSum) {
  const GuardedBuffer<float> from(spread(kTiles * 256, 1), "from", 16);
  Floats expected(256);
  for (std::size_t tile = 0; tile < kTiles; ++tile)
    for (std::size_t i = 0; i < 256; ++i) expected[i] += from[256 * tile + 255 - i];
  for (const Order order : kAllOrders) {
    const Buffer sums(256);
    run_clean(AsyncSum{}, 1, 64, order, AsyncSumArguments{from.data(), sums.data(), kTiles}, kSharedBytes);
    ASSERT_EQ(sums.values(), expected);
  }
}

TEST(AsyncCopies, OneTileABlock) {
  const GuardedBuffer<float> from(spread(3 * 256, 1), "from", 16);
  for (const Order order : kAllOrders) {
    const Buffer to(3 * 256);
    run_clean(examples::AsyncPass{}, 3, 64, order, examples::AsyncPassArguments{from.data(), to.data()}, 1024);
    for (std::size_t i = 0; i < to.size(); ++i) ASSERT_EQ(to[i], from[i]);
  }
}

// Four and eight bytes, and zeros where there is nothing to read.
struct SmallCopies {
  static constexpr int kMaxThreads = 32;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const AsyncSumArguments& a) const {
    auto tile = dynamic_shared<float>(block);
    const int i = lane(block);
    async_copy<4>(block, tile + i, a.from + i);
    async_copy_or_zeros<8>(block, tile + 32 + 2 * i, a.from + 32 + 2 * i, i < 16);
    async_commit(block);
    async_wait<0>(block);
    for (int k = 0; k < 2; ++k) a.sums[32 + 2 * i + k] = static_cast<float>(tile[32 + 2 * i + k]);
    a.sums[i] = static_cast<float>(tile[i]);
  }
};
TEST(AsyncCopies, CopiesOfFourAndEightBytesAndZeros) {
  const GuardedBuffer<float> from(spread(64, 1), "from", 16);  // half of what valid copies of all lanes would read
  for (const Order order : kAllOrders) {
    const Buffer sums(96);
    run_clean(SmallCopies{}, 1, 32, order, AsyncSumArguments{from.data(), sums.data(), 1}, kSharedBytes);
    for (std::size_t i = 0; i < 96; ++i) ASSERT_EQ(sums[i], i < 64 ? from[i] : 0.0f) << i;
  }
}

// ---- planted misuse -------------------------------------------------------------------------------------------------

enum class Bug {
  kNoWait,        // the barrier alone does not make a copy arrive
  kWaitTooEarly,  // one group is left under way: the one that is read
  kNoBarrier,     // what arrived for one thread is not there for another
  kNeverWaited,   // the kernel ends with a copy under way
  kNotCommitted,  // a wait counts groups, and nobody ended this one
  kOverwritten,   // a plain store to where a copy is under way
  kReadByOthers,  // the next copy starts while others still read the tile
  kUnalignedFrom,
  kUnalignedTo,
};

template <Bug kBug>
struct Planted {
  static constexpr int kMaxThreads = 64;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const AsyncSumArguments& a) const {
    auto tile = dynamic_shared<float>(block);
    const int thread = static_cast<int>(block.thread().x);
    async_copy<16>(block, tile + 4 * thread + (kBug == Bug::kUnalignedTo ? 1 : 0),
                   a.from + 4 * thread + (kBug == Bug::kUnalignedFrom ? 1 : 0));
    if (kBug != Bug::kNotCommitted) async_commit(block);
    if (kBug == Bug::kOverwritten) tile[4 * thread] = 1.0f;
    if (kBug == Bug::kWaitTooEarly) async_wait<1>(block);
    if (kBug != Bug::kWaitTooEarly && kBug != Bug::kNoWait && kBug != Bug::kNeverWaited) async_wait<0>(block);
    if (kBug != Bug::kNoBarrier) block.barrier();
    if (kBug != Bug::kNeverWaited) a.sums[thread] = static_cast<float>(tile[252 - 4 * thread]);
    if (kBug == Bug::kReadByOthers) {
      async_copy<16>(block, tile + 4 * thread, a.from + 4 * thread);
      async_commit(block);
    }
    if (kBug != Bug::kNeverWaited && kBug != Bug::kNotCommitted) async_wait<0>(block);
  }
};

template <Bug kBug>
void expect_finding(FindingKind kind, const char* words) {
  const GuardedBuffer<float> from(spread(257, 1), "from", 16);
  const Buffer sums(64);
  for (const Order order : kAllOrders) {
    const Report report = launch_on_host(Planted<kBug>{}, 1, 64, kSharedBytes, {.order = order, .seed = 7},
                                         AsyncSumArguments{from.data(), sums.data(), 1});
    EXPECT_TRUE(report.has(kind)) << to_string(order) << ": " << report.text();
    EXPECT_NE(report.text().find(words), std::string::npos) << report.text();
  }
}

TEST(AsyncCopiesMisuse, EveryOneIsAFinding) {
  expect_finding<Bug::kNoWait>(FindingKind::kUninitialisedRead, "nobody wrote");
  expect_finding<Bug::kWaitTooEarly>(FindingKind::kUninitialisedRead, "nobody wrote");
  expect_finding<Bug::kNotCommitted>(FindingKind::kUninitialisedRead, "nobody wrote");
  expect_finding<Bug::kNeverWaited>(FindingKind::kAsyncCopy, "without waiting");
  expect_finding<Bug::kOverwritten>(FindingKind::kAsyncCopy, "under way");
  expect_finding<Bug::kReadByOthers>(FindingKind::kRace, "no barrier between");
  expect_finding<Bug::kUnalignedFrom>(FindingKind::kException, "misaligned");
  expect_finding<Bug::kUnalignedTo>(FindingKind::kException, "misaligned");
}

// Where a thread reads before the copying one has waited, nobody has written yet; else it is a race.
TEST(AsyncCopiesMisuse, AMissingBarrierIsAFinding) {
  const GuardedBuffer<float> from(spread(256, 1), "from", 16);
  const Buffer sums(64);
  for (const Order order : kAllOrders) {
    const Report report = launch_on_host(Planted<Bug::kNoBarrier>{}, 1, 64, kSharedBytes, {.order = order, .seed = 7},
                                         AsyncSumArguments{from.data(), sums.data(), 1});
    EXPECT_TRUE(report.has(FindingKind::kRace) || report.has(FindingKind::kUninitialisedRead)) << report.text();
  }
}

}  // namespace
}  // namespace twinbench::kernels::simt
