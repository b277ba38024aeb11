// The probe and NVML against fake libraries: a good card, and every way in which one is not.
#include "harness/gpu/probe.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "harness/gpu/nvml.h"
#include "harness/gpu/test_environment.h"

namespace twinbench {
namespace {

bool found(const GpuProbe& probe, GpuStatus status) {
  for (const auto& finding : probe.findings)
    if (finding.status == status) return true;
  return false;
}

TEST(GpuProbe, AGoodCard) {
  const FakeCard card;
  const auto probe = probe_gpu();
  EXPECT_TRUE(probe.usable()) << probe.reason();
  EXPECT_TRUE(probe.findings.empty()) << probe.findings.front().text();
  EXPECT_EQ(probe.card["name"], "Fake card");
  EXPECT_EQ(probe.pci_bus_id, "0000:3B:00.0");
  EXPECT_EQ(probe.card["sm_count"], 7);
  EXPECT_EQ(probe.card["l2_bytes"], 12345);
  EXPECT_EQ(probe.card["memory_bytes"], std::int64_t{32} << 30);
  EXPECT_EQ(probe.card["compute_capability"], "12.0");
  EXPECT_EQ(probe.card["driver"], "580.65.06");
  EXPECT_EQ(probe.card["power_limit_w"], 575.0);
  EXPECT_EQ(probe.card["clocks"]["max_sm_mhz"], 3090.0);
  EXPECT_EQ(probe.card["mig"], false);
  EXPECT_EQ(probe.card["ecc"], true);
  EXPECT_EQ(probe.card["persistence"], false);
  EXPECT_EQ(probe.card["temperature_c"], 61.0);
  EXPECT_EQ(probe.card["throttle_reasons"], (nlohmann::json{"sw_power_cap", "hw_thermal_slowdown"}));
  const auto hash = probe.card["uuid_hash"].get<std::string>();
  EXPECT_EQ(hash.rfind("crc32:", 0), 0u);
  EXPECT_EQ(probe.card.dump().find("4444"), std::string::npos) << "the board's own id must not leave the machine";
}

struct State {
  const char* variable;
  std::string value;
  GpuStatus status;
  bool usable;
  const char* word;
};

class CardState : public testing::TestWithParam<State> {};

TEST_P(CardState, IsNamed) {
  const FakeCard card;
  const TestVariable answer(GetParam().variable, GetParam().value);
  const auto probe = probe_gpu(2);
  EXPECT_EQ(probe.usable(), GetParam().usable);
  ASSERT_TRUE(found(probe, GetParam().status)) << name_of(GetParam().status);
  std::string all;
  for (const auto& finding : probe.findings) all += finding.text() + "\n";
  EXPECT_NE(all.find(GetParam().word), std::string::npos) << all;
  EXPECT_EQ(probe.card.is_null(), !GetParam().usable);
  EXPECT_EQ(probe.reason().empty(), GetParam().usable);
}

INSTANTIATE_TEST_SUITE_P(
    EveryKind, CardState,
    testing::Values(
        State{"TWINBENCH_CUDA_LIBRARY", "/nonexistent/libcuda.so.1", GpuStatus::kNoDriver, false, "/nonexistent"},
        State{"FAKE_CUDA_VERSION", "12040", GpuStatus::kDriverTooOld, false, "CUDA 12.4"},
        State{"TWINBENCH_CUDA_LIBRARY", fake_library("nvml"), GpuStatus::kDriverFailed, false, "cuDriverGetVersion"},
        State{"FAKE_CUDA_INIT", "100", GpuStatus::kNoDevice, false, "CUDA_ERROR_NO_DEVICE"},
        State{"FAKE_CUDA_INIT", "802", GpuStatus::kDriverFailed, false, "CUDA_ERROR_SYSTEM_NOT_READY"},
        State{"FAKE_CUDA_COUNT", "0", GpuStatus::kNoDevice, false, "no_device"},
        State{"FAKE_CUDA_MAJOR", "8", GpuStatus::kUnsupportedArchitecture, false, "compute capability 8.0"},
        State{"FAKE_CUDA_BEHAVIOUR", "crash", GpuStatus::kDriverFailed, false, "Segmentation fault"},
        State{"FAKE_CUDA_BEHAVIOUR", "hang", GpuStatus::kDriverFailed, false, "no answer in 2 s"},
        State{"FAKE_NVML_MIG", "1", GpuStatus::kMigEnabled, true, "nvidia-smi -mig 0"},
        State{"FAKE_NVML_PROCESSES", "11 12", GpuStatus::kOtherProcesses, true, "2 of them"},
        State{"TWINBENCH_NVML_LIBRARY", "/nonexistent/libnvidia-ml.so.1", GpuStatus::kNvmlAbsent, true, "/nonexistent"},
        State{"TWINBENCH_NVML_LIBRARY", fake_library("old_nvml"), GpuStatus::kNvmlIncomplete, true,
              "nvmlDeviceGetCurrentClocksEventReasons: missing"},
        State{"FAKE_NVML_INIT", "9", GpuStatus::kNvmlIncomplete, true, "Driver Not Loaded"},
        State{"FAKE_CUPTI_SUBSCRIBE", "39", GpuStatus::kCuptiBusy, true, "cupti_busy"},
        State{"TWINBENCH_CUPTI_LIBRARY", "/nonexistent/libcupti.so.13", GpuStatus::kCuptiAbsent, true,
              "cupti_absent"}));

TEST(GpuProbe, AskedInThisProcessItNamesTheSameCard) {
  const FakeCard card;
  const TestVariable busy("FAKE_CUPTI_SUBSCRIBE", "39");  // as under a tool that traces: it is not tried
  const auto& here = gpu_status_in_process();
  EXPECT_TRUE(here.usable()) << here.reason();
  EXPECT_TRUE(here.findings.empty()) << here.findings.front().text();
  const auto forked = probe_gpu();
  for (const char* key : {"name", "uuid_hash", "driver"}) EXPECT_EQ(here.card[key], forked.card[key]) << key;
}

TEST(GpuProbe, ThisProcessNeverStartsTheDriver) {
  const FakeCard card;
  const TestVariable crash("FAKE_CUDA_BEHAVIOUR", "crash");  // a cuInit in this process would end it
  EXPECT_FALSE(probe_gpu().usable());
}

TEST(Nvml, WhatACardDoesNotSupportIsEmptyAndNoFinding) {
  const FakeCard card;
  const TestVariable unsupported("FAKE_NVML_UNSUPPORTED", "nvmlDeviceGetEccMode");
  Nvml nvml;
  const auto facts = nvml.card();
  EXPECT_FALSE(facts.ecc.has_value());
  EXPECT_FALSE(facts.ecc_uncorrected_errors.has_value());
  EXPECT_TRUE(to_json(facts)["ecc"].is_null());
  EXPECT_FALSE(nvml.finding().has_value());
}

TEST(Nvml, ARefusedFunctionLeavesOnlyItsOwnFigureEmpty) {
  const FakeCard card;
  const TestVariable refuse("FAKE_REFUSE", "nvmlDeviceGetPowerUsage");
  Nvml nvml;
  const auto sample = nvml.sample();
  EXPECT_FALSE(sample.power_w.has_value());
  EXPECT_EQ(sample.temperature_c, 61.0);
  ASSERT_TRUE(nvml.finding().has_value());
  EXPECT_NE(nvml.finding()->detail.find("nvmlDeviceGetPowerUsage"), std::string::npos);
}

TEST(Nvml, OurOwnProcessIsNoOther) {
  const FakeCard card;
  const TestVariable processes("FAKE_NVML_PROCESSES", std::to_string(getpid()) + " 77 77");
  Nvml nvml;
  EXPECT_EQ(nvml.card().other_processes, (std::vector<std::int64_t>{77}));
}

TEST(Nvml, ThrottleReasonsByName) {
  EXPECT_TRUE(throttle_reasons(0).empty());
  EXPECT_EQ(throttle_reasons(0x1 | 0x4), (std::vector<std::string>{"gpu_idle", "sw_power_cap"}));
  EXPECT_EQ(throttle_reasons(1ull << 40), (std::vector<std::string>{"unknown"}));
}

}  // namespace
}  // namespace twinbench
