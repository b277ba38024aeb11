// The A/A test: a quiet session, a session that differs from itself, and one that measured nothing.
#include "harness/timing/null_comparison.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "harness/timing/record.h"
#include "harness/timing/simulated_machine.h"

namespace twinbench {
namespace {

constexpr std::uint64_t kSeed = 99;

PairedOptions options() {
  PairedOptions options;
  options.clock_quality = ClockQuality{1e-9, 25e-9};
  return options;
}

// A side that is `slowdown` slower whenever it stands second in the comparison, as a broken harness would make it: it
// replays the order of an unbiased comparison with the same seed.
Side differs_from_itself(SimulatedMachine& machine, double slowdown) {
  auto calls = std::make_shared<std::size_t>(0);
  Side side;
  side.name = "biased";
  side.sample_seconds = [calls](std::int64_t) { return ++*calls, 0.01; };
  const PairedResult unbiased = measure_pair(side, side, options(), machine);
  const std::size_t before_pairs = *calls - 2 * unbiased.samples_a.size();
  std::string order;  // one letter a sample
  for (const char letter : unbiased.order)
    if (letter != ' ') order += letter;
  *calls = 0;
  side.sample_seconds = [=](std::int64_t) {
    const std::size_t sample = (*calls)++;
    const bool second = sample >= before_pairs && order[(sample - before_pairs) % order.size()] == 'B';
    return 0.01 * (1 + (second ? slowdown : 0));
  };
  return side;
}

TEST(NullTest, ADifferenceFromItselfVetoesEveryTimingGate) {
  SimulatedMachine machine(kSeed, {});
  const Side biased = differs_from_itself(machine, 0.10);
  const NullTest test = null_test({biased, machine.side("sound", 1e-3)}, options(), machine);
  EXPECT_EQ(test.verdict, TimeVerdict::kSlower) << test.reason;
  EXPECT_FALSE(test.timing_gates_may_fire());
  EXPECT_NE(test.reason.find("biased against itself"), std::string::npos) << test.reason;
  EXPECT_GT(test.noise_floor, 0.08);
}

TEST(NullTest, AQuietSessionLetsGatesFire) {
  SimulatedMachine machine(kSeed, {.deviation = 0.004});
  const NullTest test =
      null_test({machine.side("sem.cayley", 1e-4), machine.side("trainer2.loader", 1e-3)}, options(), machine);
  EXPECT_EQ(test.verdict, TimeVerdict::kSame) << test.reason << " seed " << kSeed;
  EXPECT_TRUE(test.timing_gates_may_fire());
  EXPECT_EQ(test.cells.size(), 2u);
  EXPECT_EQ(test.cells[1].cell, "trainer2.loader");
  EXPECT_GT(test.noise_floor, 0);
  EXPECT_LT(test.noise_floor, 0.01);
  EXPECT_EQ(test.effective_threshold(0.02), 0.02);
}

TEST(NullTest, ANoisySessionRaisesTheThresholdInsteadOfFiring) {
  SimulatedMachine machine(kSeed, {.deviation = 0.1});
  const NullTest test = null_test({machine.side("noisy", 1e-3)}, options(), machine);
  EXPECT_EQ(test.verdict, TimeVerdict::kInconclusive);
  EXPECT_GT(test.effective_threshold(0.02), 0.05);
}

TEST(NullTest, NoCellsIsNeverAPass) {
  SimulatedMachine machine(kSeed, {});
  const NullTest test = null_test({}, options(), machine);
  EXPECT_EQ(test.verdict, TimeVerdict::kInconclusive);
  EXPECT_FALSE(test.timing_gates_may_fire());
  EXPECT_TRUE(to_json(test)["noise_floor"].is_null());
}

TEST(NullTest, TheRecordHoldsVerdictFloorAndCells) {
  SimulatedMachine machine(kSeed, {.deviation = 0.004});
  const nlohmann::json json = to_json(null_test({machine.side("sem.cayley", 1e-4)}, options(), machine));
  EXPECT_EQ(json["verdict"], "same");
  EXPECT_EQ(json["cells"][0]["cell"], "sem.cayley");
  EXPECT_LE(json["cells"][0]["lower"].get<double>(), json["cells"][0]["ratio"].get<double>());
  EXPECT_EQ(json["pairs"], json["cells"][0]["n"]);
}

TEST(Record, SpeedupFieldsAreStrictJson) {
  SimulatedMachine machine(kSeed, {.deviation = 0.004});
  const PairedResult result = measure_pair(machine.side("a", 2e-4), machine.side("b", 1e-4), options(), machine);
  const nlohmann::json json = speedup_fields(result);
  EXPECT_EQ(json["verdict"], "faster");
  EXPECT_NEAR(json["ratio"].get<double>(), 2, 0.02);
  EXPECT_EQ(json["log_ratios"].size(), result.pairs);
  EXPECT_EQ(nlohmann::json::parse(json.dump()), json);
  const nlohmann::json nothing = speedup_fields(PairedResult{});
  EXPECT_TRUE(nothing["ratio"].is_null());
  EXPECT_TRUE(nothing["lower"].is_null());
}

TEST(Record, TimingFieldsSummariseEverySample) {
  const std::vector<double> samples = {4, 1, 3, 2, 5};
  const nlohmann::json json = timing_fields(samples);
  EXPECT_EQ(json["n"], 5);
  EXPECT_EQ(json["median_s"], 3.0);
  EXPECT_EQ(json["q1_s"], 2.0);
  EXPECT_EQ(json["q3_s"], 4.0);
  EXPECT_EQ(json["minimum_s"], 1.0);
  EXPECT_EQ(json["samples_s"].get<std::vector<double>>(), samples);
}

}  // namespace
}  // namespace twinbench
