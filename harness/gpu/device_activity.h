// What a device did during some runs, as CUPTI recorded it: plain numbers. Torch-free, CUPTI-free.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "harness/gpu/status.h"

namespace twinbench {

struct KernelUse {
  std::int64_t launches = 0, graph_launches = 0;  // by themselves; as nodes of a graph
  double seconds = 0;
  std::int64_t registers = 0;                                      // a thread; the largest seen, as are the next three
  std::int64_t static_shared_bytes = 0, dynamic_shared_bytes = 0;  // a block
  std::int64_t local_bytes = 0;  // a thread: above zero the kernel spills or indexes local arrays
};

struct CopyUse {
  std::int64_t count = 0, bytes = 0;
  std::int64_t blocking = 0;  // issued by a call that is not asynchronous
  double seconds = 0;
};

// Totals over `runs` runs. Meaningless unless complete().
struct DeviceActivity {
  GpuStatus status = GpuStatus::kCuptiAbsent;
  std::string reason = "nothing was traced";  // empty where complete

  std::int64_t runs = 0;
  std::int64_t kernels = 0;  // executions of kernels, nodes of graphs included
  std::int64_t graph_launches = 0;
  std::int64_t copies = 0, copied_bytes = 0;
  std::int64_t memsets = 0, memset_bytes = 0;
  std::int64_t synchronisations = 0;  // the host waits for a stream, an event or the context
  std::int64_t host_calls = 0;        // of the CUDA runtime and driver; one that wraps another counts once
  std::map<std::string, KernelUse> kernels_by_name;
  std::map<std::string, CopyUse> copies_by_kind;  // "pageable_to_device"
  std::map<std::string, std::int64_t>
      synchronisations_by_type;                            // "stream_wait_event" holds no host and is not in the sum
  std::map<std::string, std::int64_t> host_calls_by_name;  // "cudaLaunchKernel"

  double wall_s = 0;  // of the host, from the first run's start until the device had finished (longer than untraced)
  double busy_s = 0;  // of the device: union of kernels, copies and memsets over all streams
  double span_s = 0;  // of the device: from the first start to the last end
  double gap_s = 0;   // span - busy: the device waits for launches
  std::int64_t gaps = 0;
  double longest_gap_s = 0, gap_95th_percentile_s = 0;
  std::int64_t dropped_records = 0, untimed_records = 0;

  bool complete() const { return reason.empty(); }
};

// {"runs": ..., "kernels": ..., "kernels_by_name": {...}, ...}; null where not complete.
nlohmann::json to_json(const DeviceActivity& activity);

struct TraceOptions {
  // Nodes of a graph one by one, by kernel name. Without it a graph is one interval: less disturbance, but gaps between
  // its nodes count as busy and its kernels are not seen.
  bool graph_nodes = true;
  // Waits until the device is idle; default: cuCtxSynchronize of the loaded driver.
  std::function<void()> finish;
};

// Calls run() `runs` times under CUPTI. A pass of its own: tracing costs the host microseconds a call, so wall_s is no
// time to publish. Where CUPTI is absent, too old, busy or not permitted, or where records were lost: not complete(),
// with the status and reason; run() is then called all the same, so that a caller sees the same state afterwards.
// Passes on what run() throws. One trace at a time in a process: a second is kCuptiBusy.
DeviceActivity traced(const std::function<void()>& run, std::int64_t runs, const TraceOptions& options = {});

}  // namespace twinbench
