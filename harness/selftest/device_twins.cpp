// Planted twins on the simulated device, timed as bench does: other streams, graphs, caches, missing launches.
#include "harness/device/bench/device_twin_timing.h"
#include "harness/device/bench/simulated_bench_device.h"
#include "harness/selftest/cases.h"
#include "harness/selftest/row_scale.h"

namespace twinbench::selftest {

namespace {

struct Plan {
  PlantedRun baseline{.launches = 10, .warm_s = 20e-6, .cold_s = 60e-6},
      optimized{.launches = 1, .warm_s = 50e-6, .cold_s = 150e-6};
  std::string regime = "hot";
};

nlohmann::json timed(const Plan& plan) {
  SimulatedBenchDevice device;
  const DeviceSession session = open_device_session(device.timer(), device.host(), 0.01);
  planted = {&device, plan.baseline, plan.optimized, 0};
  const Component component = planted_component(1024, plan.regime, {1e3, 1e3});
  DeviceTimingOptions options;
  options.twin.max_pairs = 12;
  options.twin.seconds = 60;
  options.twin.target_half_width = 0.01;
  options.twin.clock = {1e-9, 25e-9};
  return time_device_twin({&component, c10::DeviceType::CUDA, Dtype::kFp32, &component.spec.cases[0]}, options, session,
                          {{"cuda", "copy", "B/s", 3e12}, {"cuda", "gemm_fp32", "FLOP/s", 50e12}}, device);
}

SelftestCase on_device(const std::string& name, const std::string& what, const std::string& caught_by, Plan plan) {
  SelftestCase one{name, what, caught_by, row_scale_component(make<RowScale>), Variant::kOptimized, nullptr, {}};
  one.setting = row_scale_setting(one.component, 1, 1);
  one.on_device = [plan = std::move(plan)] { return timed(plan); };
  return one;
}

SelftestCase answering(const std::string& name, const std::string& what, PlantedAnswer answer) {
  Plan plan;
  plan.optimized.answer = answer;
  return on_device(name, what, "answers", plan);
}

// The same work on both sides, so that nothing but the trick could make the optimized one faster.
Plan persisting() {
  Plan plan;
  plan.baseline = plan.optimized = {.launches = 1, .warm_s = 50e-6, .cold_s = 150e-6};
  plan.optimized.persists = true;
  plan.regime = "cold";
  return plan;
}

Plan beside(double seconds) {
  Plan plan;
  plan.optimized.elsewhere_s = seconds;
  return plan;
}

Plan cold() {
  Plan plan;
  plan.regime = "cold";
  return plan;
}

}  // namespace

std::vector<SelftestCase> device_twins() {
  return {
      on_device("device_plain", "a twin with one launch for ten", "", {}),
      on_device("device_cold", "the same out of a cold cache", "", cold()),
      on_device("device_short_side_stream",
                "a few per cent of its work on another stream: within the clocks' own error", "", beside(1e-6)),
      on_device("device_side_stream", "does its work on another stream", "clocks disagree", beside(500e-6)),
      on_device("device_persisting_cache", "asks the cache to keep its data over a flush", "no_gain", persisting()),
      answering("device_serves_four", "one launch serves four runs", PlantedAnswer::kServesFour),
      answering("device_graph_of_one_element", "replays its graph while one element of its input stays",
                PlantedAnswer::kOfLastElement),
      answering("device_first_inputs", "a graph that holds the addresses of a copy of its first inputs",
                PlantedAnswer::kOfFirstInputs),
      answering("device_address_cache", "remembers answers by the address of its input",
                PlantedAnswer::kOfFirstContents),
      answering("device_stops_later", "computes in its first 20 runs only", PlantedAnswer::kStops),
  };
}

}  // namespace twinbench::selftest
