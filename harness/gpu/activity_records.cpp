// One case a record kind, then sums.
#include "harness/gpu/activity_records.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

namespace twinbench {
namespace {

const char* place_of(std::uint8_t memory_kind) {
  switch (memory_kind) {
    case CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE: return "pageable";
    case CUPTI_ACTIVITY_MEMORY_KIND_PINNED: return "pinned";
    case CUPTI_ACTIVITY_MEMORY_KIND_DEVICE:
    case CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC: return "device";
    case CUPTI_ACTIVITY_MEMORY_KIND_ARRAY: return "array";
    case CUPTI_ACTIVITY_MEMORY_KIND_MANAGED:
    case CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC: return "managed";
    default: return "unknown";
  }
}

const char* name_of(CUpti_ActivitySynchronizationType type) {
  switch (type) {
    case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE: return "event_synchronise";
    case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT: return "stream_wait_event";
    case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE: return "stream_synchronise";
    case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE: return "context_synchronise";
    default: return "unknown";
  }
}

void raise_to(std::int64_t& largest, std::int64_t value) { largest = std::max(largest, value); }

// cudaEventQuery and its like ask without waiting, but CUPTI files them as synchronisations.
bool asks_only(const std::string& call) {
  return call.find("EventQuery") != std::string::npos || call.find("StreamQuery") != std::string::npos;
}

bool launches_graph(const std::string& call) { return call == "cudaGraphLaunch" || call == "cuGraphLaunch"; }

}  // namespace

double ActivityRecords::add_interval(std::uint64_t start, std::uint64_t end) {
  if (start == 0 || end < start) {  // CUPTI had no memory to time it
    ++untimed_;
    return 0;
  }
  intervals_.push_back({start, end});
  return static_cast<double>(end - start) * 1e-9;
}

void ActivityRecords::add_graph_node(std::uint64_t node, std::uint32_t correlation) {
  if (node != 0) graph_correlations_.insert(correlation);
}

void ActivityRecords::add_kernel(const CUpti_ActivityKernel10& record) {
  ++totals_.kernels;
  auto& use = kernels_[record.name ? record.name : "unnamed"];
  ++(record.graphNodeId == 0 ? use.launches : use.graph_launches);
  use.seconds += add_interval(record.start, record.end);
  raise_to(use.registers, record.registersPerThread);
  raise_to(use.static_shared_bytes, record.staticSharedMemory);
  raise_to(use.dynamic_shared_bytes, record.dynamicSharedMemory);
  raise_to(use.local_bytes, record.localMemoryPerThread);
  add_graph_node(record.graphNodeId, record.correlationId);
}

void ActivityRecords::add_copy(std::uint8_t source, std::uint8_t destination, std::uint8_t flags, std::uint64_t bytes,
                               std::uint64_t start, std::uint64_t end) {
  ++totals_.copies;
  totals_.copied_bytes += static_cast<std::int64_t>(bytes);
  auto& use = totals_.copies_by_kind[std::string(place_of(source)) + "_to_" + place_of(destination)];
  ++use.count;
  use.bytes += static_cast<std::int64_t>(bytes);
  if (!(flags & CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC)) ++use.blocking;
  use.seconds += add_interval(start, end);
}

void ActivityRecords::add(const CUpti_Activity& record) {
  switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      add_kernel(reinterpret_cast<const CUpti_ActivityKernel10&>(record));
      break;
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      const auto& copy = reinterpret_cast<const CUpti_ActivityMemcpy6&>(record);
      add_copy(copy.srcKind, copy.dstKind, copy.flags, copy.bytes, copy.start, copy.end);
      add_graph_node(copy.graphNodeId, copy.correlationId);
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY2: {  // between two cards
      const auto& copy = reinterpret_cast<const CUpti_ActivityMemcpyPtoP4&>(record);
      add_copy(copy.srcKind, copy.dstKind, copy.flags, copy.bytes, copy.start, copy.end);
      add_graph_node(copy.graphNodeId, copy.correlationId);
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
      const auto& set = reinterpret_cast<const CUpti_ActivityMemset4&>(record);
      ++totals_.memsets;
      totals_.memset_bytes += static_cast<std::int64_t>(set.bytes);
      add_interval(set.start, set.end);
      add_graph_node(set.graphNodeId, set.correlationId);
      break;
    }
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE: {
      const auto& graph = reinterpret_cast<const CUpti_ActivityGraphTrace2&>(record);
      graph_correlations_.insert(graph.correlationId);
      add_interval(graph.start, graph.end);
      break;
    }
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: {
      const auto& wait = reinterpret_cast<const CUpti_ActivitySynchronization2&>(record);
      synchronisations_.push_back({wait.type, wait.correlationId, wait.start});
      break;
    }
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER: {
      const auto& call = reinterpret_cast<const CUpti_ActivityAPI&>(record);
      const auto domain =
          record.kind == CUPTI_ACTIVITY_KIND_RUNTIME ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API;
      calls_.push_back({domain, call.cbid, call.correlationId, call.start});
      break;
    }
    default: break;
  }
}

