// The state of the process, read while threads come and go.
#include "harness/memory/global_state.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <thread>

namespace twinbench {
namespace {

// A thread may end between being listed and being asked: it once counted as one without any processor.
TEST(GlobalState, ThreadsThatEndMeanwhileChangeNothing) {
  std::atomic<bool> over{false};
  std::thread busy([&] {
    while (!over) std::thread([] {}).join();
  });
  const GlobalState before = GlobalState::now();
  std::string changed;
  for (int look = 0; look < 3000 && changed.empty(); ++look) changed = GlobalState::now().changed_since(before);
  over = true;
  busy.join();
  EXPECT_EQ(changed, "");
}

TEST(GlobalState, AThreadOnFewerProcessorsIsSeen) {
  cpu_set_t all, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "one processor only";
  const GlobalState before = GlobalState::now();
  CPU_ZERO(&one);
  for (int processor = 0; processor < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++processor)
    if (CPU_ISSET(processor, &all)) CPU_SET(processor, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  const std::string changed = GlobalState::now().changed_since(before);
  sched_setaffinity(0, sizeof all, &all);
  EXPECT_NE(changed.find("processor affinity"), std::string::npos) << changed;
}

TEST(Survivors, ADeviceIsOpenedAndNothingElseIsChanged) {
  const GlobalState before = GlobalState::now();
  open_device(c10::DeviceType::CPU);
  EXPECT_EQ(GlobalState::now().changed_since(before), "");
}

}  // namespace
}  // namespace twinbench
