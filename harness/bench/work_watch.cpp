// Process time and the scheduler's queue time against the wall's; two clocks against each other.
#include "harness/bench/work_watch.h"

#include <ATen/Parallel.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>

namespace twinbench {
namespace {

constexpr double kMostIdle = 0.1, kAttempt_s = 5e-3;
constexpr double kClocksApart = 0.02, kClocksApart_s = 1e-3;

// Without the C library, whose clock functions can be replaced.
std::int64_t raw_clock() {
  timespec time{};
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC_RAW, &time);
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

// Seconds of all threads of this process, by the scheduler's own books.
struct ThreadTimes {
  double working_s = 0, queued_s = 0;
};

ThreadTimes thread_times() {
  ThreadTimes times;
  std::error_code failure;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", failure)) {
    std::ifstream file(task.path() / "schedstat");
    double on_processor = 0, in_queue = 0;
    if (!(file >> on_processor >> in_queue)) continue;
    times.working_s += on_processor * 1e-9;
    times.queued_s += in_queue * 1e-9;
  }
  return times;
}

// Of the time that other work on the machine left to it.
double idle_share(const std::function<void()>& run) {
  const ThreadTimes before = thread_times();
  const std::int64_t start = raw_clock();
  double wall_s = 0;
  do {
    run();
    wall_s = seconds_between(start, raw_clock());
  } while (wall_s < kAttempt_s);
  const ThreadTimes after = thread_times();
  const double worked = after.working_s - before.working_s, queued = after.queued_s - before.queued_s;
  const double idle = std::max(0.0, wall_s - worked - queued);
  return idle / (idle + worked);
}

}  // namespace

std::string slept(const std::function<void()>& run) {
  if (thread_times().working_s == 0) return "";  // a kernel that keeps no such books
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  double least = 1;  // the first attempt may hold what a change of the number of threads costs
  for (int attempt = 0; attempt < 3 && least > kMostIdle; ++attempt) least = std::min(least, idle_share(run));
  at::set_num_threads(threads);
  if (least <= kMostIdle) return "";
  char text[160];
  std::snprintf(
      text, sizeof text,
      "in %.0f %% of its time no thread worked or waited for a processor: it slept, at most %.0f %% may be so",
      100 * least, 100 * kMostIdle);
  return text;
}

ClockWatch::ClockWatch(Clock& clock) : clock_(clock), started_(clock.now()), raw_started_(raw_clock()) {}

std::string ClockWatch::broken() {
  const double told = seconds_between(started_, clock_.now()), raw = seconds_between(raw_started_, raw_clock());
  if (std::abs(told - raw) <= kClocksApart_s + kClocksApart * raw) return "";
  char text[160];
  std::snprintf(text, sizeof text, "the clock that measures says %.4g s where the kernel's own says %.4g s", told, raw);
  return text;
}

}  // namespace twinbench
