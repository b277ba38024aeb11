// Blocks that run at once on the host: a thread block cluster, or the whole grid of a cooperative launch.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "harness/simt/executor.h"

namespace twinbench::kernels::simt {

// One executor a block, which take turns pass by pass. Their common barrier opens when all their threads wait at it.
class Team {
 public:
  enum class Kind { kCluster, kGrid };

  // `blocks` of the grid, the same ones that a card keeps resident together: a cluster's, or all.
  Team(Kind kind, std::int64_t blocks, const std::function<std::unique_ptr<Executor>()>& make);

  // Runs the whole grid of `grid_blocks`, team after team.
  Report run(std::int64_t grid_blocks, const HostOptions& options);

  Kind kind() const { return kind_; }
  int size() const { return static_cast<int>(members_.size()); }
  Executor& member(int place) { return *members_[static_cast<std::size_t>(place)]; }
  // A thread touched another member's shared memory: until the next barrier that one may not end.
  void touch_other(const Executor& by, const HostThread& thread, int of);

 private:
  void run_team(std::int64_t first_block, const std::vector<int>& order);
  bool release_barrier(std::int64_t first_block);
  void explain_deadlock();
  const char* barrier_name() const { return kind_ == Kind::kCluster ? "cluster barrier" : "grid barrier"; }

  Kind kind_;
  std::vector<std::unique_ptr<Executor>> members_;
  std::uint32_t epoch_ = 0;
  struct OtherTouch {
    int by = -1, of = -1, thread = -1;
  };
  OtherTouch last_other_;  // since the last barrier
  bool stopped_ = false;
};

// launch_on_host where `cluster` blocks along x, or all of the grid, run at once. Throws std::invalid_argument for a
// team that no card takes.
Report run_team_on_host(const std::string& kernel, Index3 grid, Index3 block, std::size_t dynamic_shared_bytes,
                        int max_threads, const HostOptions& options, int cluster, bool cooperative,
                        std::function<void(HostBlock&)> body);

}  // namespace twinbench::kernels::simt
