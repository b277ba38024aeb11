// What a variant must leave alone: the state of the process that every other computation in it depends on.
#pragma once

#include <c10/core/Device.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace twinbench {

// Thread counts, default generator, floating-point mode (of worker threads too), CPU allocator, LibTorch's modes and
// libraries, environment, working directory, signal handlers, locale, processor affinity and priority (of all threads),
// limits: each as a hash under its name.
class GlobalState {
 public:
  static GlobalState now();
  // Names of what differs from `earlier`, comma-separated; empty: nothing.
  std::string changed_since(const GlobalState& earlier) const;

 private:
  std::vector<std::pair<std::string, std::uint64_t>> parts_;
};

// What a variant may have left behind: threads, child processes, open files.
struct Survivors {
  std::size_t threads = 0, processes = 0, files = 0;

  // Starts the pool of worker threads first, which stays by design.
  static Survivors now();
  // "1 thread, 2 processes", or nothing where there are not more than `earlier`.
  std::string more_than(const Survivors& earlier) const;
};

// What a process opens with its first use of a device stays open, whoever uses it: the driver's files, the products'
// handle, the thread of the way back. Before any Survivors are counted.
void open_device(c10::Device device);

}  // namespace twinbench
