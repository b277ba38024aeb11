// Marks, holds and flushes through the CUDA runtime. Every call is checked: without a device all of them fail, quietly.
#include "harness/device/cuda/cuda_timer.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "harness/device/cuda/timing_kernels.h"
#include "kernels/common/cuda_check.h"
#include "src/common/error.h"

namespace twinbench::cuda {
namespace {

// The device's nanosecond counter may advance by a microsecond at a time: below this a clock rate is noise.
constexpr std::uint64_t kShortestClockWindowNs = 20'000;

int attribute(cudaDeviceAttr which) {
  int device = 0, value = 0;
  TWINBENCH_CUDA_CHECK(cudaGetDevice(&device));
  TWINBENCH_CUDA_CHECK(cudaDeviceGetAttribute(&value, which, device));
  return value;
}

struct DeviceFree {
  void operator()(void* memory) const { cudaFree(memory); }
};
struct HostFree {
  void operator()(void* memory) const { cudaFreeHost(memory); }
};
template <class T>
using DeviceMemory = std::unique_ptr<T, DeviceFree>;

template <class T>
DeviceMemory<T> device_memory(std::size_t count) {
  void* memory = nullptr;
  TWINBENCH_CUDA_CHECK(cudaMalloc(&memory, count * sizeof(T)));
  return DeviceMemory<T>(static_cast<T*>(memory));
}

class Event {
 public:
  Event() { TWINBENCH_CUDA_CHECK(cudaEventCreate(&event_)); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

// No line may persist in L2 over a flush: the limit is nothing while this lives. Devices without that limit have no
// such lines either.
class NoPersistingLines {
 public:
  NoPersistingLines() {
    known_ = cudaDeviceGetLimit(&before_, cudaLimitPersistingL2CacheSize) == cudaSuccess &&
             cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 0) == cudaSuccess;
    if (!known_) cudaGetLastError();
  }
  ~NoPersistingLines() {
    if (known_) cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, before_);
  }
  NoPersistingLines(const NoPersistingLines&) = delete;
  NoPersistingLines& operator=(const NoPersistingLines&) = delete;
  void reset() const {
    if (known_) TWINBENCH_CUDA_CHECK(cudaCtxResetPersistingL2Cache());
  }

 private:
  std::size_t before_ = 0;
  bool known_ = false;
};

// A display's watchdog ends kernels that run for seconds, and the process with them: a hold stays far below.
constexpr double kHoldBesideWatchdogS = 0.5;

double hold_limit_s(const CudaTimerOptions& options) {
  const char* const blocking = std::getenv("CUDA_LAUNCH_BLOCKING");
  if (blocking && *blocking && std::string(blocking) != "0")
    throw Error(ErrorKind::kBadArgument, "CUDA_LAUNCH_BLOCKING", blocking,
                "unset it: each launch would wait for the hold before it, until that gives up");
  return attribute(cudaDevAttrKernelExecTimeout) != 0 ? std::min(options.hold_limit_s, kHoldBesideWatchdogS)
                                                      : options.hold_limit_s;
}

// A ring through all lines in an order that no prefetcher follows: steps of 97 lines, prime to their number.
std::vector<std::uint32_t> shuffled_ring() {
  constexpr std::uint32_t kStep = 97;
  std::vector<std::uint32_t> chain(static_cast<std::size_t>(kChainLines) * kChainStride, 0);
  for (std::uint32_t line = 0; line < kChainLines; ++line)
    chain[line * kChainStride] = (line + kStep) % kChainLines * kChainStride;
  return chain;
}

class CudaTimer final : public DeviceTimer {
 public:
  CudaTimer(Stream stream, const CudaTimerOptions& options)
      : stream_(stream),
        hold_limit_ns_(static_cast<std::uint64_t>(hold_limit_s(options) * 1e9)),
        cache_bytes_(static_cast<std::size_t>(attribute(cudaDevAttrL2CacheSize))),
        multiprocessors_(attribute(cudaDevAttrMultiProcessorCount)),
        flushed_(device_memory<char>(2 * cache_bytes_)),
        clean_(device_memory<char>(2 * cache_bytes_)),
        chain_(device_memory<std::uint32_t>(static_cast<std::size_t>(kChainLines) * kChainStride)),
        chain_end_(device_memory<std::uint32_t>(1)),
        stamps_(device_memory<ClockStamp>(2)) {
    void* flags = nullptr;
    TWINBENCH_CUDA_CHECK(cudaHostAlloc(&flags, sizeof(HoldFlags), cudaHostAllocMapped));
    flags_.reset(new (flags) HoldFlags);
    void* device_flags = nullptr;
    TWINBENCH_CUDA_CHECK(cudaHostGetDevicePointer(&device_flags, flags, 0));
    device_flags_ = static_cast<HoldFlags*>(device_flags);
    const auto ring = shuffled_ring();
    // On our stream and waited for: a pageable copy on the default stream may return before it has arrived, and a
    // stream that does not wait for that one would walk garbage.
    TWINBENCH_CUDA_CHECK(
        cudaMemcpyAsync(chain_.get(), ring.data(), ring.size() * sizeof ring[0], cudaMemcpyHostToDevice, stream_));
    TWINBENCH_CUDA_CHECK(cudaMemsetAsync(clean_.get(), 0, 2 * cache_bytes_, stream_));
    TWINBENCH_CUDA_CHECK(cudaStreamSynchronize(stream_));
    load_kernels();
  }
  ~CudaTimer() override {
    release();
    cudaDeviceSynchronize();
  }

