// Synthetic CUPTI records with the layouts of the real headers, and what must come out of them.
#include "harness/gpu/activity_records.h"

#include <gtest/gtest.h>

namespace twinbench {
namespace {

constexpr std::uint64_t kWindowStart = 100, kWindowEnd = 10000;

template <typename Record>
void add(ActivityRecords& records, const Record& record) {
  records.add(reinterpret_cast<const CUpti_Activity&>(record));
}

CUpti_ActivityKernel10 kernel(const char* name, std::uint64_t start, std::uint64_t end, std::uint64_t graph_node = 0,
                              std::uint32_t correlation = 1) {
  CUpti_ActivityKernel10 record{};
  record.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  record.name = name;
  record.start = start;
  record.end = end;
  record.graphNodeId = graph_node;
  record.correlationId = correlation;
  return record;
}

CUpti_ActivityMemcpy6 copy(CUpti_ActivityMemoryKind from, CUpti_ActivityMemoryKind to, std::uint64_t bytes,
                           std::uint8_t flags = 0) {
  CUpti_ActivityMemcpy6 record{};
  record.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  record.srcKind = static_cast<std::uint8_t>(from);
  record.dstKind = static_cast<std::uint8_t>(to);
  record.bytes = bytes;
  record.flags = flags;
  record.start = 500;
  record.end = 600;
  return record;
}

CUpti_ActivityAPI call(CUpti_ActivityKind kind, std::uint32_t id, std::uint64_t start, std::uint32_t correlation) {
  CUpti_ActivityAPI record{};
  record.kind = kind;
  record.cbid = id;
  record.start = start;
  record.correlationId = correlation;
  return record;
}

CUpti_ActivitySynchronization2 wait(CUpti_ActivitySynchronizationType type, std::uint64_t start,
                                    std::uint32_t correlation) {
  CUpti_ActivitySynchronization2 record{};
  record.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
  record.type = type;
  record.start = start;
  record.correlationId = correlation;
  return record;
}

std::string name_of_callback(CUpti_CallbackDomain domain, std::uint32_t id) {
  if (domain == CUPTI_CB_DOMAIN_DRIVER_API)
    return id == CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch ? "cuGraphLaunch" : "cuLaunchKernel";
  if (id == CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_ptsz_v10000) return "cudaGraphLaunch_ptsz_v10000";
  if (id == CUPTI_RUNTIME_TRACE_CBID_cudaEventQuery_v3020) return "cudaEventQuery_v3020";
  return "cudaLaunchKernel_v7000";
}

DeviceActivity summary(const ActivityRecords& records) {
  return records.summary(kWindowStart, kWindowEnd, name_of_callback);
}

TEST(ActivityRecords, KernelsByReadableNameWithTheLargestUseOfResources) {
  ActivityRecords records;
  auto small = kernel("_Z3addPfS_i", 1000, 1400), large = kernel("_Z3addPfS_i", 2000, 2100);
  small.registersPerThread = 24;
  large.registersPerThread = 64;
  large.staticSharedMemory = 1024;
  large.dynamicSharedMemory = 4096;
  large.localMemoryPerThread = 16;
  add(records, small);
  add(records, large);
  add(records, kernel("plain_c_kernel", 3000, 3001));
  const auto activity = summary(records);
  ASSERT_TRUE(activity.complete()) << activity.reason;
  EXPECT_EQ(activity.kernels, 3);
  ASSERT_EQ(activity.kernels_by_name.count("add"), 1u);
  const auto& use = activity.kernels_by_name.at("add");
  EXPECT_EQ(use.launches, 2);
  EXPECT_NEAR(use.seconds, 500e-9, 1e-15);
  EXPECT_EQ(use.registers, 64);
  EXPECT_EQ(use.static_shared_bytes, 1024);
  EXPECT_EQ(use.dynamic_shared_bytes, 4096);
  EXPECT_EQ(use.local_bytes, 16);
  EXPECT_EQ(activity.kernels_by_name.at("plain_c_kernel").launches, 1);
}

TEST(ActivityRecords, CopiesByBothEndsOfThem) {
  ActivityRecords records;
  add(records, copy(CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, 100));
  add(records, copy(CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, 50,
                    CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC));
  add(records,
      copy(CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, CUPTI_ACTIVITY_MEMORY_KIND_PINNED, 7, CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC));
  CUpti_ActivityMemcpyPtoP4 peers{};
  peers.kind = CUPTI_ACTIVITY_KIND_MEMCPY2;
  peers.srcKind = peers.dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  peers.bytes = 9;
  peers.start = 700;
  peers.end = 710;
  add(records, peers);
  CUpti_ActivityMemset4 set{};
  set.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  set.bytes = 4096;
  set.start = 800;
  set.end = 801;
  add(records, set);
  const auto activity = summary(records);
  EXPECT_EQ(activity.copies, 4);
  EXPECT_EQ(activity.copied_bytes, 166);
  EXPECT_EQ(activity.copies_by_kind.at("pageable_to_device").count, 2);
  EXPECT_EQ(activity.copies_by_kind.at("pageable_to_device").bytes, 150);
  EXPECT_EQ(activity.copies_by_kind.at("pageable_to_device").blocking, 1);
  EXPECT_EQ(activity.copies_by_kind.at("device_to_pinned").bytes, 7);
  EXPECT_EQ(activity.copies_by_kind.at("device_to_device").bytes, 9);
  EXPECT_EQ(activity.memsets, 1);
  EXPECT_EQ(activity.memset_bytes, 4096);
}

TEST(ActivityRecords, BusyIsAUnionOverStreamsAndGapsLieInsideTheSpan) {
  ActivityRecords records;
  add(records, kernel("a", 1000, 2000));
  add(records, kernel("b", 1500, 2500));  // on another stream, at the same time
  add(records, kernel("c", 1600, 1700));  // inside
  add(records, kernel("d", 2600, 2700));
  add(records, kernel("e", 3700, 3800));
  const auto activity = summary(records);
  EXPECT_NEAR(activity.span_s, 2800e-9, 1e-15);
  EXPECT_NEAR(activity.busy_s, 1700e-9, 1e-15);
  EXPECT_NEAR(activity.gap_s, 1100e-9, 1e-15);
  EXPECT_EQ(activity.gaps, 2);
  EXPECT_NEAR(activity.longest_gap_s, 1000e-9, 1e-15);
}

TEST(ActivityRecords, AGraphIsOneLaunchHoweverManyRecordsTellOfIt) {
  ActivityRecords records;
  // Two launches: one by its nodes, one by the graph's own record; each with the call that made it.
  for (std::uint64_t node = 1; node <= 3; ++node) add(records, kernel("node", 1000 * node, 1000 * node + 10, node, 77));
  add(records, call(CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_ptsz_v10000, 900, 77));
  add(records, call(CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch, 901, 77));
  CUpti_ActivityGraphTrace2 graph{};
  graph.kind = CUPTI_ACTIVITY_KIND_GRAPH_TRACE;
  graph.correlationId = 78;
  graph.start = 5000;
  graph.end = 6000;
  add(records, graph);
  const auto activity = summary(records);
  EXPECT_EQ(activity.graph_launches, 2);
  EXPECT_EQ(activity.kernels, 3);
  EXPECT_EQ(activity.kernels_by_name.at("node").launches, 0);
  EXPECT_EQ(activity.kernels_by_name.at("node").graph_launches, 3);
  EXPECT_EQ(activity.host_calls, 1);  // runtime and driver record of one launch
  EXPECT_NEAR(activity.busy_s, 1030e-9, 1e-15);
}

TEST(ActivityRecords, TheObserversOwnCallsAndQueriesAreNoSynchronisations) {
  ActivityRecords records;
  add(records, wait(CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE, 200, 1));
  add(records, wait(CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE, 300, 2));
  add(records, wait(CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE, 400, 3));
  add(records, wait(CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT, 500, 4));  // the device waits, not the host
  add(records, wait(CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE, 600, 5));  // by cudaEventQuery
  add(records, call(CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_RUNTIME_TRACE_CBID_cudaEventQuery_v3020, 600, 5));
  add(records, wait(CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE, kWindowEnd + 1,
                    6));  // the observer's, after the runs
  add(records, call(CUPTI_ACTIVITY_KIND_DRIVER, 1, kWindowStart - 1, 7));
  const auto activity = summary(records);
  EXPECT_EQ(activity.synchronisations, 3);
  EXPECT_EQ(activity.synchronisations_by_type.at("stream_wait_event"), 1);
  EXPECT_EQ(activity.synchronisations_by_type.at("context_synchronise"), 1);
  EXPECT_EQ(activity.host_calls, 1);
}

TEST(ActivityRecords, LostOrUntimedRecordsMakeItIncomplete) {
  ActivityRecords dropped, untimed;
  dropped.add_dropped(2);
  add(untimed, kernel("a", 0, 0));
  EXPECT_EQ(summary(dropped).status, GpuStatus::kRecordsDropped);
  EXPECT_NE(summary(dropped).reason.find("2 dropped"), std::string::npos);
  EXPECT_EQ(summary(untimed).status, GpuStatus::kRecordsDropped);
  EXPECT_TRUE(to_json(summary(dropped)).is_null());
}

TEST(ActivityRecords, NoRecordIsCompleteAndZero) {
  const auto activity = summary(ActivityRecords());
  EXPECT_TRUE(activity.complete());
  EXPECT_EQ(activity.kernels + activity.copies + activity.memsets + activity.synchronisations + activity.graph_launches,
            0);
  EXPECT_EQ(activity.span_s, 0);
}

TEST(ActivityRecords, Names) {
  EXPECT_EQ(plain_call_name("cudaLaunchKernel_ptsz_v7000"), "cudaLaunchKernel");
  EXPECT_EQ(plain_call_name("cuMemcpyHtoDAsync_v2_ptsz"), "cuMemcpyHtoDAsync_v2");
  EXPECT_EQ(plain_call_name("cudaStream_view"), "cudaStream_view");
  EXPECT_EQ(readable_kernel_name("_ZN9twinbench5applyINS_3AddIfEEEEvT_i"),
            "void twinbench::apply<twinbench::Add<float> >");
  EXPECT_EQ(readable_kernel_name("sm90_gemm_bf16"), "sm90_gemm_bf16");
}

TEST(Occupation, NearestRankOfManyGaps) {
  std::vector<DeviceInterval> intervals;
  std::uint64_t at = 0;
  for (std::uint64_t gap = 1; gap <= 100; ++gap) {
    intervals.insert(intervals.begin(), {at, at + 10});  // from last to first: the order must not matter
    at += 10 + gap;
  }
  intervals.insert(intervals.begin(), {at, at + 10});
  const auto occupation = occupation_of(intervals);
  EXPECT_EQ(occupation.gaps, 100u);
  EXPECT_EQ(occupation.gap_95th_percentile_ns, 95u);
  EXPECT_EQ(occupation.longest_gap_ns, 100u);
  EXPECT_EQ(occupation.busy_ns, 1010u);
  EXPECT_EQ(occupation_of({}).span_ns, 0u);
}

}  // namespace
}  // namespace twinbench
