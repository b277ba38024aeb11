// Launches the kernels that several components share.
//
// version | idea                                                              | state
// 1       | grid-stride copies; sums and LayerNorm rows in one fixed order    | in use
#include "kernels/common/activation_rows.h"
#include "kernels/common/gather.h"
#include "kernels/common/grid.h"
#include "kernels/common/simt_device.h"

namespace twinbench::kernels {
namespace {

constexpr std::int64_t kMostRoundBlocks = 2048;

}  // namespace

void launch_gather(const GatherArguments& a, Stream stream) {
  simt::launch(Gather{}, simt::grid(striding_blocks(a.rows * a.columns, kElementThreads)), kElementThreads, 0, stream,
               a);
}

void launch_round_to_bf16(const RoundArguments& a, Stream stream) {
  simt::launch(RoundToBf16{}, simt::grid(striding_blocks(a.count, kElementThreads, kMostRoundBlocks)), kElementThreads,
               0, stream, a);
}

void launch_column_sums(const ColumnSumArguments& a, Stream stream) {
  simt::launch(ColumnSums{}, simt::grid(blocks_of(a.columns, ColumnSums::kColumns)),
               dim3(ColumnSums::kColumns, ColumnSums::kRowLanes), 0, stream, a);
}

void launch_ordered_column_sums(const ColumnSumArguments& a, Stream stream) {
  simt::launch(OrderedColumnSums{}, simt::grid(blocks_of(a.columns, kSumThreads)), kSumThreads, 0, stream, a);
}

void launch_activation(const ActivationLayer<float>& a, Stream stream) {
  simt::launch(Activation{}, simt::grid(a.rows), kRowThreads, 0, stream, a);
}

void launch_activation_backward(const ActivationLayer<float>& a, Stream stream) {
  simt::launch(ActivationBackward{}, simt::grid(a.rows), kRowThreads, 0, stream, a);
  simt::launch(ActivationColumns{}, simt::grid(blocks_of(a.width, kSumThreads)), kSumThreads, 0, stream, a);
}

}  // namespace twinbench::kernels
