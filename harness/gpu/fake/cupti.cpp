// A CUPTI without a card: it records what fake_kernel, fake_copy and fake_synchronise are told to have happened.
// Answers: FAKE_CUPTI_VERSION, _SUBSCRIBE, _ENABLE, _FLUSH (result codes), _DROPPED (records). For programs that know
// nothing of the fake: FAKE_CUPTI_KERNELS (launched at the start of every trace).
#include <cupti.h>

#include <cstdint>
#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include "harness/gpu/fake/environment.h"

namespace {

std::set<int> enabled;
std::vector<std::vector<std::uint8_t>> pending;  // records not delivered yet
CUpti_BuffersCallbackRequestFunc request = nullptr;
CUpti_BuffersCallbackCompleteFunc complete = nullptr;
std::uint64_t now_ns = 1000;
std::uint32_t correlation = 1;
bool opening = false;  // a trace was enabled and its window is not open yet

template <typename Record>
void remember(const Record& record) {
  if (!enabled.count(record.kind)) return;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&record);
  pending.emplace_back(bytes, bytes + sizeof record);
}

void remember_call(CUpti_ActivityKind kind, std::uint32_t id) {
  CUpti_ActivityAPI call{};
  call.kind = kind;
  call.cbid = id;
  call.start = now_ns += 10;
  call.end = now_ns += 10;
  call.correlationId = correlation;
  remember(call);
}

std::size_t size_of(const CUpti_Activity& record) {
  switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: return sizeof(CUpti_ActivityKernel10);
    case CUPTI_ACTIVITY_KIND_MEMCPY: return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: return sizeof(CUpti_ActivitySynchronization2);
    default: return sizeof(CUpti_ActivityAPI);
  }
}

CUptiResult answer(const char* variable) { return static_cast<CUptiResult>(fake::number(variable, CUPTI_SUCCESS)); }

}  // namespace

extern "C" {

// What "the application" does. A runtime call and the driver call inside it share a correlation id.
void fake_kernel(const char* name, std::uint64_t gap_ns, std::uint64_t length_ns) {
  ++correlation;
  remember_call(CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000);
  remember_call(CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
  CUpti_ActivityKernel10 kernel{};
  kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  kernel.name = name;
  kernel.registersPerThread = 40;
  kernel.correlationId = correlation;
  kernel.start = now_ns += gap_ns;
  kernel.end = now_ns += length_ns;
  remember(kernel);
}
void fake_copy(std::uint8_t from, std::uint8_t to, std::uint64_t bytes, std::uint64_t length_ns) {
  ++correlation;
  CUpti_ActivityMemcpy6 copy{};
  copy.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  copy.srcKind = from;
  copy.dstKind = to;
  copy.bytes = bytes;
  copy.correlationId = correlation;
  copy.start = now_ns += 5;
  copy.end = now_ns += length_ns;
  remember(copy);
}
void fake_synchronise() {
  ++correlation;
  CUpti_ActivitySynchronization2 wait{};
  wait.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
  wait.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE;
  wait.correlationId = correlation;
  wait.start = now_ns += 10;
  remember(wait);
}

CUptiResult cuptiGetVersion(std::uint32_t* version) {
  FAKE_ANSWER(CUptiResult);
  *version = static_cast<std::uint32_t>(fake::number("FAKE_CUPTI_VERSION", CUPTI_API_VERSION));
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetResultString(CUptiResult result, const char** text) {
  FAKE_ANSWER(CUptiResult);
  *text = result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
                                                                   : "CUPTI_ERROR";
  return CUPTI_SUCCESS;
}
CUptiResult cuptiSubscribe(CUpti_SubscriberHandle*, CUpti_CallbackFunc, void*) {
  FAKE_ANSWER(CUptiResult);
  return answer("FAKE_CUPTI_SUBSCRIBE");
}
CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle) {
  FAKE_ANSWER(CUptiResult);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc on_request,
                                           CUpti_BuffersCallbackCompleteFunc on_complete) {
  FAKE_ANSWER(CUptiResult);
  request = on_request;
  complete = on_complete;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  FAKE_ANSWER(CUptiResult);
  enabled.insert(kind);
  opening = true;
  return answer("FAKE_CUPTI_ENABLE");
}
CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  FAKE_ANSWER(CUptiResult);
  enabled.erase(kind);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnableAllSyncRecords(std::uint8_t) {
  FAKE_ANSWER(CUptiResult);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityFlushAll(std::uint32_t) {
  FAKE_ANSWER(CUptiResult);
  std::uint8_t* buffer = nullptr;
  std::size_t size = 0, limit = 0, used = 0;
  request(&buffer, &size, &limit);
  for (const auto& record : pending) {
    std::memcpy(buffer + used, record.data(), record.size());
    used += record.size();
  }
  pending.clear();
  complete(nullptr, 0, buffer, size, used);
  return answer("FAKE_CUPTI_FLUSH");
}
CUptiResult cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid_bytes, CUpti_Activity** record) {
  FAKE_ANSWER(CUptiResult);
  std::uint8_t* next = *record ? reinterpret_cast<std::uint8_t*>(*record) + size_of(**record) : buffer;
  if (next >= buffer + valid_bytes) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, std::uint32_t, std::size_t* dropped) {
  FAKE_ANSWER(CUptiResult);
  *dropped = static_cast<std::size_t>(fake::number("FAKE_CUPTI_DROPPED", 0));
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetTimestamp(std::uint64_t* timestamp) {
  FAKE_ANSWER(CUptiResult);
  *timestamp = now_ns += 1;
  if (std::exchange(opening, false))
    for (long kernel = fake::number("FAKE_CUPTI_KERNELS", 0); kernel > 0; --kernel) fake_kernel("_Z4fakev", 30, 70);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, std::uint32_t id, const char** name) {
  FAKE_ANSWER(CUptiResult);
  if (domain == CUPTI_CB_DOMAIN_RUNTIME_API && id == CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000)
    *name = "cudaLaunchKernel_v7000";
  else if (domain == CUPTI_CB_DOMAIN_DRIVER_API && id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel)
    *name = "cuLaunchKernel";
  else
    return CUPTI_ERROR_INVALID_PARAMETER;
  return CUPTI_SUCCESS;
}

}  // extern "C"
