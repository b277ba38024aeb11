// Kernels with one planted bug each: the host run must name every one, with its kind, in all three thread orders.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "harness/simt/host.h"

namespace twinbench::kernels::simt {
namespace {

constexpr std::uint64_t kSeed = 20260117;

struct ArrayArguments {
  float* data;
  int count;
};

// Reads a neighbour's element without waiting for it.
struct MissingBarrier {
  static constexpr int kMaxThreads = 64;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const ArrayArguments& a) const {
    auto tile = shared_array<float, 64>(block);
    const int i = static_cast<int>(block.thread().x);
    tile[i] = a.data[i];
    a.data[i] = tile[(i + 33) % 64];
  }
};

// The same inside one warp: a shuffle orders no memory.
struct MissingWarpBarrier {
  static constexpr int kMaxThreads = 32;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const ArrayArguments& a) const {
    auto tile = shared_array<float, 32>(block);
    const int i = static_cast<int>(block.thread().x);
    tile[i] = a.data[i];
    block.shuffle_xor(i, 1);
    a.data[i] = tile[31 - i];
  }
};

// Two buffers alternate, but the next round overwrites what slower threads still read.
struct MissingSecondBarrier {
  static constexpr int kMaxThreads = 64;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const ArrayArguments& a) const {
    auto tile = shared_array<float, 64>(block);
    const int i = static_cast<int>(block.thread().x);
    for (int round = 0; round < 3; ++round) {
      tile[i] = a.data[i];
      block.barrier();
      a.data[i] = tile[(i + 40) % 64] + 1.0f;
    }
  }
};

struct OffByOneTail {
  static constexpr int kMaxThreads = 64;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const ArrayArguments& a) const {
    const std::int64_t i = global_index(block);
    if (i <= a.count) a.data[i] = 1.0f;
  }
};

struct ReadsBeforeTheStart {
  static constexpr int kMaxThreads = 64;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const ArrayArguments& a) const {
    const std::int64_t i = global_index(block);
    if (i < a.count) a.data[i - 1] = 1.0f;
  }
};

// Threads past the count write nothing, yet the reduction reads all 64.
struct UninitialisedSharedRead {
  static constexpr int kMaxThreads = 64;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const ArrayArguments& a) const {
    auto tile = dynamic_shared<float>(block);
    const int i = static_cast<int>(block.thread().x);
    if (i < a.count) tile[i] = a.data[i];
    block.barrier();
    if (i == 0) {
      float sum = 0;
      for (int j = 0; j < 64; ++j) sum += tile[j];
      a.data[0] = sum;
    }
  }
};

// Block 1 relies on what block 0 left behind.
struct StaleSharedMemory {
  static constexpr int kMaxThreads = 64;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const ArrayArguments& a) const {
    auto tile = shared_array<float, 64>(block);
    const int i = static_cast<int>(block.thread().x);
    if (block.index().x == 0) tile[i] = a.data[i];
    block.barrier();
    a.data[i] = tile[i];
  }
};

struct DivergentBarrier {
  static constexpr int kMaxThreads = 64;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const ArrayArguments& a) const {
    const int i = static_cast<int>(block.thread().x);
    if (i >= a.count) return;  // the tail leaves before the barrier
    block.barrier();
    a.data[i] = 1.0f;
  }
};

struct TwoDifferentBarriers {
  static constexpr int kMaxThreads = 64;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const ArrayArguments&) const {
    if (block.thread().x < 32) {
      block.barrier();
    } else {
      block.barrier();
    }
  }
};

// Half the warp shuffles with the mask of the whole warp.
struct WrongShuffleMask {
  static constexpr int kMaxThreads = 32;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const ArrayArguments& a) const {
    const int i = static_cast<int>(block.thread().x);
    if (i < 16) a.data[i] = block.shuffle_xor(a.data[i], 1);
  }
};

// The mask names the caller's half, the exchange reaches into the other one.
struct ShuffleOutsideMask {
  static constexpr int kMaxThreads = 32;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const ArrayArguments& a) const {
    const int i = static_cast<int>(block.thread().x);
    if (i < 16) a.data[i] = block.shuffle_xor(a.data[i], 16, 0x0000ffffu);
  }
};

struct MaskWithoutCaller {
  static constexpr int kMaxThreads = 32;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const ArrayArguments& a) const {
    const int i = static_cast<int>(block.thread().x);
    a.data[i] = static_cast<float>(block.ballot(true, 0x7fffffffu));
  }
};

