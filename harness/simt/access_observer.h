// Who watches launches on the host: told which thread runs, where the threads of a warp meet, and what they touch.
#pragma once

#include <cstdint>

#include "harness/simt/report.h"
#include "harness/simt/shared_memory.h"

namespace twinbench::kernels::simt {

// What the executor tells, in this order (begin_block again wherever another block of those that run at once goes on):
// begin_launch, then for each block begin_block, turns of its threads
// (begin_thread, pause_thread), meeting points of its warps, end_block; end_launch. Accesses come in turns.
class AccessObserver {
 public:
  virtual ~AccessObserver() = default;

  virtual void begin_launch(const Executor& executor) = 0;
  virtual bool takes_block(std::int64_t linear_index) = 0;  // false: the block is not run, and results are incomplete
  virtual void begin_block(std::int64_t linear_index) = 0;
  virtual void begin_thread(const HostThread& thread) = 0;
  virtual void pause_thread() = 0;
  virtual void meet_warp(int warp) = 0;  // each of its threads waits or has finished
  virtual void fence() = 0;              // by the thread that runs
  virtual void pass_barrier() = 0;       // all threads of the block
  // All blocks that run at once, `first` and as many linear indices after it: what they did before is ordered before
  // what they do from now on.
  virtual void pass_team_barrier(std::int64_t first, std::int64_t blocks) = 0;
  virtual void end_block() = 0;
  virtual void end_launch(Report& report) = 0;  // may add findings

  // `site`: the address in the kernel's code to which the access returns.
  virtual void touch_global(const void* site, const void* address, std::uint32_t bytes, Access access) = 0;
  virtual void touch_shared(const void* site, const SharedRegion& region, std::int64_t offset, std::uint32_t bytes,
                            Access access) = 0;
};

// While one of these lives, launches of this OS thread are watched. They nest: the innermost watches.
class WatchLaunches {
 public:
  explicit WatchLaunches(AccessObserver& observer);
  ~WatchLaunches();
  WatchLaunches(const WatchLaunches&) = delete;
  WatchLaunches& operator=(const WatchLaunches&) = delete;

 private:
  AccessObserver* previous_;
};

AccessObserver* launch_observer();  // null: nobody watches

}  // namespace twinbench::kernels::simt
