// Sleep is told from work and from waiting for a processor; a clock that lies is told from one that does not.
#include "harness/bench/work_watch.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace twinbench {
namespace {

void work(std::chrono::microseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

TEST(WorkWatch, WorkIsNoSleep) {
  EXPECT_EQ(slept([] { work(std::chrono::microseconds(500)); }), "");
}

TEST(WorkWatch, AWorkerThreadsWorkIsNoSleep) {
  EXPECT_EQ(slept([] { std::thread([] { work(std::chrono::milliseconds(4)); }).join(); }), "");
}

TEST(WorkWatch, SleepIsSeen) {
  EXPECT_NE(slept([] {
              work(std::chrono::microseconds(500));
              std::this_thread::sleep_for(std::chrono::milliseconds(5));
            }),
            "");
}

class Scaled : public Clock {
 public:
  explicit Scaled(double rate) : rate_(rate) {}
  std::int64_t now() override { return static_cast<std::int64_t>(rate_ * static_cast<double>(right_.now())); }

 private:
  SteadyClock right_;
  double rate_;
};

TEST(ClockWatch, AClockThatRunsSlowIsSeenAndARightOneIsNot) {
  Scaled right(1), slow(0.9);
  ClockWatch of_right(right), of_slow(slow);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(of_right.broken(), "");
  EXPECT_NE(of_slow.broken(), "");
}

}  // namespace
}  // namespace twinbench
