// What is observed beside the counters: memory over a case's life, the device's allocator, and the traced pass.
#include <ATen/ops/empty.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "harness/counters/case_memory.h"
#include "harness/counters/trace_component.h"
#include "harness/device/device_allocator.h"
#include "harness/gpu/test_environment.h"
#include "src/make_runnable.h"

namespace twinbench {
namespace {

const Component& subject() { return find_component("energy_flow.simple_neuron"); }
Setting setting_of(const Component& component) {
  return {component.spec.cases.front(), Dtype::kFp32, c10::Device(c10::DeviceType::CPU)};
}

TEST(CaseMemory, ACaseThatCleansUpLeavesNothing) {
  const auto memory = case_memory(subject(), Variant::kBaseline, setting_of(subject()), 7);
  EXPECT_EQ(memory.leak(), "");
  EXPECT_GT(memory.host.allocations, 0);
  EXPECT_GT(memory.host.peak_bytes, 0);
  EXPECT_FALSE(memory.device.has_value());
  const auto json = to_json(memory);
  EXPECT_EQ(json["host"]["leaked_bytes"], 0);
  EXPECT_TRUE(json["device"].is_null());
}

// Keeps a block a life, or one block for good.
std::vector<at::Tensor> kept;
bool every_life = false;
class Keeper : public Runnable {
 public:
  Keeper(const NamedTensors&, const Setting&) {
    if (every_life || kept.empty()) kept.push_back(at::empty({16}));
  }
  void run() override {}
  NamedTensors outputs() override { return {}; }
};

Component keeper_component() {
  Component component = subject();
  component.optimized = make<Keeper>;
  return component;
}

TEST(CaseMemory, WhatEveryLifeLeavesIsALeakAndWhatTheFirstUseLeavesIsNot) {
  kept.clear();
  every_life = false;
  EXPECT_EQ(case_memory(keeper_component(), Variant::kOptimized, setting_of(subject()), 7).leak(), "");
  every_life = true;
  EXPECT_EQ(case_memory(keeper_component(), Variant::kOptimized, setting_of(subject()), 7).leak(),
            "64 bytes of host memory outlive the case");
  kept.clear();
}

TEST(CaseMemory, ADeviceLeakIsSaidBesideTheHosts) {
  CaseMemory memory;
  memory.host.leaked_bytes = -8;
  memory.device.emplace();
  memory.device->leaked_bytes = 512;
  memory.device->retries = 2;
  EXPECT_EQ(memory.leak(),
            "8 bytes of host memory that are older than the case are freed by it; "
            "512 bytes of device memory outlive the case");
  EXPECT_EQ(to_json(memory)["device"]["leaked_bytes"], 512);
  EXPECT_EQ(to_json(memory)["device"]["retries"], 2);
}

// A caching allocator of a device that does not exist.
struct FakeDeviceAllocator final : c10::DeviceAllocator {
  bool started = true;
  int peaks_reset = 0;
  c10::CachingDeviceAllocator::DeviceStats stats;
  bool initialized() override { return started; }
  void emptyCache(c10::MempoolId_t) override {}
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex) override { return stats; }
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex) override { ++peaks_reset; }
  c10::DataPtr allocate(std::size_t) override { return {}; }
  void copy_data(void*, const void*, std::size_t) const override {}
};

TEST(DeviceAllocator, TotalsOfACachingAllocator) {
  const c10::Device device(c10::DeviceType::PrivateUse1);
  EXPECT_FALSE(device_allocator_totals(device).has_value());
  static FakeDeviceAllocator allocator;  // LibTorch keeps its address
  constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  allocator.stats.allocation[kAll].increase(3);
  allocator.stats.allocated_bytes[kAll].increase(4096);
  allocator.stats.allocated_bytes[kAll].decrease(1024);
  allocator.stats.reserved_bytes[kAll].increase(1 << 21);
  allocator.stats.segment[kAll].increase(1);
  allocator.stats.num_alloc_retries = 5;
  allocator.stats.num_ooms = 6;
  c10::SetAllocator(c10::DeviceType::PrivateUse1, &allocator);
  const auto totals = device_allocator_totals(device);
  ASSERT_TRUE(totals.has_value());
  EXPECT_EQ(totals->allocations, 3);
  EXPECT_EQ(totals->allocated_bytes, 3072);
  EXPECT_EQ(totals->peak_bytes, 4096);
  EXPECT_EQ(totals->reserved_bytes, 1 << 21);
  EXPECT_EQ(totals->segments, 1);
  EXPECT_EQ(totals->retries, 5);
  EXPECT_EQ(totals->out_of_memory, 6);
  reset_device_peak(device);
  EXPECT_EQ(allocator.peaks_reset, 1);
  allocator.started = false;
  EXPECT_FALSE(device_allocator_totals(device).has_value());
  EXPECT_FALSE(device_allocator_totals(c10::Device(c10::DeviceType::CPU)).has_value());
}

DeviceActivity trace() { return trace_run(subject(), Variant::kOptimized, setting_of(subject()), 7); }

TEST(TraceRun, IsPutIntoTheRow) {
  const FakeCard card;
  const TestVariable kernels("FAKE_CUPTI_KERNELS", "6");
  const auto activity = trace();
  EXPECT_EQ(trace_failure(activity), "");
  const auto fields = device_activity_fields(activity);
  EXPECT_EQ(fields["device_activity_reason"], "");
  EXPECT_EQ(fields["device_activity"]["kernels"], 6);
  EXPECT_EQ(fields["device_activity"]["runs"], 3);
  EXPECT_NEAR(fields["device_activity"]["busy_share"].get<double>(), 6 * 70 / (6 * 70 + 5 * 70.0), 1e-9);
  EXPECT_EQ(fields["device_activity"]["gaps"], 5);
}

TEST(TraceRun, LostRecordsFailTheRow) {
  const FakeCard card;
  const TestVariable dropped("FAKE_CUPTI_DROPPED", "4");
  const auto activity = trace();
  EXPECT_EQ(trace_failure(activity).rfind("records_dropped: ", 0), 0u) << trace_failure(activity);
  EXPECT_TRUE(device_activity_fields(activity)["device_activity"].is_null());
}

struct Refusal {
  const char *variable, *value, *name;
};
class RefusedTrace : public testing::TestWithParam<Refusal> {};

TEST_P(RefusedTrace, IsNullWithAReasonAndFailsNothing) {
  const FakeCard card;
  const TestVariable answer(GetParam().variable, GetParam().value);
  const auto activity = trace();
  EXPECT_EQ(trace_failure(activity), "");
  const auto fields = device_activity_fields(activity);
  EXPECT_TRUE(fields["device_activity"].is_null());
  EXPECT_EQ(fields["device_activity_reason"].get<std::string>().rfind(GetParam().name, 0), 0u) << fields;
}

INSTANTIATE_TEST_SUITE_P(EveryKind, RefusedTrace,
                         testing::Values(Refusal{"TWINBENCH_CUPTI_LIBRARY", "/nonexistent/libcupti.so.13",
                                                 "cupti_absent: "},
                                         Refusal{"FAKE_CUPTI_SUBSCRIBE", "39", "cupti_busy: "},
                                         Refusal{"FAKE_CUPTI_ENABLE", "35", "cupti_permission: "}));

TEST(TraceRun, ACellThatWasNotTracedSaysSo) {
  const auto fields = device_activity_fields(std::nullopt);
  EXPECT_TRUE(fields["device_activity"].is_null());
  EXPECT_EQ(fields["device_activity_reason"], "not traced: the cell uses no CUDA device");
}

}  // namespace
}  // namespace twinbench