struct UnsynchronisedSharedWrite {
  static constexpr int kMaxThreads = 64;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const ArrayArguments& a) const {
    auto total = shared_array<float, 1>(block);
    const int i = static_cast<int>(block.thread().x);
    if (i == 0) total[0] = 0.0f;
    block.barrier();
    total[0] += a.data[i];  // not atomic: updates get lost on a GPU
    block.barrier();
    if (i == 0) a.data[0] = total[0];
  }
};

struct AtomicMixedWithPlain {
  static constexpr int kMaxThreads = 64;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const ArrayArguments& a) const {
    auto total = shared_array<int, 1>(block);
    const int i = static_cast<int>(block.thread().x);
    if (i == 0) total[0] = 0;
    block.barrier();
    atomic_add(block, total + 0, 1);
    a.data[i] = static_cast<float>(static_cast<int>(total[0]));
  }
};

struct SharedIndexTooLarge {
  static constexpr int kMaxThreads = 64;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const ArrayArguments&) const {
    auto tile = shared_array<float, 64>(block);
    tile[static_cast<int>(block.thread().x) + 1] = 0.0f;
  }
};

struct TooMuchShared {
  static constexpr int kMaxThreads = 32;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const ArrayArguments&) const {
    auto large = shared_array<double, 13000>(block);
    large[lane(block)] = 1.0;
  }
};

struct BytesArguments {
  unsigned char* data;
  std::int64_t count;
};

// 32-bit index arithmetic in a grid of more than 2^31 threads.
struct GridStrideOverflow {
  static constexpr int kMaxThreads = 1024;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const BytesArguments& a) const {
    const int i = static_cast<int>(block.index().x * block.size().x + block.thread().x);
    if (i < a.count) a.data[i] = 1;
  }
};

struct Throws {
  static constexpr int kMaxThreads = 32;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const ArrayArguments&) const {
    if (block.thread().x == 5) throw std::runtime_error("planted");
  }
};

class PlantedBugs : public testing::TestWithParam<Order> {
 protected:
  template <class Kernel>
  Report run(int grid, int block, std::size_t shared, int count) {
    const GuardedBuffer<float> data(std::vector<float>(static_cast<std::size_t>(count), 1.0f), "data");
    return launch_on_host(Kernel{}, grid, block, shared, {.order = GetParam(), .seed = kSeed},
                          ArrayArguments{data.data(), count});
  }

  // Returns the first finding; an empty one, with the test failed, if there is none.
  Finding expect(const Report& report, FindingKind kind, const char* kernel) {
    EXPECT_TRUE(report.has(kind)) << report.text();
    if (report.findings.empty()) return {};
    EXPECT_NE(report.findings[0].kernel.find(kernel), std::string::npos) << report.text();
    if (testing::Test::HasFailure() || GetParam() == Order::kForward) std::printf("%s", report.text().c_str());
    return report.findings[0];
  }
};

