// What this process made for a while, so that it can be removed even by a signal handler.
#pragma once

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

// Async-signal-safe: calls nothing that a signal handler may not.
void remove_temporary_paths() noexcept;

}  // namespace twinbench
