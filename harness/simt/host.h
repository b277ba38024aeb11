// launch_on_host: runs a SIMT kernel on the CPU with every check on. Include this one from kernel tests.
#pragma once

#include <functional>
#include <type_traits>
#include <utility>

#include "harness/simt/executor.h"
#include "harness/simt/guarded_buffer.h"
#include "harness/simt/host_async.h"
#include "harness/simt/host_block.h"
#include "harness/simt/host_mma.h"
#include "kernels/common/kernel_name.h"
#include "kernels/common/simt.h"

// Where accesses are counted, a kernel is one function, so that every access knows its line of the kernel.
#if defined(__SANITIZE_THREAD__)
#define TWINBENCH_WHOLE_KERNEL __attribute__((flatten))
#else
#define TWINBENCH_WHOLE_KERNEL
#endif

namespace twinbench::kernels::simt {

// Size of a grid or block, converted from one to three integers as CUDA's dim3 is.
struct Size3 {
  Size3(std::int64_t x, std::int64_t y = 1, std::int64_t z = 1)  // NOLINT(google-explicit-constructor)
      : index{static_cast<unsigned>(x), static_cast<unsigned>(y), static_cast<unsigned>(z)} {}
  Index3 index;
};

// Runs every thread of every block to its end and returns what was wrong. Arguments as for simt::launch; pointers in
// them point to host memory, best of GuardedBuffers. Deterministic for equal options. An empty grid runs nothing.
template <class Kernel, class... Arguments>
Report launch_on_host(Kernel kernel, Size3 grid, Size3 block, std::size_t dynamic_shared_bytes, HostOptions options,
                      Arguments... arguments) {
  static_assert(std::is_empty_v<Kernel>, "a kernel has no state: pass values as arguments");
  // By value and on this stack, as a kernel's parameters are in constant memory: reading them is no access.
  const auto thread = [&](HostBlock& context) TWINBENCH_WHOLE_KERNEL { kernel(context, arguments...); };
  Executor executor(kernel_name<Kernel>(), grid.index, block.index, dynamic_shared_bytes, Kernel::kMaxThreads,
                    std::move(options), std::ref(thread));
  return executor.run();
}

}  // namespace twinbench::kernels::simt
