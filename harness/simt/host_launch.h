// simt::launch of the launchers' host build (TWINBENCH_SIMT): a checked run by the executor where a card starts one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "harness/simt/grid_watch.h"
#include "harness/simt/host.h"
#include "harness/simt/host_orders.h"
#include "kernels/common/launch_check.h"
#include "kernels/common/stream.h"
#include "src/common/device_event.h"

#if !defined(__CUDACC__)
// As CUDA's own type of this name, which launchers use.
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_blocks = 1, unsigned y_blocks = 1, unsigned z_blocks = 1)  // NOLINT
      : x(x_blocks), y(y_blocks), z(z_blocks) {}
};
#endif

namespace twinbench::kernels::simt {

// Runs a launch that passed the check. Throws Error(kBadKernel) that names the kernel and the first finding; an access
// to memory that nobody mapped (a null pointer) is one.
void run_host_launch(const std::string& kernel, const std::function<Report()>& run);

// Turns of threads that all launches of this process have taken: each begins, and goes on behind what it waited for.
// What a run takes on the host, whatever the machine.
std::uint64_t host_turns();

// A launch with all its arguments, as a card takes them: by value.
struct HostLaunch {
  std::string kernel;
  std::function<Report()> run;
};
// Announces and runs it, or, while a graph is recorded on this thread, keeps it.
void issue_host_launch(const HostLaunch& launch);
// What `work` launches; nothing of it runs.
std::vector<HostLaunch> recorded_launches(const std::function<void()>& work);

// As on a card; returns when the kernel has run. Throws Error(kBadLaunch) for a launch that no card takes.
template <class Kernel, class... Arguments>
void launch(Kernel kernel, dim3 grid, dim3 block, std::size_t dynamic_shared_bytes, Stream stream,
            const Arguments&... arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  check_launch(kernel_name<Kernel>, {.grid = {grid.x, grid.y, grid.z},
                                     .block = {block.x, block.y, block.z},
                                     .dynamic_shared_bytes = dynamic_shared_bytes,
                                     .max_threads = Kernel::kMaxThreads,
                                     .stream = stream});
  issue_host_launch({kernel_name<Kernel>(), [=] {
                       const Index3 granted = granted_grid(kernel_name<Kernel>(), {grid.x, grid.y, grid.z});
                       return launch_on_host(kernel, Size3(granted.x, granted.y, granted.z),
                                             Size3(block.x, block.y, block.z), dynamic_shared_bytes,
                                             next_host_options(), arguments...);
                     }});
}

}  // namespace twinbench::kernels::simt
