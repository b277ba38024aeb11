// Host forms of kernels/common/simt_team.h, and the launches of kernels/common/simt_team_launch.h.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "harness/simt/host.h"
#include "harness/simt/host_orders.h"
#include "harness/simt/team.h"
#include "kernels/common/launch_check.h"
#include "kernels/common/simt_team.h"
#include "src/common/device_event.h"

namespace twinbench::kernels::simt {

inline Team& team_of(HostBlock& block, Team::Kind kind, const char* what) {
  Team* team = block.executor().team();
  if (team == nullptr || team->kind() != kind)
    throw std::runtime_error(std::string(what) + " in a launch that is not one of " +
                             (kind == Team::Kind::kCluster ? "clusters: use launch_clusters"
                                                           : "a whole grid at once: use launch_cooperative"));
  return *team;
}

inline int host_cluster_rank(HostBlock& block) {
  team_of(block, Team::Kind::kCluster, "cluster_rank");
  return block.executor().place_in_team();
}
inline int host_cluster_size(HostBlock& block) { return team_of(block, Team::Kind::kCluster, "cluster_size").size(); }
inline void host_cluster_barrier(HostBlock& block, const char* file, int line) {
  team_of(block, Team::Kind::kCluster, "cluster_barrier");
  block.executor().wait_at_team_barrier(block.host_thread(), {file, line});
}
inline void host_grid_barrier(HostBlock& block, const char* file, int line) {
  team_of(block, Team::Kind::kGrid, "grid_barrier");
  block.executor().wait_at_team_barrier(block.host_thread(), {file, line});
}

template <class T>
SharedPointer<T> host_cluster_shared(HostBlock& block, SharedPointer<T> own, int rank) {
  Team& team = team_of(block, Team::Kind::kCluster, "cluster_shared");
  if (rank < 0 || rank >= team.size())
    throw std::runtime_error("shared memory of block " + std::to_string(rank) + " of a cluster of " +
                             std::to_string(team.size()));
  if (rank == block.executor().place_in_team()) return own;
  team.touch_other(block.executor(), block.host_thread(), rank);
  SharedRegion* region = team.member(rank).find_region(own.region(), block.executor());
  return {block.executor(), block.host_thread(), *region, own.offset()};
}

struct TeamOptions {
  int cluster = 1;
  bool cooperative = false;
};

// As launch_on_host, with blocks at once as the options say.
template <class Kernel, class... Arguments>
Report launch_team_on_host(Kernel kernel, Size3 grid, Size3 block, std::size_t dynamic_shared_bytes,
                           HostOptions options, TeamOptions team, Arguments... arguments) {
  static_assert(std::is_empty_v<Kernel>, "a kernel has no state: pass values as arguments");
  const auto thread = [&](HostBlock& context) TWINBENCH_WHOLE_KERNEL { kernel(context, arguments...); };
  return run_team_on_host(kernel_name<Kernel>(), grid.index, block.index, dynamic_shared_bytes, Kernel::kMaxThreads,
                          options, team.cluster, team.cooperative, std::ref(thread));
}

#if defined(TWINBENCH_SIMT)
template <class Kernel, class... Arguments>
void run_host_team(Kernel kernel, const Launch& launch, TeamOptions team, const Arguments&... arguments) {
  issue_host_launch({kernel_name<Kernel>(), [=] {
                       return launch_team_on_host(kernel, Size3(launch.grid.x, launch.grid.y, launch.grid.z),
                                                  Size3(launch.block.x, launch.block.y, launch.block.z),
                                                  launch.dynamic_shared_bytes, next_host_options(), team, arguments...);
                     }});
}
#endif

}  // namespace twinbench::kernels::simt
