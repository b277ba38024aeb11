// Calls for memory, threads and parallel regions are counted, each under its name, and nothing else is.
#include "harness/counters/process_calls.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <thread>

#include "harness/counters/pieces.h"

namespace twinbench {
namespace {

using Counts = std::map<std::string, std::int64_t>;

template <class Work>
Counts counted(const Work& work) {
  const ProcessCallScope scope;
  work();
  return scope.counts();
}

void keep(void* block) { asm volatile("" : : "r"(block) : "memory"); }

class ProcessCalls : public testing::Test {
 protected:
  void SetUp() override {
    if (!ProcessCallScope::counts_here()) GTEST_SKIP() << "a sanitizer has these functions";
  }
};

TEST_F(ProcessCalls, ArithmeticAsksForNothing) {
  double x = 1;
  EXPECT_EQ(counted([&] { x = x * 2; }), Counts());
  EXPECT_EQ(x, 2);
}

TEST_F(ProcessCalls, EveryWayToMemoryIsCounted) {
  EXPECT_EQ(counted([] { keep(std::make_unique<char[]>(65536).get()); }), (Counts{{"heap", 1}}));
  EXPECT_EQ(counted([] {
              void* block = std::malloc(10);
              block = std::realloc(block, 5000);
              keep(block);
              std::free(block);
              block = std::calloc(10, 10);
              keep(block);
              std::free(block);
              ASSERT_EQ(posix_memalign(&block, 64, 1000), 0);
              EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 64, 0u);
              std::free(block);
              block = std::aligned_alloc(4096, 4096);
              EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 4096, 0u);
              std::free(block);
            }),
            (Counts{{"heap", 5}}));
  EXPECT_EQ(counted([] {
              void* block = reallocarray(nullptr, 10, 100);
              keep(block);
              std::free(block);
              for (const auto allocate : {valloc, pvalloc}) {
                block = allocate(5000);
                EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 4096, 0u);
                keep(block);
                std::free(block);
              }
            }),
            (Counts{{"heap", 3}}));
  EXPECT_EQ(counted([] {
              void* const pages = mmap(nullptr, 65536, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
              ASSERT_NE(pages, MAP_FAILED);
              void* const more = mremap(pages, 65536, 131072, MREMAP_MAYMOVE);
              ASSERT_NE(more, MAP_FAILED);
              munmap(more, 131072);
            }),
            (Counts{{"mmap", 2}}));
}

TEST_F(ProcessCalls, AnAlignmentThatIsNoneIsRefusedAsTheLibraryDoes) {
  void* block = nullptr;
  EXPECT_EQ(posix_memalign(&block, 24, 8), EINVAL);
  volatile std::size_t most = SIZE_MAX / 2;  // unseen by the compiler, which warns of what no memory has
  EXPECT_EQ(reallocarray(nullptr, most, 3), nullptr);
  EXPECT_EQ(errno, ENOMEM);
}

TEST_F(ProcessCalls, AThreadIsCountedAndSoIsWhatItTakes) {
  const Counts counts = counted([] { std::thread([] { keep(std::make_unique<int>(1).get()); }).join(); });
  EXPECT_EQ(counts.at("threads"), 1);
  EXPECT_GE(counts.at("heap"), 2);  // the thread's own state, and what it took
}

TEST_F(ProcessCalls, OnlyMoreThanOnePieceIsAParallelRegion) {
  at::set_num_threads(2);
  const auto nothing = [](std::int64_t, std::int64_t) {};
  at::parallel_for(0, 100, 1, nothing);  // starts the pool
  EXPECT_EQ(counted([&] { at::parallel_for(0, 100, 10, nothing); }).count("parallel"), 1u);
  EXPECT_EQ(counted([&] { at::parallel_for(0, 100, 100, nothing); }), Counts());
}

// The planted mistake: a component whose largest case is one piece.
TEST(Pieces, AComponentThatNoCaseSplitsIsNamed) {
  Component component;
  component.spec.pipeline = "p";
  component.spec.name = "c";
  Case small, large, backward;
  small.name = "small";
  large.name = "large";
  backward.name = "backward";
  backward.pass = Pass::kBackward;
  component.spec.cases = {small, large, backward};
  Pins pins;
  CounterSnapshot whole, split;
  split.process_calls = {{"parallel", 2}};
  pins.set("p.c/optimized/cpu/fp32/small", whole);
  pins.set("p.c/optimized/cpu/fp32/large", split);
  EXPECT_EQ(never_in_pieces(component, pins), "");  // one of two passes is not pinned yet
  pins.set("p.c/optimized/cpu/fp32/backward", whole);
  EXPECT_NE(never_in_pieces(component, pins).find("no backward case"), std::string::npos);
  pins.set("p.c/optimized/cpu/fp32/backward", split);
  EXPECT_EQ(never_in_pieces(component, pins), "");
  pins.set("p.c/optimized/cpu/fp32/large", whole);
  EXPECT_NE(never_in_pieces(component, pins).find("no forward case"), std::string::npos);
  pins.set("p.c/optimized/cpu/fp32/backward", whole);
  EXPECT_EQ(never_in_pieces(component, pins), "");  // it works in one piece always
}

}  // namespace
}  // namespace twinbench
