// Launches trainer2.fused_retrieval's kernel.
//
// version | idea                                                                         | state
// 1       | a block a part of the candidates, eight samples share one of the bank's; the last block of a tile merges
#include "kernels/common/simt_device.h"
#include "kernels/trainer2/fused_retrieval/kernel.h"

namespace twinbench::trainer2::fused_retrieval {
namespace {

template <int kWidth, Stored kStored>
void launch_as(const Arguments& a, kernels::Stream stream) {
  simt::launch(Retrieve<kWidth, kStored>{}, simt::grid(a.split.blocks), kThreads,
               shared_bytes(a.axes, a.split.chunk, kWidth), stream, a);
}

template <Stored kStored>
void launch_wide(const Arguments& a, kernels::Stream stream) {
  const auto aligned = [](const void* where) { return reinterpret_cast<std::uintptr_t>(where) % 16 == 0; };
  const bool wide = a.width % 4 == 0 && aligned(a.token_states) && aligned(a.bank_states) && aligned(a.mix);
  wide ? launch_as<4, kStored>(a, stream) : launch_as<1, kStored>(a, stream);
}

}  // namespace

void launch(const Arguments& a, kernels::Stream stream) {
  switch (a.stored) {
    case Stored::kFloat: return launch_wide<Stored::kFloat>(a, stream);
    case Stored::kHalf: return launch_wide<Stored::kHalf>(a, stream);
    case Stored::kBfloat: return launch_wide<Stored::kBfloat>(a, stream);
  }
}

}  // namespace twinbench::trainer2::fused_retrieval
