// Bytes as a file for readers that take a path: in memory, gone with this.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "src/common/error.h"

namespace twinbench {

class AsFile {
 public:
  AsFile(const std::uint8_t* data, std::size_t size) : descriptor_(memfd_create("fuzzed", MFD_CLOEXEC)) {
    if (descriptor_ < 0 || write(descriptor_, data, size) != static_cast<ssize_t>(size))
      throw Error(ErrorKind::kInternal, "memfd", std::to_string(size), "the machine has no memory for an input");
  }
  ~AsFile() { close(descriptor_); }
  AsFile(const AsFile&) = delete;
  AsFile& operator=(const AsFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

}  // namespace twinbench
