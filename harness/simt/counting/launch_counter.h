// Counts every launch it watches: groups what the lanes of a warp touched into requests and adds up what they cost.
#pragma once

#include <memory>
#include <vector>

#include "harness/simt/access_observer.h"
#include "harness/simt/counting/block_sample.h"
#include "harness/simt/counting/block_words.h"
#include "harness/simt/counting/flat_map.h"
#include "harness/simt/counting/lane_log.h"
#include "harness/simt/counting/launch_counts.h"
#include "harness/simt/counting/warp_request.h"

namespace twinbench::kernels::simt {

// Kernels are counted as far as they are compiled for it (CMake: twinbench_counted). The races between blocks
// that it finds go into the launch's report.
class LaunchCounter final : public AccessObserver {
 public:
  // Of a launch with more threads than `most_threads`, blocks with as many are run (BlockSample). Then
  // the launch's results are incomplete; its counts are those of the blocks that ran.
  explicit LaunchCounter(std::uint64_t most_threads = UINT64_MAX) : most_threads_(most_threads) {}

  const std::vector<LaunchCounts>& launches() const { return launches_; }

  void begin_launch(const Executor& executor) override;
  bool takes_block(std::int64_t linear_index) override;
  void begin_block(std::int64_t linear_index) override;
  void begin_thread(const HostThread& thread) override;
  void pause_thread() override;
  void meet_warp(int warp) override;
  void fence() override;
  void pass_barrier() override;
  void pass_team_barrier(std::int64_t first, std::int64_t blocks) override;
  void end_block() override;
  void end_launch(Report& report) override;
  void touch_global(const void* site, const void* address, std::uint32_t bytes, Access access) override;
  void touch_shared(const void* site, const SharedRegion& region, std::int64_t offset, std::uint32_t bytes,
                    Access access) override;

 private:
  static constexpr std::uint32_t kFence = ~std::uint32_t{0};  // a group that is a lane's fence and no access
  struct Group {
    std::uint32_t site;
    WarpRequest32 request;
  };

  std::uint32_t site_index(const LoggedAccess& access);
  void group_lanes(int warp);
  void add(int warp, const Group& group);
  std::uint64_t repeated_bytes(int warp, Access access);
  void find_race(int warp, const SiteCounts& site);
  void add_finding(FindingKind kind, const SiteCounts& site, std::string text);

  std::uint64_t most_threads_;
  BlockSample sample_;
  std::vector<LaunchCounts> launches_;
  LaunchCounts now_;
  std::int64_t block_ = 0;
  Index3 block_index_{};
  std::vector<LaneLog> logs_;  // by rank
  std::array<AddressRange, 5> not_global_;
  std::vector<const SharedRegion*> regions_;
  FlatMap<std::uint32_t> index_of_site_;              // code address -> index into now_.sites + 1
  std::vector<std::uint32_t> times_;                  // by site: how often the lane passed it
  std::vector<std::vector<std::uint32_t>> group_of_;  // by site and that number: index into groups_
  std::vector<Group> groups_;
  std::vector<Interval> touched_;         // by the last request
  FlatMap<std::uint16_t> known_to_warp_;  // sector and warp -> its 2-byte words met in this block
  BlockWords words_;
  struct Told {
    FindingKind kind;
    const void* site;
  };
  std::vector<Told> told_;
  std::vector<Finding> findings_;
};

}  // namespace twinbench::kernels::simt
