// What every launch must keep to: one check for a card and for the host, which refuse the same in the same words.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "kernels/common/kernel_name.h"
#include "kernels/common/simt.h"
#include "src/common/error.h"

namespace twinbench::kernels::simt {

constexpr std::int64_t kMostGridX = 0x7fffffff, kMostGridYZ = 0xffff;
constexpr unsigned kMostBlockZ = 64, kMostThreads = 1024;

// One run() of an adapter: the stream that all its launches must be on. Counts the runs of its OS thread.
class RunScope {
 public:
  explicit RunScope(const void* stream) : before_(current()) { current() = {stream, true, before_.number + 1}; }
  ~RunScope() { current() = {before_.stream, before_.open, before_.number + 1}; }
  RunScope(const RunScope&) = delete;
  RunScope& operator=(const RunScope&) = delete;

  struct Run {
    const void* stream = nullptr;
    bool open = false;
    std::uint64_t number = 0;
  };
  static Run& current() {
    static thread_local Run run;
    return run;
  }

 private:
  Run before_;
};

struct Launch {
  Index3 grid, block;
  std::size_t dynamic_shared_bytes;
  int max_threads;  // the kernel's launch bound
  const void* stream;
};

// Throws Error(kBadLaunch) naming the kernel, the value and the limit. `name` is asked only then.
inline void check_launch(std::string (*name)(), const Launch& launch) {
  const auto refuse = [&](const char* what, const std::string& value, const std::string& remedy) {
    throw Error(ErrorKind::kBadLaunch, name() + " " + what, value, remedy);
  };
  const auto extent = [](Index3 size) {
    return std::to_string(size.x) + " x " + std::to_string(size.y) + " x " + std::to_string(size.z);
  };
  const std::uint64_t threads = std::uint64_t{launch.block.x} * launch.block.y * launch.block.z;
  const auto most = std::min<std::uint64_t>(kMostThreads, static_cast<std::uint64_t>(launch.max_threads));
  if (threads == 0 || threads > most || launch.block.z > kMostBlockZ)
    refuse("block", extent(launch.block),
           "from 1 to " + std::to_string(most) + " threads, its kMaxThreads, and at most 64 along z");
  if (launch.grid.x > kMostGridX || launch.grid.y > kMostGridYZ || launch.grid.z > kMostGridYZ)
    refuse("grid", extent(launch.grid), "at most 2147483647 x 65535 x 65535 blocks; let threads stride over the rest");
  if (launch.dynamic_shared_bytes > static_cast<std::size_t>(kMaxSharedBytes))
    refuse("dynamic shared memory", std::to_string(launch.dynamic_shared_bytes) + " bytes",
           "at most " + std::to_string(kMaxSharedBytes) + " bytes, which every supported card has");
  const RunScope::Run& run = RunScope::current();
  if (run.open && launch.stream != run.stream)
    refuse("stream", launch.stream == nullptr ? "the default stream" : "another stream",
           "launch on stream(), the current one: others are not ordered with the tensors that the kernel reads");
}

// Blocks along x. Throws Error(kBadLaunch) where the count is none that a grid can have.
inline std::int64_t checked_blocks(std::int64_t blocks) {
  if (blocks < 0 || blocks > kMostGridX)
    throw Error(ErrorKind::kBadLaunch, "grid", std::to_string(blocks) + " blocks",
                "from 0 to 2147483647 blocks along x; let threads stride over the rest");
  return blocks;
}

}  // namespace twinbench::kernels::simt
