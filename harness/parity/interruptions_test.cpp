// Interrupted work goes on: it is interrupted often, it ends, and afterwards nothing interrupts it.
#include "harness/parity/interruptions.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace twinbench {
namespace {

// How often this thread lets go of its processor by itself while it adds: a loop of additions never does. Being sent
// away by the machine's other work is another number, so that none of this depends on how busy the machine is.
long rests_of(int additions) {
  const auto rests = [] {
    rusage used{};
    getrusage(RUSAGE_THREAD, &used);
    return used.ru_nvcsw;
  };
  const long before = rests();
  volatile int sum = 0;
  for (int i = 0; i < additions; ++i) sum = sum + 1;
  return rests() - before;
}

TEST(Interruptions, TakeSomeTimeAndNotAllOfIt) {
  constexpr int kAdditions = 20'000'000;  // 20 ms or more, of which 50 us lie between two interruptions
  EXPECT_EQ(rests_of(kAdditions), 0);
  {
    const Interruptions often;
    EXPECT_GT(rests_of(kAdditions), 20) << "nothing interrupts it";  // that it ends is the other half
  }
  EXPECT_EQ(rests_of(kAdditions), 0) << "the interruptions go on";
}

}  // namespace
}  // namespace twinbench
