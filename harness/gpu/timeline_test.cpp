// The sampling thread, against a fake management library; ranges, against a fake profiler.
#include "harness/gpu/timeline.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "harness/gpu/nvtx_range.h"
#include "harness/gpu/test_environment.h"

namespace twinbench {
namespace {

TEST(DeviceTimeline, SamplesFromStartToStop) {
  const FakeCard card;
  DeviceTimeline timeline(0.01);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  timeline.stop();
  const auto& samples = timeline.samples();
  ASSERT_GE(samples.size(), 4u);  // ten on an idle machine
  ASSERT_LE(samples.size(), 30u);
  EXPECT_LT(samples.front().seconds, samples.back().seconds / 2);
  EXPECT_GE(samples.back().seconds, 0.1) << "the last sample closes the phase";
  for (std::size_t i = 1; i < samples.size(); ++i) EXPECT_GT(samples[i].seconds, samples[i - 1].seconds);
  const auto json = timeline.to_json();
  for (const char* column : {"seconds", "utilisation_percent", "power_w", "sm_clock_mhz", "temperature_c",
                             "memory_used_bytes", "throttle_reasons"})
    EXPECT_EQ(json[column].size(), samples.size()) << column;
  EXPECT_EQ(json["power_w"][0], 321.5);
  EXPECT_EQ(json["throttle_reasons"][0][0], "sw_power_cap");
  // The fake counts half a joule a reading.
  EXPECT_NEAR(json["energy_j"].get<double>(), 0.5 * static_cast<double>(samples.size() - 1), 1e-9);
  EXPECT_EQ(timeline.reason(), "");
}

TEST(DeviceTimeline, StopsAtOnceAndOnlyOnce) {
  const FakeCard card;
  const auto start = std::chrono::steady_clock::now();
  DeviceTimeline timeline(60);
  timeline.stop();
  timeline.stop();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  EXPECT_EQ(timeline.samples().size(), 2u);
}

TEST(DeviceTimeline, AFigureTheCardDoesNotGiveIsNull) {
  const FakeCard card;
  const TestVariable unsupported("FAKE_NVML_UNSUPPORTED", "nvmlDeviceGetTotalEnergyConsumption");
  DeviceTimeline timeline(0.01);
  timeline.stop();
  EXPECT_TRUE(timeline.to_json()["energy_j"].is_null());
  EXPECT_EQ(timeline.to_json()["temperature_c"][0], 61.0);
}

TEST(DeviceTimeline, WithoutTheLibraryItIsNullWithAReason) {
  const TestVariable absent("TWINBENCH_NVML_LIBRARY", "/nonexistent/libnvidia-ml.so.1");
  DeviceTimeline timeline;
  timeline.stop();
  EXPECT_TRUE(timeline.to_json().is_null());
  EXPECT_EQ(timeline.reason().rfind("nvml_absent: ", 0), 0u) << timeline.reason();
}

// NVTX looks for a tool at its first use in a process; nothing else here uses it.
TEST(NvtxRange, OpensAndClosesInItsOwnDomain) {
  const TestVariable tool("NVTX_INJECTION64_PATH", fake_library("nvtx_tool"));
  {
    const NvtxRange outer("energy_flow.mapper/optimized/cuda/fp32/train", "setup");
    const NvtxRange inner("a", "timed");
  }
  void* library = dlopen(fake_library("nvtx_tool").c_str(), RTLD_NOW);
  ASSERT_NE(library, nullptr);
  const auto seen = reinterpret_cast<const char* (*)()>(dlsym(library, "fake_nvtx_seen"));
  EXPECT_STREQ(seen(), "twinbench:+energy_flow.mapper/optimized/cuda/fp32/train/setup+a/timed--");
}

}  // namespace
}  // namespace twinbench
