// Process time against the wall's, where a thread gave its processor up; two clocks against each other.
#include "harness/bench/work_watch.h"

#include <ATen/Parallel.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

namespace twinbench {
namespace {

constexpr int kAttempts = 7;
constexpr double kMostIdle = 0.8, kAttempt_s = 5e-3;
constexpr double kClocksApart = 0.02, kClocksApart_s = 1e-3;

// Without the C library, whose clock functions can be replaced.
std::int64_t raw_clock() {
  timespec time{};
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC_RAW, &time);
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

// What this process has done so far, threads that have ended included.
struct Effort {
  double worked_s = 0;
  long gave_up = 0;  // times a thread let go of its processor by itself: it waited for a time, a thread or a device
};

Effort effort() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  timespec worked{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &worked);
  return {static_cast<double>(worked.tv_sec) + 1e-9 * static_cast<double>(worked.tv_nsec), usage.ru_nvcsw};
}

// Who never let go of the processor did not sleep, however long others had it. The scheduler's own queue times do not
// help: a thread that sleeps after long work may be booked as one that waits.
double idle_share(const std::function<void()>& run) {
  const Effort before = effort();
  const std::int64_t start = raw_clock();
  double wall_s = 0;
  do {
    run();
    wall_s = seconds_between(start, raw_clock());
  } while (wall_s < kAttempt_s);
  const Effort after = effort();
  return after.gave_up == before.gave_up ? 0 : std::max(0.0, 1 - (after.worked_s - before.worked_s) / wall_s);
}

}  // namespace

std::string slept(const std::function<void()>& run) {
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  std::vector<double> shares;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    shares.push_back(idle_share(run));
    if (shares.size() >= 2 && shares.back() <= kMostIdle && shares[shares.size() - 2] <= kMostIdle) break;  // it works
  }
  std::sort(shares.begin(), shares.end());
  const double least = shares[shares.size() / 2];
  at::set_num_threads(threads);
  if (least <= kMostIdle) return "";
  char text[160];
  std::snprintf(
      text, sizeof text,
      "in %.0f %% of its time no thread worked, and one gave its processor up: it slept; at most %.0f %% may be so",
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
