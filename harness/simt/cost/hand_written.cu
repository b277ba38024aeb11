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

struct TileProductParameters {
  const std::uint32_t* left;
  const std::uint32_t* right;
  float* sums;
  int inner;
};

extern "C" __global__ void __launch_bounds__(32) hand_written_tile_product(TileProductParameters p) {
  const int lane = static_cast<int>(threadIdx.x), group = lane / 4, pair = lane % 4, words = p.inner / 2;
  const std::uint32_t* left = p.left + group * words + pair;
  const std::uint32_t* right = p.right + group * words + pair;
  float c0 = 0.0f, c1 = 0.0f, c2 = 0.0f, c3 = 0.0f;
  for (int k = 0; k < words; k += 8) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
        : "r"(left[k]), "r"(left[8 * words + k]), "r"(left[k + 4]), "r"(left[8 * words + k + 4]), "r"(right[k]),
          "r"(right[k + 4]));
  }
  float* to = p.sums + group * 8 + 2 * pair;
  to[0] = c0;
  to[1] = c1;
  to[64] = c2;
  to[65] = c3;
}

struct MatrixLoadParameters {
  const std::uint32_t* from;
  std::uint32_t* to;
};

extern "C" __global__ void __launch_bounds__(32) hand_written_matrix_load(MatrixLoadParameters p) {
  extern __shared__ __align__(16) std::uint32_t words[];
  const int lane = static_cast<int>(threadIdx.x);
  for (int i = 0; i < 4; ++i) words[32 * i + lane] = p.from[32 * i + lane];
  __syncwarp();
  std::uint32_t a, b, c, d;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
               : "r"(static_cast<unsigned>(__cvta_generic_to_shared(words + 4 * lane))));
  p.to[lane] = a;
  p.to[32 + lane] = b;
  p.to[64 + lane] = c;
  p.to[96 + lane] = d;
}

struct AsyncPassParameters {
  const float* from;
  float* to;
};

namespace {

__device__ __forceinline__ void copy_16(float* to, const float* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(to))),
               "l"(from)
               : "memory");
}

}  // namespace

extern "C" __global__ void __launch_bounds__(64) hand_written_async_pass(AsyncPassParameters p) {
  extern __shared__ __align__(16) float tile[];
  const int thread = static_cast<int>(threadIdx.x);
  const float* from = p.from + 256 * static_cast<std::int64_t>(blockIdx.x);
  float* to = p.to + 256 * static_cast<std::int64_t>(blockIdx.x);
  copy_16(tile + 4 * thread, from + 4 * thread);
  asm volatile("cp.async.commit_group;" ::: "memory");
  asm volatile("cp.async.wait_group 0;" ::: "memory");
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 4; ++i) to[64 * i + thread] = tile[64 * i + thread];
}