DeviceActivity ActivityRecords::summary(std::uint64_t first, std::uint64_t last,
                                        const CallbackName& callback_name) const {
  const auto inside = [&](std::uint64_t start) { return start >= first && start <= last; };
  DeviceActivity activity = totals_;
  activity.status = GpuStatus::kReady;
  activity.reason.clear();
  for (const auto& [mangled, use] : kernels_) {
    auto& named = activity.kernels_by_name[readable_kernel_name(mangled)];
    named.launches += use.launches;
    named.graph_launches += use.graph_launches;
    named.seconds += use.seconds;
    raise_to(named.registers, use.registers);
    raise_to(named.static_shared_bytes, use.static_shared_bytes);
    raise_to(named.dynamic_shared_bytes, use.dynamic_shared_bytes);
    raise_to(named.local_bytes, use.local_bytes);
  }
  std::set<std::uint32_t> calls, queries, graphs = graph_correlations_;
  for (const auto& call : calls_) {
    if (!inside(call.start)) continue;
    const std::string name = plain_call_name(callback_name(call.domain, call.id));
    ++activity.host_calls_by_name[name];
    calls.insert(call.correlation);  // a runtime call and the driver call inside it share theirs
    if (asks_only(name)) queries.insert(call.correlation);
    if (launches_graph(name)) graphs.insert(call.correlation);
  }
  activity.host_calls = static_cast<std::int64_t>(calls.size());
  activity.graph_launches = static_cast<std::int64_t>(graphs.size());
  for (const auto& wait : synchronisations_) {
    if (!inside(wait.start) || queries.count(wait.correlation)) continue;
    ++activity.synchronisations_by_type[name_of(wait.type)];
    if (wait.type != CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT) ++activity.synchronisations;
  }
  const Occupation occupation = occupation_of(intervals_);
  activity.busy_s = static_cast<double>(occupation.busy_ns) * 1e-9;
  activity.span_s = static_cast<double>(occupation.span_ns) * 1e-9;
  activity.gap_s = static_cast<double>(occupation.span_ns - occupation.busy_ns) * 1e-9;
  activity.gaps = static_cast<std::int64_t>(occupation.gaps);
  activity.longest_gap_s = static_cast<double>(occupation.longest_gap_ns) * 1e-9;
  activity.gap_95th_percentile_s = static_cast<double>(occupation.gap_95th_percentile_ns) * 1e-9;
  activity.dropped_records = dropped_;
  activity.untimed_records = untimed_;
  if (dropped_ > 0 || untimed_ > 0) {
    activity.status = GpuStatus::kRecordsDropped;
    activity.reason = GpuFinding{activity.status, std::to_string(dropped_) + " dropped, " + std::to_string(untimed_) +
                                                      " without time stamps"}
                          .text();
  }
  return activity;
}

std::string plain_call_name(const std::string& callback) {
  std::string name = callback;
  const auto version = name.rfind("_v");
  if (version != std::string::npos && version + 2 < name.size() &&
      name.find_first_not_of("0123456789", version + 2) == std::string::npos)
    name.resize(version);
  for (const std::string suffix : {"_ptsz", "_ptds"})
    if (name.size() > suffix.size() && name.compare(name.size() - suffix.size(), suffix.size(), suffix) == 0)
      name.resize(name.size() - suffix.size());
  return name;
}

std::string readable_kernel_name(const std::string& mangled) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> demangled(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), std::free);
  if (status != 0 || !demangled) return mangled;
  std::string name = demangled.get();
  // The parameter list is the last bracket at depth zero of template arguments.
  int depth = 0;
  for (std::size_t i = name.size(); i-- > 0;) {
    if (name[i] == ')') ++depth;
    if (name[i] == '(' && --depth == 0) {
      name.resize(i);
      break;
    }
  }
  return name;
}

}  // namespace twinbench
