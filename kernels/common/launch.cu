// Launches the kernels that several components share.
//
// version | idea                                                              | state
// 1       | grid-stride copies; sums and LayerNorm rows in one fixed order    | replaced
// 2       | 16-byte accesses, four in flight; several blocks a LayerNorm row; | in use
//         | column sums in 8-column blocks of 128 row lanes                   |
// 3       | four columns' sums scattered over a warp; idle warps do not sum   | in use: column sums
// Version 2: predicted one load in flight -> four of 16 bytes. Machine code: RoundToBf16 four LDG.128 before the first
// store; a LayerNorm row of 5,000 values is written by ten blocks instead of one.
// Version 3: predicted 5 instead of 16 shuffles of a warp for each sum, and none of warps without rows; the same bits.
#include "kernels/common/activation_rows.h"
#include "kernels/common/captured_graph.h"
#include "kernels/common/gather.h"
#include "kernels/common/grid.h"
#include "kernels/common/simt_captured_graph.h"
#include "kernels/common/simt_device.h"

namespace twinbench::kernels {
namespace {

dim3 pieces(std::int64_t rows, std::int64_t width, std::int64_t piece) {
  const simt::Index3 blocks = row_pieces(rows, width, piece);
  return {blocks.x, blocks.y, blocks.z};
}

}  // namespace

void launch_gather(const GatherArguments& a, Stream stream) {
  simt::launch(Gather{}, pieces(a.rows, a.columns, kCopyPiece), kPieceThreads, 0, stream, a);
}

void launch_round_to_bf16(const RoundArguments& a, Stream stream) {
  simt::launch(RoundToBf16{}, simt::grid(copying_blocks(a.count)), kElementThreads, 0, stream, a);
}

void launch_column_sums(const ColumnSumArguments& a, Stream stream) {
  simt::launch(ColumnSums{}, simt::grid(blocks_of(a.columns, kSumColumns)), kSumThreads, 0, stream, a);
}

void launch_activation(const ActivationLayer<float>& a, Stream stream) {
  simt::launch(Activation{}, pieces(a.rows, a.width, kRowPiece), kRowThreads, 0, stream, a);
}

std::function<void(Stream)> captured_graph(const std::string& name, const std::function<void(Stream)>& work) {
  const auto recorded = [&] {
#if defined(TWINBENCH_SIMT)
    return std::make_shared<simt::CapturedGraph>(name, work);
#else
    try {
      return std::make_shared<simt::CapturedGraph>(name, work);
    } catch (const CudaError& refused) {
      throw CaptureRefused(name + ": " + refused.what());
    }
#endif
  };
  const auto graph = recorded();
  return [graph](Stream stream) { graph->launch(stream); };
}

void launch_activation_backward(const ActivationLayer<float>& a, Stream stream) {
  simt::launch(ActivationBackward{}, pieces(a.rows, a.width, kRowPiece), kRowThreads, 0, stream, a);
  simt::launch(ActivationColumns{}, simt::grid(blocks_of(a.width, kSumColumns)), kSumThreads, 0, stream, a);
}

}  // namespace twinbench::kernels
