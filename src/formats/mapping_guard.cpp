// A fixed table of mappings, and the handler that looks there.
#include "src/formats/mapping_guard.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "src/common/one_line.h"
#include "src/formats/temporary_paths.h"

namespace twinbench {
namespace {

struct Guard {
  std::atomic<bool> taken{false};
  std::atomic<std::uintptr_t> begin{0}, end{0};
  char path[256] = {};
};
Guard guards[64];
int code = 0;
struct sigaction before {};

void say(const char* text) noexcept {
  if (::write(STDERR_FILENO, text, std::strlen(text)) < 0) return;  // nobody listens: the exit code says it too
}

void end_if_shortened(int signal, siginfo_t* info, void*) {
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (const Guard& guard : guards) {
    if (address < guard.begin || address >= guard.end) continue;
    say("twinbench: input_output: file is '");
    say(guard.path);
    say("': it became shorter while it was read; give a file that nobody writes to\n");
    remove_temporary_paths();
    ::_exit(code);
  }
  ::sigaction(signal, &before, nullptr);  // the access is tried again, and this time nobody is in between
}

}  // namespace

int guard_mapping(const void* data, std::size_t bytes, const std::string& path) noexcept {
  for (std::size_t i = 0; i < std::size(guards); ++i) {
    if (guards[i].taken.exchange(true)) continue;
    const std::string shown = one_line(path, sizeof(Guard::path) / 4);
    std::memcpy(guards[i].path, shown.c_str(), std::min(shown.size() + 1, sizeof(Guard::path)));
    guards[i].path[sizeof(Guard::path) - 1] = '\0';
    guards[i].begin = reinterpret_cast<std::uintptr_t>(data);
    guards[i].end = guards[i].begin + bytes;
    return static_cast<int>(i);
  }
  return -1;
}

void forget_mapping(int guard) noexcept {
  if (guard < 0) return;
  guards[guard].begin = guards[guard].end = 0;
  guards[guard].taken = false;
}

void end_on_shortened_files(int exit_code) {
  code = exit_code;
  struct sigaction action {};
  action.sa_sigaction = end_if_shortened;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, &before);
}

}  // namespace twinbench
