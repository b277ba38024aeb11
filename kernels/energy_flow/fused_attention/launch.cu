// Launches fused attention.
//
// version | idea                                                                        | state
// 1       | tiles of 64 queries and keys in shared memory, 4 x 4 scores a thread, FMA   | in use: bound by issue slots
#include "kernels/common/grid.h"
#include "kernels/common/simt_device.h"
#include "kernels/energy_flow/fused_attention/kernel.h"

namespace twinbench::energy_flow::fused_attention {
namespace {

dim3 tiles(const Attention<float>& a, int rows) {
  return {static_cast<unsigned>(kernels::blocks_of(rows, kTileRows)), static_cast<unsigned>(a.heads),
          static_cast<unsigned>(a.batch)};
}
bool nothing(const Attention<float>& a) { return a.batch == 0 || a.queries == 0 || a.keys == 0; }

}  // namespace

void launch(const Attention<float>& a, kernels::Stream stream) {
  if (nothing(a)) return;
  kernels::simt::launch(Forward{}, tiles(a, a.queries), kAttentionThreads, attention_shared_bytes(a.width), stream, a);
}

void launch_backward(const Attention<float>& a, kernels::Stream stream) {
  if (nothing(a)) return;
  const std::int64_t shared = attention_back_shared_bytes(a.width);
  kernels::simt::launch(QueriesBack{}, tiles(a, a.queries), kAttentionThreads, shared, stream, a);
  kernels::simt::launch(KeysBack{}, tiles(a, a.keys), kAttentionThreads, shared, stream, a);
}

}  // namespace twinbench::energy_flow::fused_attention
