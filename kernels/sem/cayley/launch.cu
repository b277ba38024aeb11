// Launches sem.cayley's kernels.
//
// version | idea                                                             | state
// 1       | a block's rows, turned once, in shared memory as halves; matrix  | in use
//         | from L2 in lane order; split operands where fp32's grade is due  |
// Floors at 131,072 rows of 256 (H200): 537 MB are 125 us of DRAM; 69 GFLOP are 174 us of TF32, and three products of
// halves 261 us at the library's rate. Predicted, before it was written: 319 us split (206 GFLOP at the 646e12 that
// warps' own instructions reach; L2 220 us for 2.1 GB of the matrix, read by 4,096 blocks), some 400 with the waits of
// one block a multiprocessor; 160 us single (106 us of products, 125 us of DRAM, and waits). One launch.
// Wider than 384 a row no longer fits beside others: its rotation is a kernel, and the product the library's, which
// from there on is bound by arithmetic, so that what fusing would save is below a tenth.
#include "kernels/common/simt_device.h"
#include "kernels/sem/cayley/kernel.h"
#include "kernels/sem/cayley/wide_kernel.h"

namespace twinbench::sem::cayley {

namespace {

// Whether pairs of neighbouring columns of these may be taken in one access.
template <class... Fields>
bool allows_pairs(int dim, const Fields*... fields) {
  return dim % 2 == 0 && ((reinterpret_cast<std::uintptr_t>(fields) % sizeof(Pair) == 0) && ...);
}

}  // namespace

void launch_forward(Operand operand, const ForwardArguments& a, kernels::Stream stream) {
  const dim3 grid = simt::grid(kernels::blocks_of(a.rows, rows_of(operand)));
  const bool split = operand == Operand::kSplit, wide = allows_pairs(a.dim, a.psi, a.alpha, a.x);
  const std::int64_t tile =
      split ? OperandTile<Operand::kSplit>::bytes(a.dim) : OperandTile<Operand::kSingle>::bytes(a.dim);
  if (split && wide) simt::launch(ForwardSplit{}, grid, kThreads, tile, stream, a);
  if (split && !wide) simt::launch(ForwardSplitAnyWidth{}, grid, kThreads, tile, stream, a);
  if (!split && wide) simt::launch(ForwardSingle{}, grid, kThreads, tile, stream, a);
  if (!split && !wide) simt::launch(ForwardSingleAnyWidth{}, grid, kThreads, tile, stream, a);
}

void launch_backward(const BackwardArguments& a, kernels::Stream stream) {
  // At least as much as the sums of alpha's terms take.
  constexpr std::int64_t kTerms = std::int64_t{4} * kWarps * kMostDim;
  const std::int64_t tile = OperandTile<Operand::kSplit>::bytes(a.dim), shared = tile > kTerms ? tile : kTerms;
  const dim3 grid = simt::grid(backward_blocks(a.rows));
  if (allows_pairs(a.dim, a.psi, a.alpha, a.x, a.grad_x, a.grad_psi, a.z, a.y))
    simt::launch(Backward{}, grid, kThreads, shared, stream, a);
  else
    simt::launch(BackwardAnyWidth{}, grid, kThreads, shared, stream, a);
}

void launch_wide_forward(const WideForwardArguments& a, kernels::Stream stream) {
  simt::launch(WideTurn{}, simt::grid(a.rows), kThreads, 0, stream, a);
}

void launch_wide_backward(const WideBackwardArguments& a, kernels::Stream stream) {
  simt::launch(WideBack{}, simt::grid(backward_blocks(a.rows)), kThreads, wide_shared_bytes(a.dim), stream, a);
}

void launch_parameters(const ParameterArguments& a, kernels::Stream stream) {
  const std::int64_t blocks = kernels::blocks_of(a.edges.dim, kernels::kSumColumns) + edge_blocks(a.edges.edges);
  simt::launch(Parameters{}, simt::grid(blocks), kEdgeThreads, 0, stream, a);
}

}  // namespace twinbench::sem::cayley
