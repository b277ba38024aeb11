// The loader's gates (energy-flow specification C02): the first batch waits for no other row, and a file larger than
// the memory is no obstacle.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>

#include "optimized/energy_flow/dataset_loader/streaming_loader.h"
#include "src/formats/test_support.h"

namespace twinbench {
namespace {

// A prepared file of `rows` pairs, [rows, width] each.
std::string prepared_file(const TemporaryDirectory& directory, std::int64_t rows, std::int64_t width) {
  const std::string path = directory.file(std::to_string(rows) + ".efds");
  write_efds(path, sample_dataset(rows, width));
  prepare_efds(EfdsFile(path));
  return path;
}

// Seconds from opening the file to its first batch: the best of several, which other programs disturb least.
double first_batch_s(const std::string& path) {
  double best = 1e9;
  for (int attempt = 0; attempt < 20; ++attempt) {
    const auto start = std::chrono::steady_clock::now();
    StreamingLoader loader(path, {});
    loader.next();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

// What a first batch of `rows` rows may take, given that of 5,000: the permutation alone may grow.
double allowed_s(double first_batch_of_5000_s, std::int64_t rows) {
  return 1.2 * first_batch_of_5000_s + 60e-9 * static_cast<double>(rows);
}

TEST(LoaderLimits, TheFirstBatchWaitsForThePermutationOnly) {
  const TemporaryDirectory directory;
  const double small_s = first_batch_s(prepared_file(directory, 5'000, 8));
  const std::int64_t many = 500'000, wide = 10'000;
  EXPECT_LE(first_batch_s(prepared_file(directory, many, 8)), allowed_s(small_s, many))
      << "many rows; 5,000 take " << small_s << " s";
  // 82 MB: whoever reads them all takes several times what is allowed.
  EXPECT_LE(first_batch_s(prepared_file(directory, wide, 1024)), allowed_s(small_s, wide))
      << "wide rows; 5,000 narrow ones take " << small_s << " s";
}

// Ends the process: 0 where `work` got by with `bytes` more memory than it holds, 3 where it ran out.
template <typename Work>
[[noreturn]] void exit_within(std::size_t bytes, const Work& work) {
  std::ifstream status("/proc/self/statm");
  std::size_t pages[6] = {};
  for (auto& count : pages) status >> count;
  const rlimit limit{pages[5] * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + bytes, RLIM_INFINITY};
  ::setrlimit(RLIMIT_DATA, &limit);
  try {
    work();
  } catch (const std::bad_alloc&) {
    ::_exit(3);
  }
  ::_exit(0);
}

TEST(LoaderLimits, AnEpochOfAFileFourTimesTheBudget) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer's own memory does not fit a limit";
#endif
  // In a program started anew: what earlier tests in this one gave back stays mapped here, and would serve beyond any
  // limit.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const TemporaryDirectory directory;
  const std::size_t budget = std::size_t{32} << 20;
  const std::int64_t width = 1024, rows = static_cast<std::int64_t>(4 * budget / (2 * sizeof(float) * width));
  const std::string path = prepared_file(directory, rows, width);
  const auto read_whole = [&] {
    std::ifstream stream(path, std::ios::binary | std::ios::ate);
    std::vector<char> file(static_cast<std::size_t>(stream.tellg()));
    stream.seekg(0).read(file.data(), static_cast<std::streamsize>(file.size()));
  };
  const auto stream_epoch = [&] {
    LoaderOptions options;
    options.workers = 0;  // a thread's stack would count too
    StreamingLoader loader(path, options);
    std::int64_t delivered = 0;
    while (const LoadedBatch* batch = loader.next()) delivered += batch->size();
    if (delivered != rows) ::_exit(4);
  };
  EXPECT_EXIT(exit_within(budget, read_whole), ::testing::ExitedWithCode(3), "");  // the limit works
  EXPECT_EXIT(exit_within(budget, stream_epoch), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace twinbench
