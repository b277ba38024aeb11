// Locks by flock(2).
#include "src/formats/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "src/common/error.h"

namespace twinbench {

FileLock::FileLock(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  descriptor_ = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int refused = descriptor_ < 0;
  while (!refused && ::flock(descriptor_, LOCK_EX) != 0) refused = errno != EINTR;
  if (!refused) return;
  const int error = errno;
  if (descriptor_ >= 0) ::close(descriptor_);
  throw Error(ErrorKind::kInputOutput, folder, std::strerror(error), "give a file in a folder that can be locked");
}

FileLock::~FileLock() { ::close(descriptor_); }

}  // namespace twinbench
