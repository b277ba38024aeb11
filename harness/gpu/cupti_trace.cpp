// Buffers of 8 MiB go to CUPTI and come back filled on whatever thread it likes.
#include "harness/gpu/cupti_trace.h"

#include <array>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "harness/gpu/activity_records.h"
#include "harness/gpu/cupti_library.h"

namespace twinbench {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{8} << 20, kBufferAlignment = 8;
// CUDA 13.0: the records have the layout of the headers used here. A newer library may emit newer record versions.
constexpr std::uint32_t kOldestVersion = 130000, kNewestVersion = 130099;
static_assert(CUPTI_API_VERSION >= kOldestVersion && CUPTI_API_VERSION <= kNewestVersion);

GpuStatus status_of_cupti(CUptiResult result) {
  switch (result) {
    case CUPTI_SUCCESS: return GpuStatus::kReady;
    case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
    case CUPTI_ERROR_HARDWARE_BUSY: return GpuStatus::kCuptiBusy;
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES: return GpuStatus::kCuptiPermission;
    case CUPTI_ERROR_OUT_OF_MEMORY: return GpuStatus::kOutOfMemory;
    default: return GpuStatus::kCuptiFailed;
  }
}

void CUPTIAPI no_callback(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}

}  // namespace

struct CuptiTrace::Session {
  CuptiLibrary cupti;
  CUpti_SubscriberHandle subscriber = nullptr;
  std::vector<CUpti_ActivityKind> enabled;
  std::mutex guard;
  ActivityRecords records;
  std::optional<GpuFinding> broken;  // a call that was refused when the trace ran: records may be missing
  std::uint64_t first = 0, last = 0;

  // CUPTI's buffer callbacks carry no user data, so the running session must be found from nowhere.
  static std::mutex running_guard;
  static Session* running;

  void need(CUptiResult result, const char* call) {
    if (result != CUPTI_SUCCESS && !broken) broken = finding(result, call);
  }

  GpuFinding finding(CUptiResult result, const char* call) const {
    const char* text = nullptr;
    cupti.result_string(result, &text);
    return {status_of_cupti(result), std::string(call) + ": " + (text ? text : std::to_string(result))};
  }

