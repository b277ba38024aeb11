// The one header in which the CUDA path differs between a card and the host (TWINBENCH_SIMT): device guard, stream and
// where tensors must lie, what a run takes. Beside it only simt::launch differs (kernels/common/simt_device.h).
#pragma once

#include <c10/core/Device.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "kernels/common/stream.h"

#if !defined(TWINBENCH_SIMT)
#include <ATen/core/Tensor.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#endif

namespace twinbench {

inline constexpr double kNotMeasured = -1;

inline namespace TWINBENCH_FORM {
#if defined(TWINBENCH_SIMT)

struct DeviceGuard {
  explicit DeviceGuard(c10::Device) {}
};
inline kernels::Stream stream() { return kernels::current_host_stream(); }
inline bool lies_there(c10::Device tensors) { return tensors.is_cpu(); }
inline constexpr const char* kWhereInputsGo = "put the inputs on the CPU: simt runs the CUDA path there";
inline std::string current_device() { return "simt"; }
inline double seconds_of(const std::function<void()>&) { return kNotMeasured; }

// Zero at first. The device writes it, the host reads it while the device goes on. No tensor here: all tensors are the
// device's alone, and checked for that.
class IntegerOfBoth {
 public:
  std::int32_t* where() const { return value_.get(); }

 private:
  std::unique_ptr<std::int32_t> value_ = std::make_unique<std::int32_t>(0);
};

// Bytes of the same kind, in a row; at a multiple of 256, as a card's allocator gives them: sectors count alike.
class MemoryOfBoth {
 public:
  explicit MemoryOfBoth(std::int64_t bytes)
      : lines_(std::make_unique<Line[]>((static_cast<std::size_t>(bytes) + sizeof(Line) - 1) / sizeof(Line))) {}
  void* where() const { return lines_.get(); }

 private:
  struct alignas(256) Line {
    std::byte bytes[256];
  };
  std::unique_ptr<Line[]> lines_;
};

#else

using DeviceGuard = c10::cuda::CUDAGuard;
inline kernels::Stream stream() { return c10::cuda::getCurrentCUDAStream().stream(); }
inline bool lies_there(c10::Device tensors) { return tensors.is_cuda(); }
inline constexpr const char* kWhereInputsGo = "put the inputs on a CUDA device";
inline std::string current_device() { return std::to_string(c10::cuda::current_device()); }

// The least of several measurements of a few runs each, after one that loads code and sets up libraries. For set-up:
// the host waits.
inline double seconds_of(const std::function<void()>& run) {
  constexpr int kMeasurements = 5, kRuns = 4;
  at::cuda::CUDAEvent start(cudaEventDefault), stop(cudaEventDefault);
  run();
  double least = 0;
  for (int i = 0; i < kMeasurements; ++i) {
    start.record();
    for (int k = 0; k < kRuns; ++k) run();
    stop.record();
    stop.synchronize();
    const double seconds = static_cast<double>(start.elapsed_time(stop)) * 1e-3 / kRuns;
    if (i == 0 || seconds < least) least = seconds;
  }
  return least;
}

// Zero at first. The device writes it, the host reads it while the device goes on.
class IntegerOfBoth {
 public:
  std::int32_t* where() const { return value_.mutable_data_ptr<std::int32_t>(); }

 private:
  at::Tensor value_ = at::zeros({1}, at::TensorOptions().dtype(at::kInt).pinned_memory(true));
};

// Bytes of the same kind, in a row.
class MemoryOfBoth {
 public:
  explicit MemoryOfBoth(std::int64_t bytes)
      : bytes_(at::zeros({bytes}, at::TensorOptions().dtype(at::kByte).pinned_memory(true))) {}
  void* where() const { return bytes_.mutable_data_ptr(); }

 private:
  at::Tensor bytes_;
};

#endif
}  // namespace TWINBENCH_FORM

}  // namespace twinbench
