// One writer at a time: of files that are read, changed and written back.
#pragma once

#include <string>

namespace twinbench {

// Held until destruction; others who lock a file of the same folder wait. It is the folder that is locked: nothing is
// left behind. Throws kInputOutput where the folder cannot be opened or locked.
class FileLock {
 public:
  explicit FileLock(const std::string& path);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int descriptor_;
};

}  // namespace twinbench