  static void CUPTIAPI request_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* record_limit) {
    *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(kBufferAlignment, kBufferBytes));
    *size = *buffer ? kBufferBytes : 0;  // without one CUPTI drops records and says how many
    *record_limit = 0;
  }

  static void CUPTIAPI take_buffer(CUcontext context, std::uint32_t stream, std::uint8_t* buffer, std::size_t,
                                   std::size_t valid_bytes) {
    {
      const std::lock_guard lock(running_guard);
      if (running) running->read(context, stream, buffer, valid_bytes);
    }
    std::free(buffer);
  }

  void read(CUcontext context, std::uint32_t stream, std::uint8_t* buffer, std::size_t valid_bytes) {
    const std::lock_guard lock(guard);
    CUpti_Activity* record = nullptr;
    CUptiResult result = valid_bytes > 0 ? CUPTI_SUCCESS : CUPTI_ERROR_MAX_LIMIT_REACHED;
    while (result == CUPTI_SUCCESS)
      if (result = cupti.next_record(buffer, valid_bytes, &record); result == CUPTI_SUCCESS) records.add(*record);
    if (result != CUPTI_ERROR_MAX_LIMIT_REACHED) need(result, "cuptiActivityGetNextRecord");
    std::size_t dropped = 0;
    result = cupti.dropped_records(context, stream, &dropped);
    need(result, "cuptiActivityGetNumDroppedRecords");
    if (result == CUPTI_SUCCESS) records.add_dropped(dropped);
  }

  std::optional<GpuFinding> begin(const TraceOptions& options) {
    if (!cupti.library.loaded()) return GpuFinding{GpuStatus::kCuptiAbsent, cupti.library.failure()};
    if (!cupti.complete()) return GpuFinding{GpuStatus::kCuptiTooOld, "it lacks functions"};
    std::uint32_t version = 0;
    if (cupti.version(&version) != CUPTI_SUCCESS || version < kOldestVersion)
      return GpuFinding{GpuStatus::kCuptiTooOld,
                        "version " + std::to_string(version) + ", " + std::to_string(kOldestVersion) + " is needed"};
    if (version > kNewestVersion)
      return GpuFinding{GpuStatus::kCuptiTooNew, "version " + std::to_string(version) + ", at most " +
                                                     std::to_string(kNewestVersion) + " is understood"};
    {
      const std::lock_guard lock(running_guard);
      if (running) return GpuFinding{GpuStatus::kCuptiBusy, "a trace of our own runs"};
      running = this;
    }
    // The activity interface works without a subscription; taking it is how another tool is noticed before it is
    // disturbed.
    CUptiResult result = cupti.subscribe(&subscriber, &no_callback, nullptr);
    if (result != CUPTI_SUCCESS) {
      subscriber = nullptr;
      return finding(result, "cuptiSubscribe");
    }
    result = cupti.register_callbacks(&request_buffer, &take_buffer);
    if (result != CUPTI_SUCCESS) return finding(result, "cuptiActivityRegisterCallbacks");
    // The driver's calls as well as the runtime's: libraries launch through the driver and would vanish.
    std::vector<CUpti_ActivityKind> kinds = {CUPTI_ACTIVITY_KIND_RUNTIME,           CUPTI_ACTIVITY_KIND_DRIVER,
                                             CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                                             CUPTI_ACTIVITY_KIND_MEMCPY2,           CUPTI_ACTIVITY_KIND_MEMSET,
                                             CUPTI_ACTIVITY_KIND_SYNCHRONIZATION};
    if (!options.graph_nodes)
      kinds.push_back(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);  // takes the place of its nodes' records
    for (const auto kind : kinds) {
      result = cupti.enable(kind);
      if (result != CUPTI_SUCCESS)
        return finding(result, ("cuptiActivityEnable(" + std::to_string(kind) + ")").c_str());
      enabled.push_back(kind);
    }
    result = cupti.enable_all_sync_records(1);
    if (result != CUPTI_SUCCESS) return finding(result, "cuptiActivityEnableAllSyncRecords");
    result = cupti.timestamp(&first);
    if (result != CUPTI_SUCCESS) return finding(result, "cuptiGetTimestamp");
    return std::nullopt;
  }

  std::string callback_name(CUpti_CallbackDomain domain, std::uint32_t id) const {
    const char* name = nullptr;
    if (cupti.callback_name(domain, id, &name) == CUPTI_SUCCESS && name) return name;
    return (domain == CUPTI_CB_DOMAIN_RUNTIME_API ? "runtime call " : "driver call ") + std::to_string(id);
  }

  ~Session() {
    for (const auto kind : enabled) cupti.disable(kind);
    if (!enabled.empty()) cupti.flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    if (subscriber) cupti.unsubscribe(subscriber);
    const std::lock_guard lock(running_guard);
    if (running == this) running = nullptr;
  }
};

std::mutex CuptiTrace::Session::running_guard;
CuptiTrace::Session* CuptiTrace::Session::running = nullptr;

CuptiTrace::CuptiTrace() = default;
CuptiTrace::~CuptiTrace() = default;

std::optional<GpuFinding> CuptiTrace::start(const TraceOptions& options) {
  session_.reset();
  session_ = std::make_unique<Session>();
  const auto refused = session_->begin(options);
  if (refused) session_.reset();
  return refused;
}

void CuptiTrace::close_window() {
  if (session_) session_->need(session_->cupti.timestamp(&session_->last), "cuptiGetTimestamp");
}

DeviceActivity CuptiTrace::stop() {
  if (!session_) return {};
  if (session_->last == 0) close_window();
  for (const auto kind : session_->enabled) session_->need(session_->cupti.disable(kind), "cuptiActivityDisable");
  session_->need(session_->cupti.flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), "cuptiActivityFlushAll");
  session_->enabled.clear();
  DeviceActivity activity;
  {
    const std::lock_guard lock(session_->guard);
    if (!session_->broken) {
      activity = session_->records.summary(
          session_->first, session_->last,
          [this](CUpti_CallbackDomain domain, std::uint32_t id) { return session_->callback_name(domain, id); });
    } else {
      activity.status = session_->broken->status;
      activity.reason = session_->broken->text();
    }
  }
  session_.reset();
  return activity;
}

}  // namespace twinbench
