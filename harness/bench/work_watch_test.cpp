// Sleep is told from work and from waiting for a processor; a clock that lies is told from one that does not.
#include "harness/bench/work_watch.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
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

// None of these was there when the limit was set.
TEST(WorkWatch, FourTenthsOfTheTimeAsleepAreSeen) {
  EXPECT_NE(slept([] {
              work(std::chrono::milliseconds(3));
              std::this_thread::sleep_for(std::chrono::milliseconds(2));
            }),
            "");
}

TEST(WorkWatch, ATenthOfTheTimeAsleepIsNoFinding) {
  EXPECT_EQ(slept([] {
              work(std::chrono::milliseconds(9));
              std::this_thread::sleep_for(std::chrono::milliseconds(1));
            }),
            "");
}

TEST(WorkWatch, TwoThreadsThatTakeTurnsDoNotSleep) {
  EXPECT_EQ(slept([] {
              for (int turn = 0; turn < 4; ++turn) {
                std::thread one([] { work(std::chrono::microseconds(300)); });
                std::thread two([] { work(std::chrono::microseconds(300)); });
                one.join();
                two.join();
              }
            }),
            "");
}

// Other processes want every core.
class OtherLoad {
 public:
  OtherLoad() {
    for (auto& process : processes_) {
      process = fork();
      if (process == 0) {
        alarm(30);
        for (volatile int spin = 0;; spin = 0) {
        }
      }
    }
  }
  ~OtherLoad() {
    for (const auto process : processes_) {
      kill(process, SIGKILL);
      waitpid(process, nullptr, 0);
    }
  }

 private:
  std::array<pid_t, 4> processes_{};
};

TEST(WorkWatch, OnALoadedMachineWorkIsNoSleepAndSleepIsSeen) {
  const OtherLoad load;
  EXPECT_EQ(slept([] { work(std::chrono::microseconds(500)); }), "");
  EXPECT_EQ(slept([] { std::thread([] { work(std::chrono::milliseconds(4)); }).join(); }), "");
  EXPECT_NE(slept([] { std::this_thread::sleep_for(std::chrono::milliseconds(5)); }), "");
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
