// Files that cannot be written are known beforehand, and a record that cannot go where it should is not lost.
#include "harness/command/outputs.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "harness/record/record.h"
#include "src/common/error.h"
#include "src/formats/file_io.h"

namespace twinbench {
namespace {

std::string refusal(const std::string& path) {
  try {
    require_writable("--out", path);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Outputs, OnlyRegularFilesAreReplaced) {
  const TemporaryDirectory folder;
  ASSERT_EQ(::mkfifo(folder.file("fifo").c_str(), 0600), 0);
  ASSERT_EQ(::symlink("/dev/null", folder.file("link to a device").c_str()), 0);
  ASSERT_EQ(::symlink("circle", folder.file("circle").c_str()), 0);
  for (const std::string& path :
       {folder.path(), folder.file("fifo"), folder.file("link to a device"), std::string("/dev/null")})
    EXPECT_NE(refusal(path).find("not a regular file"), std::string::npos) << path << ": " << refusal(path);
  EXPECT_NE(refusal(folder.file("circle")).find("--out"), std::string::npos);
  EXPECT_NE(refusal("/proc/nowhere/record.json").find("--out"), std::string::npos);
  EXPECT_EQ(refusal(folder.file("new/folders/record.json")), "");
  EXPECT_NE(refusal(folder.file(std::string(300, 'x'))).find("shorter name"), std::string::npos);
  EXPECT_EQ(refusal(""), "");
  int entries = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) entries += !entry.path().empty();
  EXPECT_EQ(entries, 4) << "checking leaves nothing behind but folders";
}

TEST(Outputs, ALinkStaysOneAndPermissionsAreKept) {
  const TemporaryDirectory folder;
  write_file(folder.file("file"), as_bytes("old"));
  ASSERT_EQ(::chmod(folder.file("file").c_str(), 0600), 0);
  ASSERT_EQ(::symlink("file", folder.file("link").c_str()), 0);
  write_file(folder.file("link"), as_bytes("new"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder.file("link")));
  std::string text;
  std::ifstream(folder.file("file")) >> text;
  EXPECT_EQ(text, "new");
  struct stat status {};
  ASSERT_EQ(::stat(folder.file("file").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
}

TEST(Outputs, ARecordThatCannotGoWhereItShouldIsSavedElsewhere) {
  const TemporaryDirectory folder;  // became one while the cells were measured
  try {
    Record("parity", 1, "a command").write(folder.path());
    FAIL() << "a folder was taken for a file";
  } catch (const Error& error) {
    const std::string said = error.what(), before = "was saved as ";
    ASSERT_NE(said.find(before), std::string::npos) << said;
    const std::size_t start = said.find(before) + before.size();
    const std::string rescued = said.substr(start, said.find(" instead") - start);
    std::ifstream file(rescued);
    EXPECT_EQ(nlohmann::json::parse(file)["twinbench"]["engines"][0], "parity") << rescued;
    ::unlink(rescued.c_str());
  }
}

// A job's process lives on for a moment where the program is killed.
TEST(Outputs, ARecordsNameIsNotHeldByChildren) {
  const TemporaryDirectory folder;
  const std::string path = folder.file("record.json");
  const auto taken = [&] {
    const pid_t other = fork();
    if (other != 0) {
      int status = 0;
      EXPECT_EQ(::waitpid(other, &status, 0), other);
      return WEXITSTATUS(status) == 1;
    }
    try {
      const RecordName again("--out", path);
      ::_exit(0);
    } catch (const Error&) {
      ::_exit(1);
    }
  };
  std::optional<RecordName> held(std::in_place, "--out", path);
  const pid_t child = fork();
  if (child == 0)
    for (;;) ::pause();
  EXPECT_TRUE(taken());
  held.reset();
  EXPECT_FALSE(taken()) << "the child holds it";
  ::kill(child, SIGKILL);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
}

}  // namespace
}  // namespace twinbench