  void synchronize() override { TWINBENCH_CUDA_CHECK(cudaDeviceSynchronize()); }

  void flush_cache() override {
    persisting_.reset();
    TWINBENCH_CUDA_CHECK(cudaMemsetAsync(flushed_.get(), ++flushes_ & 0xff, 2 * cache_bytes_, stream_));
    // The writes leave dirty lines, whose way back to memory would fall into the timed window: reads push them out now.
    launch_read(clean_.get(), 2 * cache_bytes_, multiprocessors_, chain_end_.get(), stream_);
  }

  void read_resident() override { launch_chain_walk(chain_.get(), kChainLines, chain_end_.get(), stream_); }

  void hold() override {
    launch_hold(device_flags_, ++ticket_, hold_limit_ns_, stream_);
    held_ = true;
  }

  void release() noexcept override {
    std::atomic_ref<std::uint32_t>(flags_->released).store(ticket_, std::memory_order_release);
  }

  void mark_start() override {
    TWINBENCH_CUDA_CHECK(cudaMemsetAsync(stamps_.get(), 0, 2 * sizeof(ClockStamp), stream_));
    launch_clock_stamp(stamps_.get(), multiprocessors_, stream_);
    TWINBENCH_CUDA_CHECK(cudaEventRecord(start_.get(), stream_));
  }

  void mark_stop() override {
    TWINBENCH_CUDA_CHECK(cudaEventRecord(stop_.get(), stream_));
    launch_clock_stamp(stamps_.get() + 1, multiprocessors_, stream_);
  }

  DeviceReading read() override {
    DeviceReading reading;
    float milliseconds = 0;
    TWINBENCH_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, start_.get(), stop_.get()));
    reading.span_s = static_cast<double>(milliseconds) * 1e-3;
    ClockStamp stamps[2];
    TWINBENCH_CUDA_CHECK(cudaMemcpy(stamps, stamps_.get(), sizeof stamps, cudaMemcpyDeviceToHost));
    const std::uint64_t elapsed_ns = stamps[1].nanoseconds - stamps[0].nanoseconds;
    if (stamps[0].taken && stamps[1].taken && stamps[1].nanoseconds > stamps[0].nanoseconds &&
        elapsed_ns >= kShortestClockWindowNs)
      reading.clock_hz =
          static_cast<double>(stamps[1].cycles - stamps[0].cycles) / (static_cast<double>(elapsed_ns) * 1e-9);
    if (held_)
      reading.hold_expired = std::atomic_ref<std::uint32_t>(flags_->expired).load(std::memory_order_acquire) == ticket_;
    held_ = false;
    return reading;
  }

  void rest(double seconds) override { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }
  double cache_bytes() const override { return static_cast<double>(cache_bytes_); }

 private:
  // Modules load when a kernel first runs, and loading may wait for the device: never for the first time under a hold.
  void load_kernels() {
    mark_start();
    read_resident();
    flush_cache();
    mark_stop();
    hold();
    release();
    synchronize();
    read();
  }

  Stream stream_;
  std::uint64_t hold_limit_ns_;
  std::size_t cache_bytes_;
  int multiprocessors_;
  DeviceMemory<char> flushed_, clean_;
  DeviceMemory<std::uint32_t> chain_, chain_end_;
  DeviceMemory<ClockStamp> stamps_;
  std::unique_ptr<HoldFlags, HostFree> flags_;
  HoldFlags* device_flags_ = nullptr;
  NoPersistingLines persisting_;
  Event start_, stop_;
  std::uint32_t ticket_ = 0;
  int flushes_ = 0;
  bool held_ = false;
};

}  // namespace

std::unique_ptr<DeviceTimer> open_cuda_timer(kernels::Stream stream, const CudaTimerOptions& options) {
  return std::make_unique<CudaTimer>(stream, options);
}

}  // namespace twinbench::cuda
