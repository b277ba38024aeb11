// The runtime's functions that the timer, the graph capture and the launch checks call, and the timer's kernels.
#include "harness/device/cuda/fake_runtime.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "harness/device/cuda/timing_kernels.h"

namespace twinbench {
namespace fake {
namespace {

using Work = std::function<void()>;

struct Device {
  CudaRuntime runtime;
  std::map<cudaStream_t, std::vector<Work>> queues;  // the default stream is null
  std::size_t dirty = 0;
  const std::uint32_t* chain = nullptr;
};

Device& device() {
  static Device one;
  return one;
}

void drain(cudaStream_t stream) {
  auto queued = std::move(device().queues[stream]);
  device().queues[stream].clear();
  for (const Work& work : queued) work();
}

cudaError_t called(const char* name) {
  ++device().runtime.calls[name];
  return device().runtime.refuse == name ? cudaErrorUnknown : cudaSuccess;
}

cudaError_t allocated(const char* name, void** memory, std::size_t bytes) {
  const cudaError_t code = called(name);
  if (code != cudaSuccess) return code;
  *memory = std::malloc(bytes);
  std::memset(*memory, 0xff, bytes);
  ++device().runtime.blocks;
  return code;
}

// A card that refuses to free has lost the memory: here it is freed all the same.
cudaError_t freed(const char* name, void* memory) {
  std::free(memory);
  --device().runtime.blocks;
  return called(name);
}

cudaError_t queued(const char* name, cudaStream_t stream, Work work) {
  const cudaError_t code = called(name);
  if (code == cudaSuccess) device().queues[stream].push_back(std::move(work));
  return code;
}

}  // namespace

CudaRuntime& cuda_runtime() { return device().runtime; }
void reset_cuda_runtime() { device() = Device(); }
void queue_kernel(void* stream) {
  queued("kernel", static_cast<cudaStream_t>(stream), [] {});
}

}  // namespace fake

namespace cuda {

using fake::device;
using fake::queued;

void launch_hold(HoldFlags*, std::uint32_t, std::uint64_t limit_ns, Stream stream) {
  device().runtime.hold_limits_ns.push_back(limit_ns);
  queued("hold", stream, [] {});
}

void launch_clock_stamp(ClockStamp*, int, Stream stream) {
  queued("stamp", stream, [] {});
}

void launch_chain_walk(const std::uint32_t* chain, int lines, std::uint32_t* end, Stream stream) {
  queued("walk", stream, [=] {
    std::uint32_t at = 0;
    for (int line = 0; line < lines; ++line) {
      if (at >= static_cast<std::uint32_t>(kChainLines * kChainStride)) {
        device().runtime.illegal_address = true;
        return;
      }
      at = chain[at];
    }
    *end = at;
  });
}

void launch_read(const void*, std::size_t bytes, int, std::uint32_t*, Stream stream) {
  queued("read", stream, [bytes] { device().dirty -= std::min(device().dirty, bytes); });
}

}  // namespace cuda
}  // namespace twinbench

using twinbench::fake::allocated;
using twinbench::fake::called;
using twinbench::fake::device;
using twinbench::fake::drain;
using twinbench::fake::freed;
using twinbench::fake::queued;

extern "C" {

cudaError_t cudaGetDevice(int* number) {
  *number = 0;
  return called("cudaGetDevice");
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  *value = attribute == cudaDevAttrL2CacheSize         ? static_cast<int>(device().runtime.cache_bytes)
           : attribute == cudaDevAttrKernelExecTimeout ? device().runtime.kills_long_kernels
                                                       : 4;
  return called("cudaDeviceGetAttribute");
}
cudaError_t cudaMalloc(void** memory, std::size_t bytes) { return allocated("cudaMalloc", memory, bytes); }
cudaError_t cudaFree(void* memory) { return freed("cudaFree", memory); }
cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) {
  return allocated("cudaHostAlloc", memory, bytes);
}
cudaError_t cudaFreeHost(void* memory) { return freed("cudaFreeHost", memory); }
cudaError_t cudaHostGetDevicePointer(void** mapped, void* memory, unsigned) {
  *mapped = memory;
  return called("cudaHostGetDevicePointer");
}

