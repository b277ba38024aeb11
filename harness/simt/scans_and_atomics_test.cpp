// Groups of lanes, scans and the rarer atomics on the host, against plain loops; and a planted race.
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/simt/kernel_testing.h"
#include "kernels/common/simt_atomic.h"
#include "kernels/common/simt_scan.h"

namespace twinbench::kernels::simt {
namespace {

struct ScanArguments {
  const int* values;    // [threads]
  const int* segments;  // [threads], ascending within a warp
  int *inclusive, *by_segment, *before, *total, *group, *down, *first;
};
struct Scans {
  static constexpr int kMaxThreads = 1024;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const ScanArguments& a) const {
    const int i = thread_rank(block), value = a.values[i];
    a.inclusive[i] = warp_inclusive_sum(block, value);
    a.by_segment[i] = warp_segment_sum(block, value, a.segments[i]);
    a.group[i] = group_sum<8>(block, value);
    a.down[i] = group_shuffle_down<8>(block, value, 3);
    a.first[i] = group_shuffle_index<16>(block, value, 0);
    const Prefix<int> prefix = block_exclusive_sum(block, value);
    a.before[i] = prefix.before;
    a.total[i] = prefix.total;
  }
};

class ScanKernels : public testing::TestWithParam<std::size_t> {};

TEST_P(ScanKernels, EqualPlainLoops) {
  const std::size_t threads = GetParam();
  using Ints = GuardedBuffer<int>;
  const Ints values(threads), segments(threads);
  int all = 0;
  for (std::size_t i = 0; i < threads; ++i) {
    values[i] = static_cast<int>(i * 2654435761u % 101) - 50;
    segments[i] = static_cast<int>(i / 5 + i / 7);
    all += values[i];
  }
  for (const Order order : kAllOrders) {
    const Ints inclusive(threads), by_segment(threads), before(threads), total(threads), group(threads), down(threads),
        first(threads);
    run_clean(Scans{}, 1, static_cast<std::int64_t>(threads), order,
              ScanArguments{values.data(), segments.data(), inclusive.data(), by_segment.data(), before.data(),
                            total.data(), group.data(), down.data(), first.data()});
    int so_far = 0;
    for (std::size_t i = 0; i < threads; ++i) {
      const auto sum = [&](std::size_t from, std::size_t to, bool segment) {
        int result = 0;
        for (std::size_t k = from; k <= to; ++k)
          if (!segment || segments[k] == segments[i]) result += values[k];
        return result;
      };
      ASSERT_EQ(inclusive[i], sum(i / 32 * 32, i, false)) << i;
      ASSERT_EQ(by_segment[i], sum(i / 32 * 32, i, true)) << i;
      ASSERT_EQ(group[i], sum(i / 8 * 8, i / 8 * 8 + 7, false)) << i;
      ASSERT_EQ(down[i], values[i % 8 + 3 < 8 ? i + 3 : i]) << i;
      ASSERT_EQ(first[i], values[i / 16 * 16]) << i;
      ASSERT_EQ(before[i], so_far) << i;
      ASSERT_EQ(total[i], all) << i;
      so_far += values[i];
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Threads, ScanKernels, testing::Values(32, 96, 1024));

struct AtomicArguments {
  const float* values;
  float* largest;     // [1]
  unsigned* winner;   // [1], 0 before
  unsigned* claimed;  // [1]: how many threads claimed the slot first
  float* last;        // [1]
};
struct Atomics {
  static constexpr int kMaxThreads = 64;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const AtomicArguments& a) const {
    const auto i = static_cast<unsigned>(thread_rank(block));
    auto best = shared_array<float, 1>(block);
    if (i == 0) best[0] = -INFINITY;
    block.barrier();
    atomic_max_float(block, best + 0, a.values[i]);
    atomic_max_float(block, a.largest, a.values[i]);
    if (atomic_compare_and_swap(block, a.winner, 0u, i + 1) == 0) atomic_add(block, a.claimed, 1u);
    block.barrier();
    if (i == 0) atomic_exchange(block, a.last, static_cast<float>(best[0]));
  }
};
TEST(AtomicKernels, LargestFloatClaimAndExchange) {
  for (const float shift : {-3.0f, 0.0f, 3.0f}) {  // all negative, of both signs, all positive
    Floats numbers = spread(64, 1);
    for (float& number : numbers) number += shift;
    const Buffer values(numbers);
    const float expected = *std::max_element(numbers.begin(), numbers.end());
    for (const Order order : kAllOrders) {
      const Buffer largest(Floats{-1e30f}), last(Floats{0.0f});
      const GuardedBuffer<unsigned> winner(std::vector<unsigned>{0}), claimed(std::vector<unsigned>{0});
      run_clean(Atomics{}, 1, 64, order,
                AtomicArguments{values.data(), largest.data(), winner.data(), claimed.data(), last.data()});
      EXPECT_EQ(largest[0], expected);
      EXPECT_EQ(last[0], expected);
      EXPECT_EQ(claimed[0], 1u);
      EXPECT_GE(winner[0], 1u);
    }
  }
}

// One thread stores plainly where others update atomically.
struct PlainStoreAmongAtomics {
  static constexpr int kMaxThreads = 64;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const AtomicArguments& a) const {
    const int i = thread_rank(block);
    auto best = shared_array<float, 1>(block);
    if (i == 0) best[0] = -INFINITY;
    block.barrier();
    if (i == 40)
      best[0] = a.values[i];
    else
      atomic_max_float(block, best + 0, a.values[i]);
  }
};
TEST(AtomicKernels, APlainStoreAmongThemIsARace) {
  const Buffer values(spread(64, 1));
  for (const Order order : kAllOrders)
    EXPECT_TRUE(launch_on_host(PlainStoreAmongAtomics{}, 1, 64, 0, {.order = order, .seed = 7},
                               AtomicArguments{values.data(), nullptr, nullptr, nullptr, nullptr})
                    .has(FindingKind::kRace));
}

}  // namespace
}  // namespace twinbench::kernels::simt
