// What this process made for a while, so that it can be removed even by a signal handler.
#pragma once

#include <signal.h>

#include <string>

namespace twinbench {

// While it lives, remove_temporary_paths() of this process (not of its children) removes the file or folder. Holds up
// to 64 at a time; more are only removed as usual.
class TemporaryPath {
 public:
  TemporaryPath() = default;
  TemporaryPath(const std::string& path, bool folder);
  ~TemporaryPath();
  TemporaryPath(const TemporaryPath&) = delete;
  TemporaryPath& operator=(const TemporaryPath&) = delete;

 private:
  int slot_ = -1;
};

// While it lives, no signal reaches this thread: what was made and has no TemporaryPath yet, nobody would remove.
class SignalsWait {
 public:
  SignalsWait();
  ~SignalsWait();
  SignalsWait(const SignalsWait&) = delete;
  SignalsWait& operator=(const SignalsWait&) = delete;

 private:
  sigset_t before_;
};

// Async-signal-safe: calls nothing that a signal handler may not.
void remove_temporary_paths() noexcept;

}  // namespace twinbench