TEST_P(PlantedBugs, MissingBarrier) { expect(run<MissingBarrier>(1, 64, 0, 64), FindingKind::kRace, "MissingBarrier"); }
TEST_P(PlantedBugs, MissingWarpBarrier) {
  expect(run<MissingWarpBarrier>(1, 32, 0, 32), FindingKind::kRace, "MissingWarpBarrier");
}
TEST_P(PlantedBugs, MissingSecondBarrier) {
  const Finding finding = expect(run<MissingSecondBarrier>(1, 64, 0, 64), FindingKind::kRace, "MissingSecondBarrier");
  EXPECT_GE(finding.other_thread, 0);
  EXPECT_GE(finding.offset, 0);
}
TEST_P(PlantedBugs, OffByOneTail) {
  for (const int count : {63, 64, 65, 1024}) {
    const Finding finding = expect(run<OffByOneTail>(20, 64, 0, count), FindingKind::kOutOfBounds, "OffByOneTail");
    EXPECT_EQ(finding.offset, count * 4);
    EXPECT_EQ(finding.thread, count % 64);
  }
}
TEST_P(PlantedBugs, OneElementBeforeTheStart) {
  expect(run<ReadsBeforeTheStart>(1, 64, 0, 64), FindingKind::kOutOfBounds, "ReadsBeforeTheStart");     // pattern
  expect(run<ReadsBeforeTheStart>(16, 64, 0, 1024), FindingKind::kOutOfBounds, "ReadsBeforeTheStart");  // guard page
}
TEST_P(PlantedBugs, UninitialisedSharedRead) {
  expect(run<UninitialisedSharedRead>(1, 64, 64 * sizeof(float), 63), FindingKind::kUninitialisedRead,
         "UninitialisedSharedRead");
  EXPECT_TRUE(run<UninitialisedSharedRead>(1, 64, 64 * sizeof(float), 64).ok());  // full tile: no bug to find
}
TEST_P(PlantedBugs, StaleSharedMemoryOfTheBlockBeforeIsUninitialised) {
  EXPECT_EQ(expect(run<StaleSharedMemory>(2, 64, 0, 64), FindingKind::kUninitialisedRead, "StaleSharedMemory").block.x,
            1u);
  EXPECT_TRUE(run<StaleSharedMemory>(1, 64, 0, 64).ok());
}
TEST_P(PlantedBugs, DivergentBarrier) {
  const Finding finding =
      expect(run<DivergentBarrier>(1, 64, 0, 63), FindingKind::kDivergentBarrier, "DivergentBarrier");
  EXPECT_EQ(finding.other_thread, 63);
}
TEST_P(PlantedBugs, TwoDifferentBarriers) {
  expect(run<TwoDifferentBarriers>(1, 64, 0, 64), FindingKind::kDivergentBarrier, "TwoDifferentBarriers");
}
TEST_P(PlantedBugs, WrongShuffleMask) {
  expect(run<WrongShuffleMask>(1, 32, 0, 32), FindingKind::kWarpMask, "WrongShuffleMask");
}
TEST_P(PlantedBugs, FullMaskInPartialWarp) {
  expect(run<WrongShuffleMask>(1, 16, 0, 32), FindingKind::kWarpMask, "WrongShuffleMask");
}
TEST_P(PlantedBugs, ShuffleOutsideMask) {
  expect(run<ShuffleOutsideMask>(1, 32, 0, 32), FindingKind::kShuffleSource, "ShuffleOutsideMask");
}
TEST_P(PlantedBugs, MaskWithoutCaller) {
  const Finding finding = expect(run<MaskWithoutCaller>(1, 32, 0, 32), FindingKind::kWarpMask, "MaskWithoutCaller");
  EXPECT_EQ(finding.thread, 31);
}
TEST_P(PlantedBugs, UnsynchronisedSharedWrite) {
  expect(run<UnsynchronisedSharedWrite>(1, 64, 0, 64), FindingKind::kRace, "UnsynchronisedSharedWrite");
}
TEST_P(PlantedBugs, AtomicMixedWithPlain) {
  expect(run<AtomicMixedWithPlain>(1, 64, 0, 64), FindingKind::kRace, "AtomicMixedWithPlain");
}
TEST_P(PlantedBugs, SharedIndexTooLarge) {
  expect(run<SharedIndexTooLarge>(1, 64, 0, 64), FindingKind::kSharedOutOfBounds, "SharedIndexTooLarge");
}
TEST_P(PlantedBugs, TooMuchShared) {
  expect(run<TooMuchShared>(1, 32, 0, 32), FindingKind::kSharedTooLarge, "TooMuchShared");
}
TEST_P(PlantedBugs, KernelThrows) { expect(run<Throws>(1, 32, 0, 32), FindingKind::kException, "Throws"); }

TEST_P(PlantedBugs, GridStrideOverflow) {
  // 3 GiB that are never touched but at two places; 4 GiB of guard on either side catch the wrapped index.
  const std::int64_t count = std::int64_t{3} << 30;
  const GuardedBuffer<unsigned char> data(static_cast<std::size_t>(count), "data", 1, std::size_t{1} << 32);
  const auto run_block = [&](std::int64_t block) {
    return launch_on_host(GridStrideOverflow{}, count / 1024, 1024, 0,
                          {.order = GetParam(), .seed = kSeed, .only_blocks = {block}},
                          BytesArguments{data.data(), count});
  };
  EXPECT_TRUE(run_block((std::int64_t{1} << 21) - 1).ok());  // the last indices below 2^31 are right
  const Finding finding = expect(run_block(std::int64_t{1} << 21), FindingKind::kOutOfBounds, "GridStrideOverflow");
  EXPECT_LT(finding.offset, 0);
}

INSTANTIATE_TEST_SUITE_P(AllOrders, PlantedBugs, testing::ValuesIn(kAllOrders),
                         [](const auto& order) { return std::string(to_string(order.param)); });

}  // namespace
}  // namespace twinbench::kernels::simt
