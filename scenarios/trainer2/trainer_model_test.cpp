// The trainer's windows against the specification's golden runs, and what a field that is not finite leaves behind.
#include "scenarios/trainer2/trainer_model.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "src/registry.h"

namespace twinbench::trainer2 {
namespace {

// Preset ci-tiny.
ScenarioConfig tiny() {
  ScenarioConfig config;
  config.name = "tiny";
  config.seed = 42;
  config.sizes = {{"batch", 2},     {"tokens", 4}, {"width", 8},    {"hidden", 16},    {"vocabulary", 32},
                  {"axes", 4},      {"planes", 3}, {"capacity", 6}, {"grid_width", 4}, {"grid_height", 4},
                  {"dimension", 4}, {"steps", 4},  {"sequences", 8}};
  config.options = {{"symplectic_dt", 0.005}, {"retrieval_beta", 5}, {"update_rate", 10}};
  return config;
}

struct Way {
  Variant variant;
  Dtype dtype;
  Device device;
};
const Way kWays[] = {{Variant::kBaseline, Dtype::kFp64, Device()},
                     {Variant::kBaseline, Dtype::kFp32, Device()},
                     {Variant::kOptimized, Dtype::kFp32, Device()},
                     {Variant::kOptimized, Dtype::kFp32, Device::simt()}};

std::unique_ptr<TrainingRun> run_of(const ScenarioConfig& config, const Way& way) {
  return make_trainer_run(config, {way.variant, way.dtype, way.device, 0},
                          trainer_start(config).placed(way.dtype, way.device));
}

// The first values of a tensor, or of its row `row`.
void expect(const at::Tensor& tensor, const std::vector<double>& values, double tolerance, const char* what) {
  const at::Tensor given = tensor.to(at::kDouble).contiguous().view({-1});
  ASSERT_GE(given.numel(), static_cast<std::int64_t>(values.size())) << what;
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(given[static_cast<std::int64_t>(i)].item<double>(), values[i], tolerance) << what << " " << i;
}

TEST(TrainerStart, HasTheSpecificationsFirstValues) {
  const TrainerStart start = trainer_start(tiny());
  expect(start.embedding, {-1.593508363, -0.949663401, -1.532887340, -1.653086901}, 1e-9, "E");
  expect(start.embedding[31][7], {0.864281178}, 1e-9, "E[31,7]");
  expect(start.into_hidden, {0.019676732, 0.535210550, -0.249683812}, 1e-9, "W_in");
  expect(start.from_field, {-0.167040303, -0.390435278, 0.299120545}, 1e-9, "W_c");
  expect(start.from_hidden, {-0.365126252, -0.030914340, 0.199243471}, 1e-9, "W_out");
  expect(at::view_as_real(start.field), {0.300057471, 1.247905254, 0.210287020, 1.330562115}, 1e-9, "T");
  expect(start.ids, {12, 0, 14, 26, 1, 21, 13, 22}, 0, "ids");
}

struct Window {
  double lior_free, lior_nudged, curvature, length;
  std::vector<double> metric, theta;
  std::int64_t filled, pointer;
};
// G1, default modes.
const Window kGolden[] = {{1.415564730,
                           1.364489709,
                           0.918339412,
                           1.541439593,
                           {0.998910817, 0.574786560, 0.920379039, 0.995173391},
                           {-0.004587832, 0.000324255, 0.008976051},
                           2,
                           2},
                          {1.134218150,
                           1.091905974,
                           0.918333073,
                           1.235083636,
                           {0.997194699, 0.237386170, 0.858732969, 0.972814206},
                           {-0.013795282, 0.007435013, -0.007722811},
                           4,
                           4},
                          {0.923870444,
                           0.931835599,
                           0.918319488,
                           1.006044690,
                           {0.998455105, 0.270208995, 0.881977387, 0.995138102},
                           {-0.013489176, 0.007280408, -0.008271172},
                           6,
                           0},
                          {0.802049089,
                           0.765472085,
                           0.918298658,
                           0.873407668,
                           {0.904142330, 0.125865932, 0.881028701, 0.868972600},
                           {-0.014979906, 0.009340332, -0.012281597},
                           6,
                           2},
                          {0.847691622,
                           0.817052590,
                           0.918270583,
                           0.923139255,
                           {0.903818578, 0.01, 0.830751314, 0.865853617},
                           {-0.017732068, 0.009534848, -0.006897017},
                           6,
                           4},
                          {0.599175756,
                           0.574224130,
                           0.918235264,
                           0.652529672,
                           {0.902397713, 0.01, 0.796669300, 0.853061292},
                           {-0.023161731, 0.013728084, -0.016744391},
                           6,
                           0}};

TEST(TrainerRun, GivesTheGoldenRunInEveryVariant) {
  for (const Way& way : kWays) {
    SCOPED_TRACE(to_string(way.variant) + " " + to_string(way.dtype) + " " + to_string(way.device));
    const auto run = run_of(tiny(), way);
    for (const Window& window : kGolden) {
      run->step();
      const NamedTensors all = run->outputs(), state = run->state();
      expect(all["lior_free"], {window.lior_free}, 5e-6, "lior_free");
      expect(all["lior_nudged"], {window.lior_nudged}, 5e-6, "lior_nudged");
      expect(all["curvature"], {window.curvature}, 5e-6, "curvature");
      expect(all["length"], {window.length}, 5e-6, "length");
      expect(all["metric"], window.metric, 2e-5, "metric");
      expect(all["theta"], window.theta, 1e-6, "theta");
      EXPECT_EQ(state["filled"].item<std::int64_t>(), window.filled);
      EXPECT_EQ(state["pointer"].item<std::int64_t>(), window.pointer);
      if (&window != kGolden) continue;
      expect(
          all["nudge"],
          {-0.008623388, 0.065248684, 0.017891862, 0.087552908, -0.069248015, 0.130957424, -0.011606221, -0.009916996},
          5e-6, "nudge");
      expect(all["act_last_free"], {0.608056933, 0.110137026, 0.913007986, 0.335570128}, 5e-6, "act_last");
      expect(all["act_mean_free"], {0.608056941, 0.110137240, 0.913007939, 0.335570799}, 5e-6, "act_mean");
      expect(state["bank_coordinates"], {-0.393418580, 0.616842794, 0.786927797, -0.383909044}, 5e-6, "bank row 0");
    }
    const NamedTensors state = run->state();
    EXPECT_NEAR(at::linalg_vector_norm(state["bank_coordinates"]).item<double>(), 3.579627805, 5e-5);
    EXPECT_NEAR(at::linalg_vector_norm(at::view_as_real(state["field"])).item<double>(), 16.396445736, 5e-5);
    EXPECT_NEAR(at::linalg_vector_norm(at::view_as_real(state["momentum"])).item<double>(), 4.373477410e-2, 5e-6);
  }
}

// n > d: coordinates beyond a state's width are zero.
TEST(TrainerRun, HasZerosOnAxesThatAStateDoesNotReach) {
  ScenarioConfig config = tiny();
  config.sizes["width"] = 3;
  config.sizes["axes"] = 5;
  config.sizes["planes"] = 4;
  const auto oracle = run_of(config, kWays[0]);
  for (int window = 0; window < 3; ++window) oracle->step();
  for (const Way& way : kWays) {
    SCOPED_TRACE(to_string(way.variant) + " " + to_string(way.dtype) + " " + to_string(way.device));
    const auto run = run_of(config, way);
    for (int window = 0; window < 3; ++window) run->step();
    const NamedTensors all = run->outputs(), right = oracle->outputs();
    for (const auto& [name, tensor] : all)
      EXPECT_TRUE(at::allclose(tensor.to(at::kDouble), right[name], 1e-5, 2e-5)) << name;
    EXPECT_EQ(at::count_nonzero(run->state()["bank_coordinates"].narrow(1, 3, 2)).item<std::int64_t>(), 0);
    EXPECT_GT(at::count_nonzero(run->state()["bank_coordinates"]).item<std::int64_t>(), 0);
  }
}

// G7: one element of the field is NaN. Every window is refused, after three of them everything is frozen.
TEST(TrainerRun, FreezesOnAFieldThatIsNotFinite) {
  for (const Way& way : kWays) {
    SCOPED_TRACE(to_string(way.variant) + " " + to_string(way.dtype) + " " + to_string(way.device));
    const auto run = run_of(tiny(), way);
    at::Tensor field = run->state()["field"];
    field[0][0][1][2] = NAN;
    run->set_state({{"field", field}});
    for (int window = 0; window < 5; ++window) run->step();
    const NamedTensors state = run->state();
    EXPECT_TRUE(at::equal(state["rejects"].cpu(), at::tensor({3, 3, 1}, at::kLong)));
    EXPECT_EQ(state["filled"].item<std::int64_t>(), 0);
    expect(state["metric"], {1, 1, 1, 1}, 0, "metric");
    expect(state["theta"], {0, 0, 0}, 0, "theta");
    EXPECT_EQ(at::isnan(at::abs(state["field"])).sum().item<std::int64_t>(), 16);
  }
}

// S23's figures at parity-small with steps of 0.5: how far mean and last retrieval lie apart, by window and phase.
TEST(TrainerRun, MeanAndLastRetrievalDifferAsDocumentedWhereStepsAreLong) {
  ScenarioConfig config = tiny();
  config.sizes = {{"batch", 8},      {"tokens", 32}, {"width", 64},     {"hidden", 128},   {"vocabulary", 512},
                  {"axes", 8},       {"planes", 6},  {"capacity", 256}, {"grid_width", 8}, {"grid_height", 8},
                  {"dimension", 16}, {"steps", 64},  {"sequences", 160}};
  config.options["symplectic_dt"] = 0.5;
  const auto run = run_of(config, kWays[2]);
  const double documented[] = {0.780, 1.204, 0.0125, 0.0532};
  for (int window = 0; window < 2; ++window) {
    run->step();
    const NamedTensors all = run->outputs();
    for (int nudged = 0; nudged < 2; ++nudged) {
      const std::string phase = nudged ? "nudged" : "free";
      const double apart = at::max(at::abs(at::sub(all["act_mean_" + phase], all["act_last_" + phase]))).item<double>();
      EXPECT_NEAR(apart, documented[2 * window + nudged], 6e-4) << "window " << window << " " << phase;
    }
  }
}

}  // namespace
}  // namespace twinbench::trainer2
