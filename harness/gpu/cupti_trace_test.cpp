// traced() against a fake CUPTI: what is counted, what is the observer's own, and every way to be refused.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "harness/gpu/cupti_trace.h"
#include "harness/gpu/test_environment.h"

namespace twinbench {
namespace {

// "The application": tells the fake library what the device did.
class FakeDevice {
 public:
  FakeDevice() : library_(dlopen(fake_library("cupti").c_str(), RTLD_NOW)) {
    kernel = reinterpret_cast<void (*)(const char*, std::uint64_t, std::uint64_t)>(dlsym(library_, "fake_kernel"));
    copy = reinterpret_cast<void (*)(std::uint8_t, std::uint8_t, std::uint64_t, std::uint64_t)>(
        dlsym(library_, "fake_copy"));
    synchronise = reinterpret_cast<void (*)()>(dlsym(library_, "fake_synchronise"));
  }
  void (*kernel)(const char*, std::uint64_t, std::uint64_t) = nullptr;
  void (*copy)(std::uint8_t, std::uint8_t, std::uint64_t, std::uint64_t) = nullptr;
  void (*synchronise)() = nullptr;

 private:
  void* library_;
};

class CuptiTraceTest : public testing::Test {
 protected:
  void one_run() {
    device.kernel("_Z3addPfS_i", 1000, 500);
    device.kernel("_Z3addPfS_i", 100, 500);
    device.copy(3, 1, 64, 20);
    device.synchronise();
  }
  DeviceActivity trace(std::int64_t runs = 1) {
    TraceOptions options;
    options.finish = [this] { device.synchronise(); };
    return traced([this] { one_run(); }, runs, options);
  }