// From pageable memory: staged at once, arrives when the stream gets there.
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  std::vector<char> staged(static_cast<const char*>(from), static_cast<const char*>(from) + bytes);
  return queued("cudaMemcpyAsync", stream, [to, staged] { std::memcpy(to, staged.data(), staged.size()); });
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  if (kind == cudaMemcpyHostToDevice) return cudaMemcpyAsync(to, from, bytes, kind, nullptr);
  drain(nullptr);
  std::memcpy(to, from, bytes);
  return called("cudaMemcpy");
}
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  return queued("cudaMemsetAsync", stream, [=] {
    std::memset(memory, value, bytes);
    device().dirty = std::min(device().dirty + bytes, device().runtime.cache_bytes);
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (device().runtime.capturing) return cudaErrorStreamCaptureUnsupported;
  drain(stream);
  return called("cudaStreamSynchronize");
}
cudaError_t cudaDeviceSynchronize() {
  if (device().runtime.capturing) return cudaErrorStreamCaptureUnsupported;
  std::vector<cudaStream_t> streams;
  for (const auto& [stream, queue] : device().queues)
    if (stream != nullptr) streams.push_back(stream);
  streams.push_back(nullptr);  // the default stream last: the others do not wait for it
  for (const cudaStream_t stream : streams) drain(stream);
  return called("cudaDeviceSynchronize");
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = nullptr;
  const cudaError_t code = called("cudaEventCreate");
  device().runtime.events += code == cudaSuccess;
  return code;
}
cudaError_t cudaEventDestroy(cudaEvent_t) {
  --device().runtime.events;
  return called("cudaEventDestroy");
}
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t stream) {
  return queued("cudaEventRecord", stream, [] { device().runtime.dirty_at_start.push_back(device().dirty); });
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) {
  *milliseconds = 1;
  return called("cudaEventElapsedTime");
}

cudaError_t cudaDeviceGetLimit(std::size_t* value, cudaLimit) {
  *value = 0;
  return called("cudaDeviceGetLimit");
}
cudaError_t cudaDeviceSetLimit(cudaLimit, std::size_t) { return called("cudaDeviceSetLimit"); }
cudaError_t cudaCtxResetPersistingL2Cache() { return called("cudaCtxResetPersistingL2Cache"); }

cudaError_t cudaGetLastError() {
  const int code = device().runtime.pending_error;
  device().runtime.pending_error = 0;
  return static_cast<cudaError_t>(code);
}
const char* cudaGetErrorName(cudaError_t code) {
  return code == cudaErrorIllegalAddress ? "cudaErrorIllegalAddress" : "cudaErrorOther";
}
const char* cudaGetErrorString(cudaError_t) { return "fake"; }

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  attributes->sharedSizeBytes = 1024;
  return called("cudaFuncGetAttributes");
}
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int value) {
  device().runtime.calls["dynamic shared bytes"] = value;
  return called("cudaFuncSetAttribute");
}

cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
  const cudaError_t code = called("cudaStreamBeginCapture");
  device().runtime.capturing = code == cudaSuccess;
  return code;
}
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph) {
  device().runtime.capturing = false;
  const cudaError_t code = called("cudaStreamEndCapture");
  if (code != cudaSuccess) return code;
  ++device().runtime.graphs;
  *graph = reinterpret_cast<cudaGraph_t>(&device());
  return code;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t, unsigned long long) {
  const cudaError_t code = called("cudaGraphInstantiate");
  if (code != cudaSuccess) return code;
  ++device().runtime.executables;
  *executable = reinterpret_cast<cudaGraphExec_t>(&device());
  return code;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t, cudaStream_t) { return called("cudaGraphLaunch"); }
cudaError_t cudaGraphDestroy(cudaGraph_t) {
  --device().runtime.graphs;
  return called("cudaGraphDestroy");
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t) {
  --device().runtime.executables;
  return called("cudaGraphExecDestroy");
}

}  // extern "C"
