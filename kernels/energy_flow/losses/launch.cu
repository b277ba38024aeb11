// Launches energy_flow.losses' kernel.
//
// version | idea                                                                          | state
// 1       | both losses in one grid, differences and gradients in one pass, the last block adds | in use
// Predicted at 16 x 2,500 cells, with gradients: 960 KB moved by 80 blocks, 0.3 us of bandwidth on either card: so the
// launch, about 3 us, and the last block's handover. At 256 x 10,000: 61 MB, 14 us at 4.3 TB/s, 40 us at 1.55 TB/s.
#include "kernels/common/simt_device.h"
#include "kernels/energy_flow/losses/kernel.h"

namespace twinbench::energy_flow::losses {

void launch(SurfaceLossArguments a, kernels::Stream stream) {
  const std::int32_t blocks = loss_blocks(a.energy.count);
  a.energy_blocks = blocks > 0 ? blocks : 1;  // without a value the losses are 0, and somebody says so
  a.encoder_blocks = loss_blocks(a.encoder.count);
  const auto grid = simt::grid(a.energy_blocks + a.encoder_blocks);
  if (lies_in_fours(a.energy) && lies_in_fours(a.encoder))
    simt::launch(SurfaceLosses{}, grid, kLossThreads, 0, stream, a);
  else
    simt::launch(SurfaceLossesAnyWidth{}, grid, kLossThreads, 0, stream, a);
}

}  // namespace twinbench::energy_flow::losses
