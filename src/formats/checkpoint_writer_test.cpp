// The background writer: snapshots, saves that meet, a full disk, and a process that is killed while it writes.
#include "src/formats/checkpoint_writer.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>

#include "src/formats/test_support.h"

namespace twinbench {
namespace {

constexpr std::int64_t kElements = 500'000;

std::vector<TensorBytes> layout() {
  return {{"a", ElementType::kF32, {kElements}, {}}, {"b", ElementType::kF32, {kElements}, {}}};
}

void fill(std::span<std::uint8_t> staging, float with) {
  float* const values = reinterpret_cast<float*>(staging.data());
  for (std::int64_t i = 0; i < 2 * kElements; ++i) values[i] = with + static_cast<float>(i % 1021);
}

CheckpointName name_of_epoch(std::int64_t epoch) { return {false, "debug", 1753781696, epoch, 0.5, ""}; }

// Empty, or what of the file is not the state of `fill`.
std::string wrong_in(const std::string& path, float with) {
  const CheckpointFile file(path);
  std::vector<std::uint8_t> expected(2 * kElements * sizeof(float)), read(kElements * sizeof(float));
  fill(expected, with);
  for (int i = 0; i < 2; ++i) {
    file.view().read(i == 0 ? "a" : "b", ElementType::kF32, {kElements}, read);
    if (std::memcmp(read.data(), expected.data() + static_cast<std::size_t>(i) * read.size(), read.size()) != 0)
      return i == 0 ? "a" : "b";
  }
  return "";
}

class CheckpointWriterTest : public ::testing::Test {
 protected:
  CheckpointWriter::Options options(CheckpointWriter::WhenBusy when_busy = CheckpointWriter::WhenBusy::kWait) {
    CheckpointWriter::Options result;
    result.folder = folder_.path();
    result.when_busy = when_busy;
    return result;
  }
  std::string file(std::int64_t epoch) { return folder_.file(checkpoint_name(name_of_epoch(epoch))); }

  TemporaryDirectory folder_;
};

TEST_F(CheckpointWriterTest, SavesWaitForEachOtherAndNumberOn) {
  {
    CheckpointWriter writer(options(), layout());
    for (int i = 0; i < 3; ++i)
      EXPECT_TRUE(writer.save(name_of_epoch(i), {{"epoch", std::to_string(i)}},
                              [i](auto staging) { fill(staging, static_cast<float>(i)); }));
    writer.finish();
    EXPECT_EQ(writer.tally().written, 3);
    EXPECT_EQ(writer.tally().skipped, 0);
    EXPECT_LE(writer.tally().waited, 2);
  }
  CheckpointWriter later(options(), layout());
  later.save(name_of_epoch(3), {}, [](auto staging) { fill(staging, 3); });
  later.finish();
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(wrong_in(file(i), static_cast<float>(i)), "");
    EXPECT_EQ(CheckpointFile(file(i)).view().sequence(), static_cast<std::uint64_t>(i + 1));
  }
}

TEST_F(CheckpointWriterTest, ASaveMayBeSkippedWhileOneIsInFlight) {
  CheckpointWriter writer(options(CheckpointWriter::WhenBusy::kSkip), layout());
  std::int64_t taken = 0;
  for (int i = 0; i < 50; ++i)
    taken += writer.save(name_of_epoch(i), {}, [i](auto staging) { fill(staging, static_cast<float>(i)); });
  writer.finish();
  EXPECT_GE(taken, 1);
  EXPECT_GT(writer.tally().skipped, 0);
  EXPECT_EQ(writer.tally().skipped, 50 - taken);
  EXPECT_EQ(writer.tally().written, taken);
}

TEST_F(CheckpointWriterTest, AFullDiskIsCountedAndTheNextSaveSucceeds) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  CheckpointWriter writer(options(), layout());
  writer.save(name_of_epoch(0), {}, [](auto staging) { fill(staging, 0); });
  writer.finish();
  const rlimit small{1000, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  writer.save(name_of_epoch(0), {}, [](auto staging) { fill(staging, 1); });
  writer.finish();
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(writer.tally().failed, 1);
  EXPECT_NE(writer.tally().last_failure.find("File too large"), std::string::npos) << writer.tally().last_failure;
  EXPECT_EQ(wrong_in(file(0), 0), "") << "the file of the same name is as it was";
  EXPECT_EQ(files_in(folder_.path()), 1u) << "nothing half-written is left";
  writer.save(name_of_epoch(1), {}, [](auto staging) { fill(staging, 2); });
  writer.finish();
  EXPECT_EQ(writer.tally().written, 2);
  EXPECT_EQ(wrong_in(file(1), 2), "");
}

// Killed at 40 moments of the save, which may come after it where the machine is busy, and surely at each sixteenth of
// the file, where the kernel ends a process that writes on: the file of that name is the old one or the new one, whole.
TEST_F(CheckpointWriterTest, AKilledProcessLeavesTheOldFileOrTheNewOne) {
  {
    CheckpointWriter writer(options(), layout());
    writer.save(name_of_epoch(0), {}, [](auto staging) { fill(staging, 0); });
  }
  for (int moment = 0; moment < 40; ++moment) {
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      CheckpointWriter writer(options(), layout());
      writer.save(name_of_epoch(0), {}, [](auto staging) { fill(staging, 1); });
      if (::write(ready[1], "x", 1) != 1) ::_exit(1);
      writer.finish();
      for (;;) ::pause();
    }
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    ::usleep(static_cast<useconds_t>(moment * 700));
    ::kill(child, SIGKILL);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    ::close(ready[0]);
    ::close(ready[1]);
    if (wrong_in(file(0), 0).empty()) continue;
    EXPECT_EQ(wrong_in(file(0), 1), "") << "killed after " << 700 * moment << " us";
    CheckpointWriter writer(options(), layout());
    writer.save(name_of_epoch(0), {}, [](auto staging) { fill(staging, 0); });
  }
  const auto bytes = std::filesystem::file_size(file(0));
  for (std::uintmax_t part = 0; part < 16; ++part) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const rlimit most{bytes * part / 16, bytes}, no_core{0, 0};
      if (::setrlimit(RLIMIT_CORE, &no_core) != 0 || ::setrlimit(RLIMIT_FSIZE, &most) != 0) ::_exit(1);
      std::signal(SIGXFSZ, SIG_DFL);
      CheckpointWriter writer(options(), layout());
      writer.save(name_of_epoch(0), {}, [](auto staging) { fill(staging, 1); });
      writer.finish();
      ::_exit(2);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ) << status << " at " << part << " sixteenths";
    EXPECT_EQ(wrong_in(file(0), 0), "") << "killed after " << part << " sixteenths of the file";
  }
  EXPECT_EQ(list_checkpoints(folder_.path()).size(), 1u) << "what a killed write left has another name";
}

}  // namespace
}  // namespace twinbench
