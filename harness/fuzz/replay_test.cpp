// Replays the fuzzers' seeds, every truncation of them and random changes through the fuzz targets, without clang. Each
// input ends where an inaccessible page begins, so that a read past it ends the program even without a sanitizer.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <iostream>

#include "harness/fuzz/changes.h"
#include "harness/fuzz/seeds.h"
#include "src/formats/test_support.h"

#define TWINBENCH_FUZZ_TARGET(name) extern "C" int fuzz_##name(const std::uint8_t*, std::size_t);
#include "fuzz_targets.def"
#undef TWINBENCH_FUZZ_TARGET

namespace twinbench {
namespace {

// Of the datasets' formats; files and words of people take a reader longer.
constexpr std::uint32_t kChangesPerSeed = 1500, kChangesPerText = 500;
constexpr std::size_t kMostTruncations = 400, kMostCutTexts = 120;

using Target = int (*)(const std::uint8_t*, std::size_t);

// What is being replayed, for whoever reads the log of a crash.
char current_input[512] = "";

void say_which_input(int signal) {
  const char* const parts[] = {"\nreplay_test crashed on: ", current_input, "\n"};
  for (const char* part : parts)
    if (write(STDERR_FILENO, part, std::strlen(part)) < 0) break;
  std::signal(signal, SIG_DFL);
  raise(signal);
}

// Memory of a few pages whose last byte is the last that may be touched.
class FencedMemory {
 public:
  explicit FencedMemory(std::size_t most_bytes) : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
    usable_ = (most_bytes / page_ + 1) * page_;
    void* const mapped = mmap(nullptr, usable_ + page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED || mprotect(static_cast<char*>(mapped) + usable_, page_, PROT_NONE) != 0)
      throw Error(ErrorKind::kInputOutput, "mmap", std::to_string(usable_), "more memory is needed");
    start_ = static_cast<std::uint8_t*>(mapped);
  }
  ~FencedMemory() { munmap(start_, usable_ + page_); }
  FencedMemory(const FencedMemory&) = delete;
  FencedMemory& operator=(const FencedMemory&) = delete;

  const std::uint8_t* place(const std::string& bytes) {
    std::uint8_t* const at = start_ + usable_ - bytes.size();
    std::memcpy(at, bytes.data(), bytes.size());
    return at;
  }

 private:
  std::size_t page_, usable_ = 0;
  std::uint8_t* start_ = nullptr;
};

// Found from the program's own place: compilers may be given relative or foreign paths (ccache). Empty: there is none.
std::filesystem::path in_sources(const std::string& place) {
  for (auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path(); folder.has_relative_path();
       folder = folder.parent_path())
    if (std::filesystem::exists(folder / place)) return folder / place;
  return {};
}

std::vector<std::string> torch_samples() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(in_sources("src/formats/testdata")))
    if (entry.path().extension() == ".pt") files.push_back(entry.path());
  return files;
}

class FuzzReplay : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    for (const int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS}) std::signal(signal, say_which_input);
    folder_ = testing::TempDir() + "/fuzz_seeds." + std::to_string(getpid());
    make_seeds(folder_, torch_samples());
    std::cout << "changes by Philox seed " << kChangeSeed << '\n';
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(folder_); }

  static void replay(const std::string& name, Target target) {
    std::size_t seeds = 0, inputs = 0;
    const auto checked_in = in_sources("harness/fuzz/corpus/" + name);
    const bool text = !checked_in.empty();
    for (const auto& entry : std::filesystem::directory_iterator(text ? checked_in.string() : folder_ + "/" + name)) {
      const std::string seed = read_bytes(entry.path());
      FencedMemory memory(seed.size());
      const auto run = [&](const std::string& bytes, const std::string& what) {
        std::snprintf(current_input, sizeof(current_input), "%s, %s", entry.path().c_str(), what.c_str());
        EXPECT_EQ(target(memory.place(bytes), bytes.size()), 0) << current_input;
        ++inputs;
      };
      run(seed, "as it is");
      const std::size_t step = seed.size() / (text ? kMostCutTexts : kMostTruncations) + 1;
      for (std::size_t size = 0; size < seed.size(); size += step)
        run(seed.substr(0, size), "its first " + std::to_string(size) + " bytes");
      for (std::uint32_t change = 0; !seed.empty() && change < (text ? kChangesPerText : kChangesPerSeed); ++change)
        run(changed(seed, change), "change " + std::to_string(change));
      ++seeds;
    }
    std::cout << name << ": " << seeds << " seeds, " << inputs << " inputs\n";
    EXPECT_GE(seeds, 6u) << "seeds of " << name << " are missing";
  }

  static inline std::string folder_;
};

#define TWINBENCH_FUZZ_TARGET(name) \
  TEST_F(FuzzReplay, name) { replay(#name, fuzz_##name); }
#include "fuzz_targets.def"
#undef TWINBENCH_FUZZ_TARGET

TEST_F(FuzzReplay, TheFenceStopsAReadPastTheEnd) {
  FencedMemory memory(100);
  const volatile std::uint8_t* const bytes = memory.place(std::string(100, 'x'));
  EXPECT_EQ(bytes[99], 'x');
  EXPECT_DEATH((void)bytes[100], "crashed on");
}

}  // namespace
}  // namespace twinbench
