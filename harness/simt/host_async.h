// Host forms of kernels/common/simt_async.h: copies wait in their thread's queue and arrive at the wait.
#pragma once

#include <stdexcept>
#include <string>

#include "harness/simt/host_block.h"
#include "kernels/common/simt_async.h"

namespace twinbench::kernels::simt {

template <int kBytes, class T, class From>
TWINBENCH_ALWAYS_INLINE void host_async_copy(HostBlock& block, SharedPointer<T> to, const From* from, bool valid) {
  struct alignas(kBytes) Chunk {
    unsigned char of[kBytes];
  };
  if (reinterpret_cast<std::uintptr_t>(from) % kBytes != 0)
    throw std::runtime_error("an asynchronous copy of " + std::to_string(kBytes) +
                             " bytes from a misaligned global address");
  const SharedPointer<Chunk> chunk = to.template as<Chunk>();  // finds a misaligned shared address
  Chunk value{};
  if (valid) value = *reinterpret_cast<const Chunk*>(from);
  block.async_copies().add<kBytes>(chunk.region(), chunk.offset(), value.of);
}
inline void host_async_commit(HostBlock& block) { block.async_copies().commit(); }
inline void host_async_wait(HostBlock& block, int groups) { block.async_copies().wait(groups); }

}  // namespace twinbench::kernels::simt
