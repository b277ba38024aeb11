// The device engine on a simulated device: what is planted comes out, and one planted bug for each rule is caught.
#include "harness/device/bench/device_twin_timing.h"

#include <gtest/gtest.h>

#include <utility>

#include "harness/device/bench/simulated_bench_device.h"
#include "harness/record/record.h"
#include "harness/record/schema.h"

namespace twinbench {
namespace {

using nlohmann::json;

constexpr double kLaunch = SimulatedDevice::kLaunch;

class DeviceTwins : public testing::Test {
 protected:
  // Ten short launches against one: the launches show in place, not in a held span.
  PlantedRun baseline{.launches = 10, .warm_s = 20e-6, .cold_s = 60e-6},
      optimized{.launches = 1, .warm_s = 50e-6, .cold_s = 150e-6};
  SimulatedBenchFaults faults;
  std::string regime = "hot";
  std::int64_t elements = 1024;
  Cost cost{1e3, 1e3};
  std::vector<Ceiling> ceilings = {{"cuda", "copy", "B/s", 3e12}, {"cuda", "gemm_fp32", "FLOP/s", 50e12}};
  std::function<double(std::int64_t)> clock;
  DeviceTimingOptions options;
  std::unique_ptr<SimulatedBenchDevice> device;

  void SetUp() override {
    options.twin.max_pairs = 12;
    options.twin.seconds = 60;
    options.twin.target_half_width = 0.01;
    options.twin.clock = {1e-9, 25e-9};
  }

