// Launches sem.selective_scan's kernels.
//
// version | idea                                                                | state
// 1       | a batch item's group a block, a state a thread, tiles of 16 steps;  | replaced
//         | projections by FMA from registers and shared memory; chunks where   |
//         | there are few groups                                                |
// 2       | the same; one loop projects and scans; eight lanes share sums of    | in use
//         | the output, which take 28 shuffles a tile instead of 124; the way   |
//         | back adds up its steps' shares through shared memory                |
// Floor of a layer, 128 sequences of 1,024 steps, 16 groups of 16 channels, 128 states each: 554 MB are 129 us (H200)
// and 357 us (RTX 5090); 72 GFLOP on FMA units 1,070 us and 690 us, on tensor cores in TF32 222 us and 650 us; 0.8 G
// special functions 192 us and 123 us. Predicted for version 1, before it was written: 128 FMA, 25 of the sine and
// cosine, 8 of the exponential and 30 others a state and step, so 190 instructions: 1,540 us (H200) and 975 us (RTX
// 5090), bound by instruction issue; one launch. Version 2, predicted 128 FMA and 45 others: 1,420 us and 910 us. Its
// machine code for sm_90 has more: 122 instructions in the loop over states and steps, 71 in the output's sums, 36 for
// what a tile of 16 steps takes besides, by hand 229 in all. Modelled: 231, of which 160 are FMA, additions and
// products: 1,857 us and 1,244 us.
// Twice the floor on tensor cores, 386 us and 724 us, is out of reach in this component's arithmetic. As modelled, an
// instruction a state and step takes 8.0 us and 5.4 us, so that there would be room for 48 and for 134 of them: decay,
// recurrence and largest state take 45, the products 128 FMA. The specification allows TF32 to four other components
// (2.5), and asks 2e-6 of the states. fp32's precision from three TF32 products takes 480 us and 1,390 us even with
// three real products for a complex one: on the H200 about 900 us, for some 100 other instructions stay (decay and
// recurrence 45, splitting of operands, and states on their way between fragments and lanes); on the RTX 5090 more than
// now, and a launch is one kernel for every card. Split into bf16 it takes six products, 545 us and 2,160 us. Nor are
// two FMA in one instruction a way out: sm_90 has none, and for sm_120 ptxas makes two FFMA of fma.rn.f32x2. Complex
// products of three real ones save 32 of 231 instructions and cost a bit of precision; two states a thread save 7.
// With plain TF32 it would be 160 us and 620 us: rows of a tile are then eight batch items of a group at two steps, so
// that a lane's sums are a state's consecutive steps, and go on as the output's left factor.
// Backward, where the gradients of projections make it five products: modelled 5,833 us and 3,809 us; states at every
// sixteenth step are kept, 2 % of the arrays of all states.
#include "kernels/common/simt_device.h"
#include "kernels/sem/selective_scan/backward_kernel.h"

namespace twinbench::sem::selective_scan {

using kernels::Stream;

void launch_scan(const ScanArguments& a, Stream stream) {
  const bool at_once = a.shape.at_once();
  const auto shared = [&](bool outputs) {
    return std::int64_t{4} * Layout::of(a.shape, a.shape.tile_steps(), outputs).end;
  };
  const dim3 all = simt::grid(a.shape.items() * a.chunks), but_last = simt::grid(a.shape.items() * (a.chunks - 1));
  if (at_once) {
    if (a.chunks > 1) simt::launch(Ends{}, but_last, kThreads, shared(false), stream, a);
    simt::launch(Outputs{}, all, kThreads, shared(true), stream, a);
  } else {
    if (a.chunks > 1) simt::launch(EndsOfMany{}, but_last, kThreads, shared(false), stream, a);
    simt::launch(OutputsOfMany{}, all, kThreads, shared(true), stream, a);
  }
}

void launch_backward(const BackwardArguments& b, Stream stream) {
  const Shape& shape = b.scan.shape;
  const dim3 items = simt::grid(shape.items());
  const std::int64_t of_starts = std::int64_t{4} * Layout::of(shape, shape.tile_steps(), false).end,
                     of_back = std::int64_t{4} * BackLayout::of(shape, shape.tile_steps()).end;
  if (shape.at_once()) {
    simt::launch(Starts{}, items, kThreads, of_starts, stream, b.scan);
    simt::launch(Back{}, items, kThreads, of_back, stream, b);
  } else {
    simt::launch(StartsOfMany{}, items, kThreads, of_starts, stream, b.scan);
    simt::launch(BackOfMany{}, items, kThreads, of_back, stream, b);
  }
  const std::int32_t decays = 2 * shape.groups * shape.states;
  kernels::launch_column_sums(
      {.rows = b.of_decays, .sums = b.decay_sums, .count = shape.batch, .columns = decays, .stride = decays}, stream);
  kernels::launch_column_sums({.rows = b.of_shared,
                               .sums = b.shared_sums,
                               .count = shape.items(),
                               .columns = b.shared_stride,
                               .stride = b.shared_stride},
                              stream);
}

}  // namespace twinbench::sem::selective_scan
