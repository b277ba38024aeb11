// One planted bug for each tool of compute-sanitizer, each beside a correct twin: a tool that does not report its bug
// on this machine proves nothing by being silent about our kernels.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>

namespace twinbench {
namespace {

constexpr int kThreads = 64;  // two warps: a race needs threads that do not run in step

// memcheck: one thread writes behind the allocation of kThreads integers.
template <bool kPlanted>
__global__ void out_of_bounds(int* out) {
  out[threadIdx.x + (kPlanted && threadIdx.x == kThreads - 1 ? 1 : 0)] = static_cast<int>(threadIdx.x);
}

// racecheck: each thread reads what a thread of the other warp writes, with no barrier between.
template <bool kPlanted>
__global__ void shared_race(int* out) {
  __shared__ int values[kThreads];
  values[threadIdx.x] = static_cast<int>(threadIdx.x);
  if (!kPlanted) __syncthreads();
  out[threadIdx.x] = values[(threadIdx.x + kThreads / 2) % kThreads];
}

// initcheck: reads global memory; the planted run gives it memory that nobody has written.
__global__ void read_all(const int* in, int* out) { out[threadIdx.x] = in[threadIdx.x]; }

// synccheck: a barrier that only every second thread of a warp reaches.
template <bool kPlanted>
__global__ void divergent_barrier(int* out) {
  if (!kPlanted || threadIdx.x % 2 == 0) __syncthreads();
  out[threadIdx.x] = 1;
}

bool run(const char* which, int* in, int* out) {
  const auto is = [which](const char* name) { return std::strcmp(which, name) == 0; };
  if (is("memcheck"))
    out_of_bounds<true><<<1, kThreads>>>(out);
  else if (is("memcheck_correct"))
    out_of_bounds<false><<<1, kThreads>>>(out);
  else if (is("racecheck"))
    shared_race<true><<<1, kThreads>>>(out);
  else if (is("racecheck_correct"))
    shared_race<false><<<1, kThreads>>>(out);
  else if (is("initcheck"))
    read_all<<<1, kThreads>>>(in, out);
  else if (is("initcheck_correct")) {
    cudaMemset(in, 0, kThreads * sizeof(int));
    read_all<<<1, kThreads>>>(in, out);
  } else if (is("synccheck"))
    divergent_barrier<true><<<1, kThreads>>>(out);
  else if (is("synccheck_correct"))
    divergent_barrier<false><<<1, kThreads>>>(out);
  else
    return false;
  return true;
}

}  // namespace
}  // namespace twinbench

int main(int argc, char** argv) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::fprintf(stderr, "sanitizer_probe: missing_device: no CUDA device is visible\n");
    return 2;
  }
  int *in = nullptr, *out = nullptr;
  if (cudaMalloc(&in, twinbench::kThreads * sizeof(int)) != cudaSuccess ||
      cudaMalloc(&out, twinbench::kThreads * sizeof(int)) != cudaSuccess) {
    std::fprintf(stderr, "sanitizer_probe: out_of_memory: %s\n", cudaGetErrorString(cudaGetLastError()));
    return 2;
  }
  if (argc != 2 || !twinbench::run(argv[1], in, out)) {
    std::fprintf(stderr, "usage: sanitizer_probe memcheck|racecheck|initcheck|synccheck[_correct]\n");
    return 2;
  }
  // A planted bug may end the context: that is the tool's to report, not ours.
  std::printf("%s: %s\n", argv[1], cudaGetErrorString(cudaStreamSynchronize(nullptr)));
  cudaFree(in);
  cudaFree(out);
  return 0;
}
