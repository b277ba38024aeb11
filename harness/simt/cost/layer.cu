// The layer's side of the cost comparison: the example kernels as nvcc sees them through simt_device.h.
#include "harness/simt/example_kernels.h"
#include "harness/simt/example_team_kernels.h"
#include "harness/simt/example_tensor_kernels.h"
#include "kernels/common/simt_device.h"
#include "kernels/common/simt_loop_graph.h"
#include "kernels/common/simt_team_launch.h"

namespace twinbench::kernels::simt {

template __global__ void run<examples::BlockSum, examples::BlockSumArguments>(examples::BlockSumArguments);
template __global__ void run<examples::TiledTranspose, examples::TransposeArguments>(examples::TransposeArguments);
template __global__ void run<examples::RowSoftmax, examples::SoftmaxArguments>(examples::SoftmaxArguments);
template __global__ void run<examples::TileProduct, examples::TileProductArguments>(examples::TileProductArguments);
template __global__ void run<examples::MatrixLoad, examples::MatrixLoadArguments>(examples::MatrixLoadArguments);
template __global__ void run<examples::AsyncPass, examples::AsyncPassArguments>(examples::AsyncPassArguments);
template __global__ void run<examples::Histogram, examples::HistogramArguments>(examples::HistogramArguments);

// Launches of blocks that run at once and of a loop that the device ends: that they compile for both architectures.
void launch_team_examples(const examples::TeamArguments& a, const examples::ByteArguments& bytes, Stream stream) {
  launch_clusters(examples::ClusterSum<>{}, 8, 64, 4, 0, stream, a);
  launch_cooperative(examples::GridSum<>{}, 8, 64, 0, stream, a);
  launch(examples::LastBlockSum<>{}, 8, 64, 0, stream, a);
  launch(examples::ReverseBytes{}, 1, 64, 64, stream, bytes);
  const LoopGraph loop(stream, [&](LoopCondition more, Stream on) {
    launch(examples::Halve{}, 1, 32, 0, on, examples::HalveArguments{.value = a.output, .more = more});
  });
  loop.launch(stream);
}

}  // namespace twinbench::kernels::simt
