// Ceilings of a simulated device come out as planted; data sheets stand beside or say why not.
#include "harness/device/device_ceilings.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "harness/device/simulated_device.h"

namespace twinbench {
namespace {

CeilingWork work(SimulatedDevice& device, const std::string& name, CeilingMeasure measure, double amount, int launches,
                 double launch_s) {
  return {name,   measure,   measure == CeilingMeasure::kRate ? "B/s" : "s",
          amount, "planted", [&device, launches, launch_s] { return device.work(launches, launch_s, launch_s); }};
}

TEST(DeviceCeilings, ARateIsAmountOverTheHeldSpan) {
  SimulatedDevice device;
  const auto ceiling = measure_device_ceiling(work(device, "copy", CeilingMeasure::kRate, 4e9, 100, 1e-5), device,
                                              device, "NVIDIA H200");
  EXPECT_NEAR(ceiling.value, 4e9 / (1e-3 + SimulatedDevice::kEvent), 1e3);
  EXPECT_EQ(ceiling.device, "cuda");
  EXPECT_DOUBLE_EQ(*ceiling.data_sheet, 4.8e12);
  EXPECT_NE(ceiling.data_sheet_source.find("H200"), std::string::npos);
}

TEST(DeviceCeilings, ALaunchCostsTheHostWhatItCosts) {
  SimulatedDevice device;
  const auto launch = measure_device_ceiling(work(device, "launch", CeilingMeasure::kHostCost, 256, 256, 1e-7), device,
                                             device, "NVIDIA H200");
  EXPECT_NEAR(launch.value, SimulatedDevice::kLaunch, 1e-8);
  EXPECT_FALSE(launch.data_sheet);
  EXPECT_NE(launch.data_sheet_source.find("does not state"), std::string::npos);
  const auto node =
      measure_device_ceiling(work(device, "graph_node", CeilingMeasure::kDeviceCost, 100, 1, 1e-4), device, device, "");
  EXPECT_NEAR(node.value, 1e-6, 5e-8);
}

TEST(DeviceCeilings, TheBestOfSeveralCounts) {
  SimulatedDevice device;
  device.clock = [](std::int64_t sample) { return sample == 5 ? 1.0 : 0.5; };
  EXPECT_NEAR(
      measure_device_ceiling(work(device, "copy", CeilingMeasure::kRate, 1e6, 1, 1e-3), device, device, "").value, 1e9,
      1e6);
}

TEST(DeviceCeilings, ARefusedWorkIsNamedAndTheOthersStay) {
  SimulatedDevice device;
  auto broken = work(device, "gemm_bf16", CeilingMeasure::kRate, 1, 1, 1);
  broken.set_up = []() -> std::function<void()> { throw std::runtime_error("no such instruction"); };
  std::vector<std::string> refused;
  const auto ceilings = measure_device_ceilings({broken, work(device, "copy", CeilingMeasure::kRate, 1, 1, 1e-3)},
                                                device, device, "", refused);
  EXPECT_EQ(ceilings.size(), 1u);
  EXPECT_EQ(refused, std::vector<std::string>{"gemm_bf16: no such instruction"});
}

TEST(DataSheets, AnUnknownDeviceHasNoValueButAReason) {
  Ceiling ceiling{"cuda", "copy", "B/s", 1e12};
  add_data_sheet(ceiling, "NVIDIA Made Up 9000");
  EXPECT_FALSE(ceiling.data_sheet);
  EXPECT_NE(ceiling.data_sheet_source.find("NVIDIA Made Up 9000"), std::string::npos);
  EXPECT_EQ(to_json(ceiling_from(to_json(ceiling))), to_json(ceiling));
}

TEST(DataSheets, ALibraryThatLeavesHalfTheDeviceUnusedRejectsNoFasterKernel) {
  const auto measured = [](const std::string&) { return Ceiling{"cuda", "gemm_fp32", "FLOP/s", 60e12, 104.8e12}; };
  const Cost cost{0, 90e12};  // a second at 90 TFLOP/s
  EXPECT_FALSE(judge_floor(cost, {measured("")}, "cuda", Dtype::kFp32, 96e6, 1, measured).beyond);
  EXPECT_TRUE(judge_floor(cost, {measured("")}, "cuda", Dtype::kFp32, 96e6, 0.5, measured).beyond)
      << "faster than the data sheet too";
}

}  // namespace
}  // namespace twinbench
