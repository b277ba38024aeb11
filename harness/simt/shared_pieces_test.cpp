// Pieces of shared memory that are judged as one: accesses of every width keep the history of every byte.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "harness/simt/kernel_testing.h"

namespace twinbench::kernels::simt {
namespace {

TEST(SharedPieces, EveryByteKeepsItsOwnHistory) {
  std::mt19937 random(7);
  for (int run = 0; run < 200; ++run) {
    const int smallest = run % 2 + 1;
    constexpr int kBytes = 90;  // no whole number of lines
    SharedRegion region("a region", kBytes, smallest);
    std::vector<std::uint32_t> last(kBytes, 0);
    const auto access = [&](int size, std::uint32_t number) {
      const int offset = static_cast<int>(random() % static_cast<unsigned>(kBytes / size)) * size;
      int pieces = 0;
      region.each_piece(offset, size, [&](SharedRegion::Granule& piece) { piece.write.clock = number, ++pieces; });
      EXPECT_GE(pieces, 1);
      EXPECT_LE(pieces, size / smallest);
      for (int i = offset; i < offset + size; ++i) last[static_cast<std::size_t>(i)] = number;
    };
    // Wide ones alone, then any: what they have divided stays divided, and nothing else is.
    for (std::uint32_t number = 1; number < 20; ++number) access(16, number);
    for (std::uint32_t number = 20; number < 40; ++number) access(1 << (random() % 4 + (smallest == 2)), number);
    for (int i = 0; i < kBytes; i += smallest)
      region.each_piece(i, smallest, [&](const SharedRegion::Granule& piece) {
        ASSERT_EQ(piece.write.clock, last[static_cast<std::size_t>(i)]) << "byte " << i << " of run " << run;
      });
  }
}

struct Words {
  alignas(16) float of[4];
};

// A thread of another warp reads or writes one word of what a thread wrote whole, with no barrier between.
template <bool kWrites>
struct MeetsAPart {
  static constexpr int kMaxThreads = 64;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, float* to) const {
    auto wide = dynamic_shared<Words>(block);
    auto words = dynamic_shared<float>(block);
    const int thread = thread_rank(block);
    if (thread == 0) wide[0] = Words{{1, 2, 3, 4}};
    if (thread != 32) return;
    if constexpr (kWrites) {
      words[2] = 5.0f;
    } else {
      const float read = words[2];
      to[0] = read;
    }
  }
};

// Three words of four are written; all four are read at once.
struct ReadsMoreThanWasWritten {
  static constexpr int kMaxThreads = 32;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, float* to) const {
    auto wide = dynamic_shared<Words>(block);
    auto words = dynamic_shared<float>(block);
    const int thread = thread_rank(block);
    if (thread < 3) words[thread] = 1.0f;
    block.barrier();
    const Words read = wide[0];
    if (thread == 0) to[0] = read.of[0];
  }
};

// Each word of a line belongs to another warp: nothing is wrong.
struct WordsOfOneLine {
  static constexpr int kMaxThreads = 128;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, float* to) const {
    auto words = dynamic_shared<float>(block);
    auto wide = dynamic_shared<Words>(block);
    if (lane(block) == 0) words[warp(block)] = 1.0f;
    block.barrier();
    const Words read = wide[0];
    block.barrier();
    if (lane(block) == 0) words[warp(block)] = read.of[0];
    if (thread_rank(block) == 0) to[0] = read.of[3];
  }
};

class SharedPiecesOf : public testing::TestWithParam<Order> {
 protected:
  template <class Kernel>
  Report run() const {
    const Buffer to(1);
    return launch_on_host(Kernel{}, 1, Kernel::kMaxThreads, 16, {.order = GetParam(), .seed = 3}, to.data());
  }
};

TEST_P(SharedPiecesOf, RacesOnAPartAreFound) {
  // Where the reader comes first it meets what nobody wrote.
  const Report read = run<MeetsAPart<false>>();
  EXPECT_TRUE(read.has(FindingKind::kRace) || read.has(FindingKind::kUninitialisedRead)) << read.text();
  EXPECT_TRUE(run<MeetsAPart<true>>().has(FindingKind::kRace));
}
TEST_P(SharedPiecesOf, AnUnwrittenPartIsFound) {
  EXPECT_TRUE(run<ReadsMoreThanWasWritten>().has(FindingKind::kUninitialisedRead));
}
TEST_P(SharedPiecesOf, WordsOfOneLineAreNoRace) {
  const Report report = run<WordsOfOneLine>();
  EXPECT_TRUE(report.ok()) << report.text();
}
INSTANTIATE_TEST_SUITE_P(AllOrders, SharedPiecesOf, testing::ValuesIn(kAllOrders),
                         [](const auto& order) { return std::string(to_string(order.param)); });

}  // namespace
}  // namespace twinbench::kernels::simt
