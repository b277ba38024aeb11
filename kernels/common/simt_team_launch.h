// Launches of blocks that run at once, for .cu files: on a card, and on the host under TWINBENCH_SIMT.
#pragma once

#include "kernels/common/simt_device.h"
#include "kernels/common/simt_team.h"
#include "kernels/common/team_check.h"

#if defined(TWINBENCH_SIMT)
#include "harness/simt/host_team.h"
#endif

namespace twinbench::kernels::simt {

#if !defined(TWINBENCH_SIMT)
// With one attribute. Throws CudaError where the card refuses.
template <class Kernel, class... Arguments>
void launch_with(cudaLaunchAttribute attribute, dim3 grid, dim3 block, std::size_t dynamic_shared_bytes, Stream stream,
                 const Arguments&... arguments) {
  check_nothing_earlier(kernel_name<Kernel>);
  if (dynamic_shared_bytes > kSharedWithoutAsking) {
    static std::atomic<std::uint64_t> allowed{0};
    allow_dynamic_shared(reinterpret_cast<const void*>(run<Kernel, Arguments...>), allowed);
  }
  cudaLaunchConfig_t configuration{};
  configuration.gridDim = grid;
  configuration.blockDim = block;
  configuration.dynamicSmemBytes = dynamic_shared_bytes;
  configuration.stream = stream;
  configuration.attrs = &attribute;
  configuration.numAttrs = 1;
  TWINBENCH_CUDA_CHECK(cudaLaunchKernelEx(&configuration, run<Kernel, Arguments...>, arguments...));
  check_launched(kernel_name<Kernel>);
  announce(DeviceEvent::kLaunch, [] { return kernel_name<Kernel>(); });
}
#endif

// As launch(), in clusters of `cluster` blocks along x. Throws Error(kBadLaunch) for one that no card takes.
template <class Kernel, class... Arguments>
void launch_clusters(Kernel kernel, dim3 grid, dim3 block, int cluster, std::size_t dynamic_shared_bytes, Stream stream,
                     const Arguments&... arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  const Launch launch{.grid = {grid.x, grid.y, grid.z},
                      .block = {block.x, block.y, block.z},
                      .dynamic_shared_bytes = dynamic_shared_bytes,
                      .max_threads = Kernel::kMaxThreads,
                      .stream = stream};
  check_launch(kernel_name<Kernel>, launch);
  check_cluster(kernel_name<Kernel>, launch.grid, cluster);
#if defined(TWINBENCH_SIMT)
  run_host_team(kernel, launch, {.cluster = cluster}, arguments...);
#else
  (void)kernel;
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = static_cast<unsigned>(cluster);
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  launch_with<Kernel>(attribute, grid, block, dynamic_shared_bytes, stream, arguments...);
#endif
}

// As launch(), with all blocks at once, so that grid_barrier may be called. Throws Error(kBadLaunch) for a grid that
// not every supported card holds.
template <class Kernel, class... Arguments>
void launch_cooperative(Kernel kernel, dim3 grid, dim3 block, std::size_t dynamic_shared_bytes, Stream stream,
                        const Arguments&... arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  const Launch launch{.grid = {grid.x, grid.y, grid.z},
                      .block = {block.x, block.y, block.z},
                      .dynamic_shared_bytes = dynamic_shared_bytes,
                      .max_threads = Kernel::kMaxThreads,
                      .stream = stream};
  check_launch(kernel_name<Kernel>, launch);
  check_cooperative(kernel_name<Kernel>, launch, promised_blocks_per_sm<Kernel>());
#if defined(TWINBENCH_SIMT)
  run_host_team(kernel, launch, {.cooperative = true}, arguments...);
#else
  (void)kernel;
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeCooperative;
  attribute.val.cooperative = 1;
  launch_with<Kernel>(attribute, grid, block, dynamic_shared_bytes, stream, arguments...);
#endif
}

}  // namespace twinbench::kernels::simt
