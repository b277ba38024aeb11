// The traced pass and its JSON form.
#include "harness/gpu/device_activity.h"

#include <chrono>

#include "harness/gpu/cupti_trace.h"

namespace twinbench {
namespace {

// What kept the device from being waited for: then work may be missing in the trace, or be in it that is not its own.
std::optional<GpuFinding> wait_for_device(const TraceOptions& options) {
  if (options.finish) {
    options.finish();
    return std::nullopt;
  }
  const CudaDriver driver;
  const CUresult result = driver.synchronise_context ? driver.synchronise_context() : CUDA_SUCCESS;
  // No driver or no context in this thread: there is nothing to wait for.
  for (const CUresult nothing : {CUDA_SUCCESS, CUDA_ERROR_NOT_INITIALIZED, CUDA_ERROR_INVALID_CONTEXT})
    if (result == nothing) return std::nullopt;
  return GpuFinding{GpuStatus::kDriverFailed, "cuCtxSynchronize: " + name_of(driver, result)};
}

}  // namespace

DeviceActivity traced(const std::function<void()>& run, std::int64_t runs, const TraceOptions& options) {
  auto unfinished = wait_for_device(options);  // work of before must not end inside the trace
  CuptiTrace trace;
  const auto refused = trace.start(options);
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t i = 0; i < runs; ++i) run();
  trace.close_window();
  if (const auto after = wait_for_device(options); !unfinished) unfinished = after;
  const double wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  DeviceActivity activity = trace.stop();
  for (const auto& finding : {unfinished, refused}) {
    if (!finding) continue;
    activity.status = finding->status;
    activity.reason = finding->text();
  }
  activity.runs = runs;
  activity.wall_s = wall_s;
  return activity;
}

nlohmann::json to_json(const DeviceActivity& activity) {
  using nlohmann::json;
  if (!activity.complete()) return nullptr;
  json kernels = json::object(), copies = json::object();
  for (const auto& [name, use] : activity.kernels_by_name)
    kernels[name] = {{"launches", use.launches},
                     {"graph_launches", use.graph_launches},
                     {"seconds", use.seconds},
                     {"registers", use.registers},
                     {"static_shared_bytes", use.static_shared_bytes},
                     {"dynamic_shared_bytes", use.dynamic_shared_bytes},
                     {"local_bytes", use.local_bytes}};
  for (const auto& [kind, use] : activity.copies_by_kind)
    copies[kind] = {{"count", use.count}, {"bytes", use.bytes}, {"blocking", use.blocking}, {"seconds", use.seconds}};
  return {{"runs", activity.runs},
          {"kernels", activity.kernels},
          {"graph_launches", activity.graph_launches},
          {"copies", activity.copies},
          {"copied_bytes", activity.copied_bytes},
          {"memsets", activity.memsets},
          {"memset_bytes", activity.memset_bytes},
          {"synchronisations", activity.synchronisations},
          {"host_calls", activity.host_calls},
          {"kernels_by_name", kernels},
          {"copies_by_kind", copies},
          {"synchronisations_by_type", activity.synchronisations_by_type},
          {"host_calls_by_name", activity.host_calls_by_name},
          {"wall_s", activity.wall_s},
          {"busy_s", activity.busy_s},
          {"span_s", activity.span_s},
          {"busy_share", activity.span_s > 0 ? json(activity.busy_s / activity.span_s) : json(nullptr)},
          {"gap_s", activity.gap_s},
          {"gaps", activity.gaps},
          {"longest_gap_s", activity.longest_gap_s},
          {"gap_95th_percentile_s", activity.gap_95th_percentile_s}};
}

}  // namespace twinbench
