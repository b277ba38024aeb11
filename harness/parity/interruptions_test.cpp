// Interrupted work goes on: between two interruptions there is always time for some of it.
#include "harness/parity/interruptions.h"

#include <gtest/gtest.h>

#include <chrono>
#include <ctime>

namespace twinbench {
namespace {

// CPU seconds and seconds that a loop of additions takes.
struct Taken {
  double cpu_s, wall_s;
};

Taken work(int additions) {
  const auto start = std::chrono::steady_clock::now();
  const std::clock_t before = std::clock();
  volatile int sum = 0;
  for (int i = 0; i < additions; ++i) sum = sum + 1;
  return {static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC,
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
}

// The quickest of several: a processor that others share changes its pace from one to the next.
Taken quickest(int additions) {
  Taken least = work(additions);
  for (int i = 0; i < 6; ++i)
    if (const Taken again = work(additions); again.cpu_s < least.cpu_s) least = again;
  return least;
}

TEST(Interruptions, TakeSomeTimeAndNotAllOfIt) {
  constexpr int kAdditions = 10'000'000;
  const Taken alone = quickest(kAdditions);
  Taken interrupted{};
  {
    const Interruptions often;
    interrupted = quickest(kAdditions);
  }
  EXPECT_GT(interrupted.wall_s, 1.2 * alone.cpu_s) << "nothing interrupted it";
  EXPECT_LT(interrupted.cpu_s, 4 * alone.cpu_s) << "the interruptions are all that runs";
  const Taken after = quickest(kAdditions);
  EXPECT_LT(after.cpu_s, 2 * alone.cpu_s) << "the interruptions go on";
}

}  // namespace
}  // namespace twinbench
