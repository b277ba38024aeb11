// The layer's side of the cost comparison: the example kernels as nvcc sees them through simt_device.h.
#include "harness/simt/example_kernels.h"
#include "harness/simt/example_tensor_kernels.h"
#include "kernels/common/simt_device.h"

namespace twinbench::kernels::simt {

template __global__ void run<examples::BlockSum, examples::BlockSumArguments>(examples::BlockSumArguments);
template __global__ void run<examples::TiledTranspose, examples::TransposeArguments>(examples::TransposeArguments);
template __global__ void run<examples::RowSoftmax, examples::SoftmaxArguments>(examples::SoftmaxArguments);
template __global__ void run<examples::TileProduct, examples::TileProductArguments>(examples::TileProductArguments);
template __global__ void run<examples::MatrixLoad, examples::MatrixLoadArguments>(examples::MatrixLoadArguments);
template __global__ void run<examples::AsyncPass, examples::AsyncPassArguments>(examples::AsyncPassArguments);
template __global__ void run<examples::Histogram, examples::HistogramArguments>(examples::HistogramArguments);

}  // namespace twinbench::kernels::simt