  FakeCard card;
  FakeDevice device;
};

TEST_F(CuptiTraceTest, CountsTheRunsAndNothingOfItsOwn) {
  device.kernel("_Z6beforePf", 10, 10);
  const auto activity = trace(3);
  ASSERT_TRUE(activity.complete()) << activity.reason;
  EXPECT_EQ(activity.runs, 3);
  EXPECT_EQ(activity.kernels, 6);
  EXPECT_EQ(activity.kernels_by_name.size(), 1u);
  EXPECT_EQ(activity.kernels_by_name.at("add").registers, 40);
  EXPECT_EQ(activity.copies_by_kind.at("device_to_pageable").bytes, 192);
  EXPECT_EQ(activity.synchronisations, 3);  // not the two of the observer
  EXPECT_EQ(activity.host_calls, 6);
  EXPECT_EQ(activity.host_calls_by_name.at("cudaLaunchKernel"), 6);
  EXPECT_EQ(activity.host_calls_by_name.at("cuLaunchKernel"), 6);
  EXPECT_NEAR(activity.busy_s, 3 * (500 + 500 + 20) * 1e-9, 1e-12);
  EXPECT_GT(activity.span_s, activity.busy_s);
  EXPECT_GT(activity.wall_s, 0);
  const auto again = trace(1);
  EXPECT_EQ(again.kernels, 2) << "a second trace starts from nothing";
}

TEST_F(CuptiTraceTest, JsonHoldsEveryTotal) {
  const auto json = to_json(trace(2));
  for (const char* field : {"runs", "kernels", "graph_launches", "copies", "copied_bytes", "memsets",
                            "synchronisations", "host_calls", "wall_s", "busy_s", "span_s", "gap_s"})
    EXPECT_TRUE(json.contains(field) && json[field].is_number()) << field;
  EXPECT_EQ(json["kernels_by_name"]["add"]["launches"], 4);
}

struct Refusal {
  const char* variable;
  std::string value;
  GpuStatus status;
  const char* word;
};

class CuptiRefusal : public CuptiTraceTest, public testing::WithParamInterface<Refusal> {};

TEST_P(CuptiRefusal, IsNamedAndTheRunsAreMadeAllTheSame) {
  const TestVariable answer(GetParam().variable, GetParam().value);
  int runs = 0;
  const auto run = [&] {
    ++runs;
    one_run();
  };
  const auto activity = traced(run, 2, {true, [] {}});
  EXPECT_EQ(runs, 2);
  EXPECT_FALSE(activity.complete());
  EXPECT_EQ(activity.status, GetParam().status) << activity.reason;
  EXPECT_NE(activity.reason.find(GetParam().word), std::string::npos) << activity.reason;
  EXPECT_TRUE(to_json(activity).is_null());
}

INSTANTIATE_TEST_SUITE_P(
    EveryKind, CuptiRefusal,
    testing::Values(
        Refusal{"FAKE_CUPTI_SUBSCRIBE", "39", GpuStatus::kCuptiBusy, "MULTIPLE_SUBSCRIBERS"},
        Refusal{"FAKE_CUPTI_ENABLE", "35", GpuStatus::kCuptiPermission, "cuptiActivityEnable"},
        Refusal{"FAKE_CUPTI_ENABLE", "1", GpuStatus::kCuptiFailed, "cupti_failed"},
        Refusal{"FAKE_CUPTI_VERSION", "26", GpuStatus::kCuptiTooOld, "version 26"},
        Refusal{"FAKE_CUPTI_VERSION", "130100", GpuStatus::kCuptiTooNew, "version 130100"},
        Refusal{"FAKE_CUPTI_FLUSH", "999", GpuStatus::kCuptiFailed, "cuptiActivityFlushAll"},
        Refusal{"FAKE_REFUSE", "cuptiActivityGetNextRecord", GpuStatus::kCuptiFailed, "cuptiActivityGetNextRecord"},
        Refusal{"FAKE_REFUSE", "cuptiActivityGetNextRecord:2", GpuStatus::kCuptiFailed, "cuptiActivityGetNextRecord"},
        Refusal{"FAKE_REFUSE", "cuptiActivityGetNumDroppedRecords", GpuStatus::kCuptiFailed, "DroppedRecords"},
        Refusal{"FAKE_REFUSE", "cuptiActivityDisable", GpuStatus::kCuptiFailed, "cuptiActivityDisable"},
        Refusal{"FAKE_REFUSE", "cuptiGetTimestamp:2", GpuStatus::kCuptiFailed, "cuptiGetTimestamp"},
        Refusal{"FAKE_CUPTI_DROPPED", "5", GpuStatus::kRecordsDropped, "5 dropped"},
        Refusal{"TWINBENCH_CUPTI_LIBRARY", "/nonexistent/libcupti.so.13", GpuStatus::kCuptiAbsent, "/nonexistent"},
        Refusal{"TWINBENCH_CUPTI_LIBRARY", fake_library("nvml"), GpuStatus::kCuptiTooOld, "lacks functions"}));

TEST_F(CuptiTraceTest, ADeviceThatCannotBeWaitedForIsNamed) {
  const TestVariable refuse("FAKE_REFUSE", "cuCtxSynchronize");
  const auto activity = traced([this] { one_run(); }, 1, {});
  EXPECT_EQ(activity.status, GpuStatus::kDriverFailed);
  EXPECT_NE(activity.reason.find("cuCtxSynchronize"), std::string::npos) << activity.reason;
}

TEST_F(CuptiTraceTest, OneTraceAtATime) {
  CuptiTrace first, second;
  EXPECT_FALSE(first.start({}).has_value());
  const auto refused = second.start({});
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->status, GpuStatus::kCuptiBusy);
  EXPECT_TRUE(first.stop().complete()) << "the refused one must not end the first";
  EXPECT_FALSE(second.start({}).has_value());
}

TEST_F(CuptiTraceTest, ARunThatThrowsEndsTheTrace) {
  EXPECT_THROW(traced([]() -> void { throw std::runtime_error("CUDA error"); }, 1, {true, [] {}}), std::runtime_error);
  EXPECT_TRUE(trace().complete());
}

}  // namespace
}  // namespace twinbench
