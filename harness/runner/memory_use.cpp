// Reading /proc and setting resource limits.
#include "harness/runner/memory_use.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

namespace twinbench {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kAllocatorThrows = false;
#else
constexpr bool kAllocatorThrows = true;
#endif

std::uint64_t limit_of_this_process = 0;

// The sum of the named lines of a file of /proc, which are in KiB.
std::uint64_t bytes_in(const std::string& path, std::initializer_list<const char*> names) {
  std::ifstream file(path);
  std::uint64_t kibibytes = 0;
  for (std::string line; std::getline(file, line);)
    for (const char* name : names)
      if (line.rfind(std::string(name) + ":", 0) == 0) kibibytes += std::stoull(line.substr(line.find(':') + 1));
  return kibibytes * 1024;
}

std::uint64_t status_bytes(const std::string& process, std::initializer_list<const char*> names) {
  return bytes_in("/proc/" + process + "/status", names);
}

}  // namespace

std::uint64_t held_bytes(pid_t process) { return status_bytes(std::to_string(process), {"RssAnon", "RssShmem"}); }

int thread_count() {
  std::error_code failure;
  const std::filesystem::directory_iterator tasks("/proc/self/task", failure);
  if (failure) return 1;
  return static_cast<int>(std::distance(begin(tasks), end(tasks)));
}

bool stop_group(pid_t group) {
  if (kill(-group, SIGSTOP) != 0) return false;  // the usual case: nobody is left
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", failure)) {
    if (entry.path().filename().string().find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(entry.path() / "stat");
    std::string stat;
    std::getline(file, stat);
    const auto after_name = stat.rfind(')');  // a program's name may hold anything
    char state = 0;
    int parent = 0, of_group = 0;
    if (after_name != std::string::npos &&
        std::sscanf(stat.c_str() + after_name + 1, " %c %d %d", &state, &parent, &of_group) == 3 && of_group == group &&
        state != 'Z')
      return true;
  }
  return false;
}

void limit_memory_of_this_process(std::uint64_t bytes) {
  // 1, not 0: the kernel takes 1 as "no core" for files and for pipes to a crash handler alike.
  const rlimit no_core{1, 1};
  setrlimit(RLIMIT_CORE, &no_core);
  limit_of_this_process = bytes;
  if (bytes == 0 || !kAllocatorThrows) return;
  // Stacks of worker threads are counted in full though hardly touched; the runner's own watch on resident memory
  // is exact, so this may be a little generous.
  const std::uint64_t stacks = std::uint64_t{16} << 20;
  const std::uint64_t room = bytes + stacks * std::max(1u, std::thread::hardware_concurrency());
  rlimit limit{};
  getrlimit(RLIMIT_DATA, &limit);
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, status_bytes("self", {"VmData"}) + room);
  setrlimit(RLIMIT_DATA, &limit);
}

void lift_memory_limit() {
  rlimit limit{};
  getrlimit(RLIMIT_DATA, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_DATA, &limit);
}

std::uint64_t memory_limit_of_this_process() { return limit_of_this_process; }

std::uint64_t available_memory() { return bytes_in("/proc/meminfo", {"MemAvailable"}); }

}  // namespace twinbench
