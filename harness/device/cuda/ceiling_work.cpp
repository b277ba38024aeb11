// Sizes large enough that launch costs vanish: a copy far beyond L2, products of thousands, long special-function
// loops.
#include "harness/device/cuda/ceiling_work.h"

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAGraph.h>

#include <cstdint>
#include <memory>

#include "harness/device/cuda/timing_kernels.h"
#include "kernels/common/cuda_check.h"

namespace twinbench::cuda {
namespace {

constexpr int kLaunches = 256;  // fewer than a launch queue holds: the host never waits for room

at::TensorOptions on_device(c10::ScalarType dtype) { return at::TensorOptions().device(at::kCUDA).dtype(dtype); }

CeilingWork copy_work(std::int64_t bytes) {
  CeilingWork work{"copy",
                   CeilingMeasure::kRate,
                   "B/s",
                   2.0 * static_cast<double>(bytes),
                   "at::copy_, " + std::to_string(bytes >> 20) + " MiB a side, read + written",
                   {}};
  work.set_up = [bytes] {
    const auto source = at::randint(0, 255, {bytes}, on_device(at::kByte));
    auto target = at::empty_like(source);
    return [source, target]() mutable { target.copy_(source); };
  };
  return work;
}

// TF32 is a property of the process, so it is set for each product and put back.
class Tf32 {
 public:
  explicit Tf32(bool allowed) : before_(at::globalContext().allowTF32CuBLAS()) {
    at::globalContext().setAllowTF32CuBLAS(allowed);
  }
  ~Tf32() { at::globalContext().setAllowTF32CuBLAS(before_); }
  Tf32(const Tf32&) = delete;
  Tf32& operator=(const Tf32&) = delete;

 private:
  bool before_;
};

CeilingWork product_work(const std::string& name, c10::ScalarType dtype, bool tf32, std::int64_t n) {
  const double side = static_cast<double>(n);
  CeilingWork work{name,
                   CeilingMeasure::kRate,
                   "FLOP/s",
                   2 * side * side * side,
                   "at::mm_out, n = " + std::to_string(n) + ", normal data",
                   {}};
  work.set_up = [=] {
    const auto left = at::randn({n, n}, on_device(at::kFloat)).to(dtype),
               right = at::randn({n, n}, on_device(at::kFloat)).to(dtype);
    auto out = at::empty({n, n}, on_device(dtype));
    return [left, right, out, tf32]() mutable {
      const Tf32 mode(tf32);
      at::mm_out(out, left, right);
    };
  };
  return work;
}

CeilingWork special_work(Stream stream, int rounds) {
  const int blocks = at::cuda::getCurrentDeviceProperties()->multiProcessorCount * 8;
  CeilingWork work{"special_functions",
                   CeilingMeasure::kRate,
                   "op/s",
                   special_functions(blocks, rounds),
                   "ex2.approx, eight independent chains a thread",
                   {}};
  work.set_up = [=] {
    const auto out = at::zeros({1}, on_device(at::kFloat));
    return [=] { launch_special_functions(out.mutable_data_ptr<float>(), blocks, rounds, stream); };
  };
  return work;
}

CeilingWork launch_work(Stream stream) {
  CeilingWork work{"launch",
                   CeilingMeasure::kHostCost,
                   "s",
                   kLaunches,
                   "host time of one of " + std::to_string(kLaunches) + " launches of an empty kernel",
                   {}};
  work.set_up = [=] {
    return [=] {
      for (int i = 0; i < kLaunches; ++i) launch_empty(stream);
    };
  };
  return work;
}

CeilingWork graph_node_work(Stream stream) {
  CeilingWork work{"graph_node",
                   CeilingMeasure::kDeviceCost,
                   "s",
                   kLaunches,
                   "device span of a graph of " + std::to_string(kLaunches) + " empty kernels in a row, a node",
                   {}};
  work.set_up = [=] {
    auto graph = std::make_shared<at::cuda::CUDAGraph>();
    graph->capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
    for (int i = 0; i < kLaunches; ++i) launch_empty(stream);
    graph->capture_end();
    return [=] { TWINBENCH_CUDA_CHECK(cudaGraphLaunch(graph->raw_cuda_graph_exec(), stream)); };
  };
  return work;
}

}  // namespace

std::vector<CeilingWork> ceiling_work(Stream stream, bool quick) {
  const std::int64_t copied = std::int64_t{quick ? 256 : 1024} << 20, wide = quick ? 4096 : 8192,
                     narrow = quick ? 2048 : 4096;
  return {copy_work(copied),
          product_work("gemm_bf16", at::kBFloat16, false, wide),
          product_work("gemm_tf32", at::kFloat, true, wide),
          product_work("gemm_fp32", at::kFloat, false, narrow),
          special_work(stream, quick ? 1 << 12 : 1 << 15),
          launch_work(stream),
          graph_node_work(stream)};
}

}  // namespace twinbench::cuda
