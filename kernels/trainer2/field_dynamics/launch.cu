// Launches trainer2.field_dynamics' kernels.
//
// version | idea                                                                   | state
// 1       | a row a block, the whole window on the chip, each force computed once  | replaced: 16 blocks, 10 shuffles
// 2       | four columns a block; one barrier a step; sums of eight steps together | in use: bound by instruction issue
// Version 1, predicted 15 us for 64 steps of 8 x 8 cells and 16 x 16 numbers; modelled 35.8 / 31.0 us (H200 / RTX
// 5090): two elements a thread and two full sums of a warp a step on 16 multiprocessors.
// Version 2: columns of the tensor never meet, and four are a sector. Predicted: 64 blocks of 8 warps; an element and
// step is 50 instructions, sums another 10 instead of 60: 8 * 64 * 60 issue slots on 4 schedulers, 4 us at 1.98 GHz.
// Modelled 8.9 / 6.9 us: 126 instructions a step of a warp, by hand 122 and what comes before and after.
#include "kernels/common/simt_device.h"
#include "kernels/trainer2/field_dynamics/kernel.h"

namespace twinbench::trainer2::field_dynamics {

void launch(const Arguments& a, kernels::Stream stream) {
  const int elements = a.width * a.height * a.split.columns;
  const auto blocks = simt::grid(std::int64_t{a.dimension} * a.split.parts);
  if (elements <= kThreads)
    simt::launch(Window{}, blocks, kThreads, shared_bytes(elements), stream, a);
  else
    simt::launch(WindowLarge{}, blocks, kThreads, shared_bytes(elements), stream, a);
}

}  // namespace twinbench::trainer2::field_dynamics
