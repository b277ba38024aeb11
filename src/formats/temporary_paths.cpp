// A fixed table that a signal handler can read.
#include "src/formats/temporary_paths.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

namespace twinbench {
namespace {

enum State : int { kFree, kBeingWritten, kFile, kFolder };

struct Slot {
  std::atomic<int> state{kFree};
  std::atomic<pid_t> owner{0};
  char path[4096] = {};
};
Slot slots[64];

void remove_folder(const char* path) noexcept {
  const pid_t child = _Fork();  // unlike fork(), safe in a signal handler
  if (child == 0) {
    ::execl("/bin/rm", "rm", "-rf", "--", path, static_cast<char*>(nullptr));
    ::_exit(127);
  }
  if (child > 0) ::waitpid(child, nullptr, 0);
}

}  // namespace

TemporaryPath::TemporaryPath(const std::string& path, bool folder) {
  if (path.size() >= sizeof(Slot::path)) return;
  for (int i = 0; i < static_cast<int>(std::size(slots)); ++i) {
    int free = kFree;
    if (!slots[i].state.compare_exchange_strong(free, kBeingWritten)) continue;
    std::memcpy(slots[i].path, path.c_str(), path.size() + 1);
    slots[i].owner = ::getpid();
    slots[i].state = folder ? kFolder : kFile;
    slot_ = i;
    return;
  }
}

TemporaryPath::~TemporaryPath() {
  if (slot_ >= 0) slots[slot_].state = kFree;
}

SignalsWait::SignalsWait() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before_);
}

SignalsWait::~SignalsWait() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

void remove_temporary_paths() noexcept {
  for (Slot& slot : slots) {
    const int state = slot.state;
    if ((state != kFile && state != kFolder) || slot.owner != ::getpid()) continue;
    if (state == kFile)
      ::unlink(slot.path);
    else
      remove_folder(slot.path);
  }
}

}  // namespace twinbench