  template <class Engine>
  json with_device(const Engine& engine) {
    device = std::make_unique<SimulatedBenchDevice>(faults);
    const DeviceSession session = open_device_session(device->timer(), device->host(), 0.01);
    if (clock) device->device().clock = clock;
    planted = {device.get(), baseline, optimized, 0};
    const Component component = planted_component(elements, regime, cost);
    return engine(Twin{&component, c10::DeviceType::CUDA, Dtype::kFp32, &component.spec.cases[0]}, session);
  }
  json timed() {
    return with_device([&](const Twin& twin, const DeviceSession& session) {
      return time_device_twin(twin, options, session, ceilings, *device);
    });
  }
  json speedup() { return timed()["speedups"][0]; }
  json null_test() {
    return with_device([&](const Twin& twin, const DeviceSession& session) {
      return device_null_test_row({twin}, options, session, *device);
    });
  }
  static std::string reason(const json& row) { return row["reason"]; }
  static bool says(const json& row, const char* words) { return reason(row).find(words) != std::string::npos; }
};

TEST_F(DeviceTwins, TheRatioAndItsPartsComeOutAsPlanted) {
  const json result = timed();
  const json& row = result["speedups"][0];
  EXPECT_EQ(row["verdict"], "faster") << reason(row);
  EXPECT_EQ(row["clock"], "gpu_span");
  EXPECT_NEAR(row["ratio"].get<double>(), 4, 0.01);
  EXPECT_NEAR(row["clock_mhz"].get<double>(), SimulatedDevice::kNominalHz / 1e6, 1e-3);
  const json& parts = row["decomposition"];
  EXPECT_NEAR(parts["kernel"].get<double>(), 4, 1e-9);
  EXPECT_NEAR(parts["host"].get<double>() * parts["launch_gap"].get<double>() * parts["kernel"].get<double>(),
              parts["wall"].get<double>(), 1e-9);
  EXPECT_EQ(row["decomposition_reason"], "");
  for (const auto& timing : result["timings"]) {
    EXPECT_EQ(timing["verdict"], "pass") << reason(timing);
    EXPECT_FALSE(timing["timer_limited"]);
    EXPECT_EQ(timing["sample_clocks_mhz"].size(), timing["samples_s"].size());
    EXPECT_GT(timing["in_place"]["wall_s"], timing["in_place"]["busy_s"]);
  }
}

TEST_F(DeviceTwins, EveryRowSatisfiesTheRecordsSchema) {
  Record record("bench", 1, "test");
  const json rows = timed();
  for (const auto& row : rows["timings"]) record.add("timings", row);
  for (const auto& row : rows["speedups"]) record.add("speedups", row);
  faults = {.device = {.clock_unknown = true}, .trace_refuses = true, .capture_refuses = true};
  optimized.answer = PlantedAnswer::kStops;
  const json spoilt = timed();
  for (const auto& row : spoilt["timings"]) record.add("timings", row);
  for (const auto& row : spoilt["speedups"]) record.add("speedups", row);
  json session = {{"null_test", null_test()}, {"dispatcher_ns_per_call", nullptr}, {"clock_resolution_ns", nullptr}};
  session["device"] = to_json(open_device_session(device->timer(), device->host(), 0.01));
  session["device"]["name"] = device->name();
  session["device"]["refused_ceilings"] = json::array({"gemm_bf16: planted"});
  record.set_session(session);
  for (const auto& work : device->ceiling_work(true))
    record.add("ceilings", to_json(measure_device_ceiling(work, device->timer(), device->host(), "simulated")));
  EXPECT_EQ(schema_breaches(record.json()), "");
}

TEST_F(DeviceTwins, AHostBoundBaselineShowsItsLaunchGaps) {
  baseline.warm_s = baseline.cold_s = 1e-6;  // shorter than its launch
  const json row = speedup();
  EXPECT_NEAR(row["decomposition"]["kernel"].get<double>(), 10e-6 / 50e-6, 1e-3);
  EXPECT_GT(row["decomposition"]["launch_gap"].get<double>(), 2.5);
  EXPECT_LT(row["ratio"].get<double>(), 0.3) << "held: the launches are not in the published ratio";
}

TEST_F(DeviceTwins, AGraphTakesTheLaunchGapsAway) {
  baseline.warm_s = baseline.cold_s = 1e-6;
  options.regime = Regime::kHot;
  const json timing = timed()["timings"][0];
  EXPECT_NEAR(timing["graph_replay_s"].get<double>(), 10e-6, 1e-6) << timing["graph_reason"];
  EXPECT_GT(timing["in_place"]["span_s"].get<double>(), 9 * kLaunch);
}

TEST_F(DeviceTwins, ARefusedCaptureIsAReasonOfOneLine) {
  faults.capture_refuses = true;
  const json timing = timed()["timings"][0];
  EXPECT_TRUE(timing["graph_replay_s"].is_null());
  EXPECT_NE(timing["graph_reason"].get<std::string>().find("refused"), std::string::npos);
  EXPECT_EQ(timing["graph_reason"].get<std::string>().find("stack trace"), std::string::npos);
}

TEST_F(DeviceTwins, AGraphThatHoldsNothingHasNoTime) {
  cost = {0, 50e12 * 40e-6};  // 40 us at the ceiling
  EXPECT_TRUE(timed()["timings"][1]["graph_replay_s"].is_number());
  faults.replay_does_nothing = true;
  const json timing = timed()["timings"][1];
  EXPECT_EQ(timing["verdict"], "pass") << reason(timing);
  EXPECT_TRUE(timing["graph_replay_s"].is_null());
  EXPECT_NE(timing["graph_reason"].get<std::string>().find("physical floor"), std::string::npos);
}

TEST_F(DeviceTwins, WithoutATraceTheHostFactorStaysAndTheRestIsNullWithAReason) {
  faults.trace_refuses = true;
  const json row = speedup();
  EXPECT_TRUE(row["decomposition"]["host"].is_number());
  EXPECT_TRUE(row["decomposition"]["kernel"].is_null());
  EXPECT_FALSE(row["decomposition_reason"].get<std::string>().empty());
  EXPECT_EQ(row["verdict"], "faster") << reason(row);
}

TEST_F(DeviceTwins, AScalarReadPublishesTheHostsClock) {
  baseline.reads_scalar = true;
  const json row = speedup();
  EXPECT_EQ(row["clock"], "host_wall");
  EXPECT_NE(row["clock_reason"].get<std::string>().find("scalar read"), std::string::npos);
}

TEST_F(DeviceTwins, AWaitThatNoCounterSeesIsFoundByTheHold) {
  optimized.waits_unseen = true;
  const json row = speedup();
  EXPECT_EQ(row["clock"], "host_wall");
  EXPECT_NE(row["clock_reason"].get<std::string>().find("no counter sees"), std::string::npos);
}

TEST_F(DeviceTwins, WithoutABlockingKernelTheHostsClockIsPublished) {
  faults.device.hold_does_nothing = true;
  EXPECT_EQ(speedup()["clock"], "host_wall");
}

TEST_F(DeviceTwins, RegimesAreMeasuredAndNamed) {
  elements = 4'000'000;  // 16 MB of 60 MB: eight copies exceed the cache twice
  for (const auto& [word, seconds] : {std::pair{"hot", 50e-6}, {"cold", 150e-6}, {"rotating", 150e-6}}) {
    regime = word;
    const json result = timed();
    EXPECT_EQ(result["speedups"][0]["regime"], word);
    EXPECT_EQ(result["timings"][1]["regime"], word);
    EXPECT_NEAR(result["timings"][1]["median_s"].get<double>(), seconds, 2e-6) << word;
  }
  options.regime = Regime::kHot;
  EXPECT_EQ(speedup()["regime"], "hot") << "asked for on the command line";
}

TEST_F(DeviceTwins, TooManyCopiesAreNotCalledRotating) {
  regime = "rotating";
  const json row = speedup();
  EXPECT_EQ(row["regime"], "hot");
  EXPECT_TRUE(says(row, "not rotating")) << reason(row);
}

TEST_F(DeviceTwins, AFlushThatDoesNotFlushLeavesNoVerdictOnColdTimes) {
  faults.device.flush_does_nothing = true;
  regime = "cold";
  EXPECT_TRUE(says(speedup(), "flush_ineffective"));
  regime = "hot";
  EXPECT_EQ(speedup()["verdict"], "faster");
}

TEST_F(DeviceTwins, AWindowNearTheTimersCostIsTimerLimited) {
  optimized.warm_s = optimized.cold_s = 5e-6;
  regime = "cold";
  const json result = timed();
  EXPECT_TRUE(result["timings"][1]["timer_limited"]);
  EXPECT_EQ(result["speedups"][0]["verdict"], "inconclusive");
  EXPECT_TRUE(says(result["speedups"][0], "timer_limited"));
  regime = "hot";  // many runs between one pair of marks
  EXPECT_FALSE(timed()["timings"][1]["timer_limited"]);
}

TEST_F(DeviceTwins, ATimeBelowThePhysicalFloorIsRejected) {
  cost = {0, 50e12 * 1e-3};  // a millisecond at the ceiling
  const json result = timed();
  EXPECT_EQ(result["timings"][1]["verdict"], "fail");
  EXPECT_TRUE(says(result["timings"][1], "physical floor"));
  EXPECT_EQ(result["speedups"][0]["verdict"], "inconclusive");
  EXPECT_TRUE(result["speedups"][0]["ratio"].is_null());
}

TEST_F(DeviceTwins, AStaleCeilingIsMeasuredAgainOnTheDevice) {
  cost = {0, 50e12 * 40e-6};  // the optimized variant reaches 80 % of the true rate
  ceilings = {{"cuda", "gemm_fp32", "FLOP/s", 1e12}};
  const json result = timed();
  EXPECT_EQ(result["timings"][1]["verdict"], "pass") << reason(result["timings"][1]);
  EXPECT_NEAR(result["timings"][1]["roofline_fraction"].get<double>(), 0.8, 0.02);
}

// Each planted wrong answer, and the rule that must break it.
const std::pair<PlantedAnswer, const char*> kWrongAnswers[] = {
    {PlantedAnswer::kTooLarge, "answer_before_timing"},
    {PlantedAnswer::kOfFirstInputs, "answer_before_timing"},
    {PlantedAnswer::kOfFirstContents, "answer_before_timing"},
    {PlantedAnswer::kChanges, "answer_changed_while_timed"},
    {PlantedAnswer::kStops, "answer_after_timing"}};

TEST_F(DeviceTwins, AWrongAnswerIsRejectedAndHasNoSpeedup) {
  for (const auto& [answer, rule] : kWrongAnswers) {
    optimized.answer = answer;
    const json result = timed();
    EXPECT_EQ(result["timings"][0]["verdict"], "pass") << rule << reason(result["timings"][0]);
    EXPECT_EQ(result["timings"][1]["verdict"], "rejected") << rule;
    EXPECT_EQ(reason(result["timings"][1]).rfind(rule, 0), 0u) << reason(result["timings"][1]);
    const json& row = result["speedups"][0];
    EXPECT_EQ(row["verdict"], "rejected");
    EXPECT_TRUE(says(row, rule)) << reason(row);
    EXPECT_TRUE(row["ratio"].is_null() && row["lower"].is_null() && row["decomposition"]["kernel"].is_null());
    EXPECT_TRUE(row["log_ratios"].empty());
  }
}

TEST_F(DeviceTwins, AWrongBaselineIsRejectedToo) {
  baseline.answer = PlantedAnswer::kStops;
  const json result = timed();
  EXPECT_EQ(result["timings"][0]["verdict"], "rejected");
  EXPECT_EQ(result["timings"][1]["verdict"], "pass") << reason(result["timings"][1]);
  EXPECT_EQ(result["speedups"][0]["verdict"], "rejected");
}

TEST_F(DeviceTwins, EveryRotatingCopyIsJudged) {
  elements = 4'000'000;
  regime = "rotating";
  EXPECT_EQ(timed()["timings"][1]["verdict"], "pass");
  optimized.answer = PlantedAnswer::kLaterCopies;
  EXPECT_EQ(timed()["timings"][1]["verdict"], "rejected");
}

TEST_F(DeviceTwins, WorkOnAnotherStreamIsFoundByTheTrace) {
  optimized.elsewhere_s = 500e-6;
  const json row = speedup();
  EXPECT_EQ(row["verdict"], "inconclusive");
  EXPECT_TRUE(says(row, "clocks disagree")) << reason(row);
}

TEST_F(DeviceTwins, AThrottledDeviceGivesNoVerdict) {
  baseline.warm_s = 200e-6;
  optimized.warm_s = 500e-6;
  clock = [](std::int64_t sample) { return sample % 2 ? 1.0 : 0.9; };
  const json row = speedup();
  EXPECT_EQ(row["verdict"], "inconclusive");
  EXPECT_TRUE(says(row, "2 % apart")) << reason(row);
}

TEST_F(DeviceTwins, NoObserverIsThereBeforeTheLastTimedPass) {
  timed();
  EXPECT_TRUE(device->observed);
  EXPECT_FALSE(device->marked_while_observed);
}

TEST_F(DeviceTwins, ASlowBaselineDoesNotHoldTheOtherPassesUp) {
  baseline = {.launches = 1, .warm_s = 2, .cold_s = 2, .reads_scalar = true};
  options.twin.seconds = 6;
  const json row = speedup();
  EXPECT_NEAR(row["decomposition"]["kernel"].get<double>(), 2 / 50e-6, 10);
  EXPECT_LT(device->device().elapsed_s(), 60);
}

TEST_F(DeviceTwins, AgainstItselfIsTheSame) {
  const json null = null_test();
  EXPECT_EQ(null["verdict"], "same") << null["reason"];
  EXPECT_EQ(null["cells"].size(), 1u);
  EXPECT_LT(null["noise_floor"].get<double>(), 0.01);
}

TEST_F(DeviceTwins, AnUnsteadyDeviceDoesNotPassTheNullTest) {
  clock = [](std::int64_t sample) { return 0.76 + 0.02 * static_cast<double>((sample * 7919) % 13); };
  EXPECT_NE(null_test()["verdict"], "same");
}

}  // namespace
}  // namespace twinbench
