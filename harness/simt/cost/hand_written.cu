// The other side of the cost comparison: the same kernels in plain CUDA, knowing nothing of the SIMT layer.
#include <cmath>
#include <cstdint>

namespace {

__device__ __forceinline__ float sum_of_block(float value) {
  __shared__ float partial[32];
  const int rank = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const int count = blockDim.x * blockDim.y * blockDim.z;
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) value += __shfl_xor_sync(0xffffffffu, value, lanes);
  if (rank % 32 == 0) partial[rank / 32] = value;
  __syncthreads();
  float total = 0.0f;
  if (rank % 32 < (count + 31) / 32) total = partial[rank % 32];
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) total += __shfl_xor_sync(0xffffffffu, total, lanes);
  __syncthreads();
  return total;
}

}  // namespace

struct SumParameters {
  const float* input;
  float* output;
  std::int64_t count;
};

extern "C" __global__ void __launch_bounds__(256) hand_written_block_sum(SumParameters p) {
  float sum = 0.0f;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < p.count;
       i += static_cast<std::int64_t>(gridDim.x) * blockDim.x) {
    sum += p.input[i];
  }
  sum = sum_of_block(sum);
  if (threadIdx.x == 0) p.output[blockIdx.x] = sum;
}

struct TransposeParameters {
  const float* input;
  float* output;
  int rows, columns;
};

extern "C" __global__ void __launch_bounds__(256) hand_written_transpose(TransposeParameters p) {
  __shared__ float tile[32 * 33];
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  const int column = static_cast<int>(blockIdx.x) * 32, row = static_cast<int>(blockIdx.y) * 32;
  for (int j = y; j < 32; j += static_cast<int>(blockDim.y)) {
    if (row + j < p.rows && column + x < p.columns) {
      tile[j * 33 + x] = p.input[std::int64_t{row + j} * p.columns + column + x];
    }
  }
  __syncthreads();
  for (int j = y; j < 32; j += static_cast<int>(blockDim.y)) {
    if (column + j < p.columns && row + x < p.rows) {
      p.output[std::int64_t{column + j} * p.rows + row + x] = tile[x * 33 + j];
    }
  }
}

struct HistogramParameters {
  const int* input;
  int* counts;
  std::int64_t count;
};

extern "C" __global__ void __launch_bounds__(256) hand_written_histogram(HistogramParameters p) {
  __shared__ int bins[64];
  const int first = threadIdx.x, width = blockDim.x;
  for (int b = first; b < 64; b += width) bins[b] = 0;
  __syncthreads();
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < p.count;
       i += static_cast<std::int64_t>(gridDim.x) * blockDim.x) {
    atomicAdd(bins + p.input[i], 1);
  }
  __syncthreads();
  for (int b = first; b < 64; b += width) {
    const int here = bins[b];
    if (here != 0) atomicAdd(p.counts + b, here);
  }
}
