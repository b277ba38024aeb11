// Thread states at many moments; two clocks against each other.
#include "harness/bench/work_watch.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <thread>

#include "harness/timing/processor_time.h"

namespace twinbench {
namespace {

constexpr int kLooks = 60, kFewLooks = 20;
constexpr int kSeries = 3;                // other load stretches the work beside a sleep: the largest share counts
constexpr std::int64_t kInterrupted = 8;  // times as long a thread as in the quickest look
constexpr double kMostWaiting = 0.9;
constexpr double kMostIdle = 0.25, kSurelyWorks = 0.05, kMost_s = 2;
constexpr double kClocksApart = 0.02, kClocksApart_s = 1e-3;

// Without the C library, whose clock functions can be replaced.
std::int64_t raw_clock() {
  timespec time{};
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC_RAW, &time);
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

// The states of the other threads of this process at one moment, of which one works (or waits for a processor, or for a
// disk) or none does. Adds how many it looked at.
bool any_thread_works(std::int64_t& threads) {
  const std::string own = std::to_string(gettid());
  bool works = false;
  DIR* const tasks = opendir("/proc/self/task");
  if (tasks == nullptr) return true;  // nothing can be said
  while (const dirent* const task = readdir(tasks)) {
    if (task->d_name[0] == '.' || own == task->d_name) continue;
    ++threads;
    char path[64], text[256];
    std::snprintf(path, sizeof path, "/proc/self/task/%.20s/stat", task->d_name);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) continue;  // it has ended
    const ssize_t count = read(file, text, sizeof text - 1);
    close(file);
    text[std::max<ssize_t>(count, 0)] = 0;
    const char* const after_name = std::strrchr(text, ')');  // a name may hold anything
    works = works || (after_name != nullptr && (after_name[2] == 'R' || after_name[2] == 'D'));
  }
  closedir(tasks);
  return works;
}

// Seconds that this thread has waited for a processor so far; 0 where the kernel does not say.
double waited_s() {
  long long worked = 0, waited = 0;
  if (std::FILE* const file = std::fopen("/proc/thread-self/schedstat", "re")) {
    if (std::fscanf(file, "%lld %lld", &worked, &waited) != 2) waited = 0;
    std::fclose(file);
  }
  return static_cast<double>(waited) * 1e-9;
}

// Looks at the threads again and again while it lives, at moments that follow no rhythm.
class StateSampler {
 public:
  StateSampler() : thread_([this] { look(); }) {}
  ~StateSampler() {
    over_ = true;
    thread_.join();
  }
  StateSampler(const StateSampler&) = delete;
  StateSampler& operator=(const StateSampler&) = delete;
  int looks() const { return looks_; }
  int idle() const { return idle_; }

 private:
  void look() {
    std::uint32_t random = 1;
    while (!over_) {
      random = random * 1664525u + 1013904223u;
      std::this_thread::sleep_for(std::chrono::microseconds(60 + (random >> 24)));
      // One thread may stop and another begin while they are looked at: idle is only what is so twice. A look that took
      // long was itself interrupted, and says nothing.
      const std::int64_t start = raw_clock();
      std::int64_t threads = 0;
      const bool idle = !any_thread_works(threads) && !any_thread_works(threads);
      const std::int64_t took = (raw_clock() - start) / std::max<std::int64_t>(threads, 1);
      quickest_ = std::min(quickest_, took);
      if (took > kInterrupted * quickest_) continue;
      if (idle) ++idle_;
      ++looks_;
    }
  }
  std::atomic<bool> over_{false};
  std::atomic<int> looks_{0}, idle_{0};
  std::int64_t quickest_ = std::numeric_limits<std::int64_t>::max();  // nanoseconds a thread
  std::thread thread_;
};

// Whether the share is two standard errors away from what it is held against: else more looks must tell.
bool is_clear(int idle, int looks) {
  const double share = static_cast<double>(idle) / looks;
  return std::abs(share - kMostIdle) > 2 * std::sqrt(share * (1 - share) / looks);
}

}  // namespace

std::string slept(const std::function<void()>& run) {
  for (int series = 0; series < kSeries; ++series) {
    // Looks while this thread waited for a processor say nothing: where others want it too, they would hide a sleep.
    int looks = 0, idle = 0;
    double away = 1;  // of the time that this thread did not wait for a processor, the part that it did not work either
    {
      const StateSampler sampler;
      const double waited_before = waited_s(), worked_before = thread_seconds();
      const std::int64_t start = raw_clock();
      for (bool over = false; !over;) {
        run();
        // Taken right behind the run: what this thread does afterwards is not the run's.
        looks = sampler.looks();
        idle = sampler.idle();
        const double passed_s = seconds_between(start, raw_clock());
        if (looks < kLooks && passed_s < kMost_s) continue;
        const double waiting = std::clamp((waited_s() - waited_before) / passed_s, 0.0, kMostWaiting);
        away = std::max(1 - waiting - (thread_seconds() - worked_before) / passed_s, 0.0) / (1 - waiting);
        looks = std::max(idle, static_cast<int>(looks * (1 - waiting)));
        over = (looks >= kLooks && is_clear(idle, looks)) || passed_s >= kMost_s;
      }
    }
    // Of a few nothing can be said. Nobody slept while this thread worked, however many looks say so: those that find
    // the others asleep are the quickest, and where work in the kernel holds up most looks they are what is left.
    const double share = looks < kFewLooks ? 0.0 : std::min(static_cast<double>(idle) / looks, away);
    if (share <= kSurelyWorks && looks >= kFewLooks) return "";
    if (share <= kMostIdle) continue;
    char text[160];
    std::snprintf(text, sizeof text,
                  "at %.0f %% of %d moments no thread worked or wanted to: it slept; at most %.0f %% may be so",
                  100 * share, looks, 100 * kMostIdle);
    return text;
  }
  return "";
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
