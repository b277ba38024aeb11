// The order in which a finished file reaches the disk: its bytes, then its name, then the folder that has the name.
#include "src/formats/file_io.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "src/formats/test_support.h"

namespace {

std::vector<std::string>* calls_of_a_write = nullptr;  // null: nobody asks

void note_call(const char* call) {
  if (calls_of_a_write != nullptr) calls_of_a_write->push_back(call);
}

}  // namespace

// In this program these stand before the C library's.
extern "C" int fsync(int descriptor) {
  struct stat status {};
  note_call(::fstat(descriptor, &status) == 0 && S_ISDIR(status.st_mode) ? "fsync folder" : "fsync file");
  return static_cast<int>(::syscall(SYS_fsync, descriptor));
}

extern "C" int rename(const char* from, const char* to) noexcept {
  note_call("rename");
  return static_cast<int>(::syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to));
}

namespace twinbench {
namespace {

TEST(AtomicFile, BytesAreOnTheDiskBeforeTheyHaveTheName) {
  const TemporaryDirectory directory;
  std::vector<std::string> calls;
  calls_of_a_write = &calls;
  write_file(directory.file("whole"), as_bytes("all of it"));
  calls_of_a_write = nullptr;
  EXPECT_EQ(calls, (std::vector<std::string>{"fsync file", "rename", "fsync folder"}));
  EXPECT_EQ(read_bytes(directory.file("whole")), "all of it");
}

}  // namespace
}  // namespace twinbench
