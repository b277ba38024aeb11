// Every kind of experiment passes a clean run and catches the mistake it is for, planted in a fake training run.
#include <gtest/gtest.h>

#include "scenarios/runner/fake_run.h"
#include "src/registry.h"

namespace twinbench::fake {
namespace {

const std::string kSpeed =
    scenario("speed", "pairs: 8\nseconds: 0.2",
             {"measure: baseline.scalar_reads_per_item, at_least: 1", "measure: optimized.scalar_reads, equals: 0",
              "measure: optimized.dispatches_growth, equals: 0", "measure: parity.worst_ratio, at_most: 1",
              "measure: optimized.non_finite, equals: 0", "measure: speedup.lower, at_least: 1e-9"});

TEST(Speed, PassesACleanTwinAndNamesWhatIsPlanted) {
  const auto row = run(kSpeed);
  EXPECT_EQ(verdict(row), "pass") << row.dump(1);
  EXPECT_EQ(row["variants"].size(), 2u);
  EXPECT_NE(verdict(run(kSpeed, {.drift = 0.5})).find("parity.worst_ratio"), std::string::npos);
  EXPECT_NE(verdict(run(kSpeed, {.per_item = true})).find("optimized.scalar_reads"), std::string::npos);
  EXPECT_NE(verdict(run(kSpeed, {.baseline_is_clean = true})).find("baseline.scalar_reads_per_item"),
            std::string::npos);
}

TEST(Speed, ABaselineOfFewerItemsIsMarkedAndScaled) {
  const auto row =
      run(scenario("speed", "baseline_items: 2\npairs: 8\nseconds: 0.2",
                   {"measure: baseline.scalar_reads, equals: 2", "measure: optimized.non_finite, equals: 0",
                    "measure: parity.worst_ratio, at_most: 1", "measure: speedup.lower, at_least: 1e-9"}));
  EXPECT_EQ(verdict(row), "pass");
  EXPECT_EQ(row["variants"][0]["extrapolated"], true);
  EXPECT_EQ(row["variants"][0]["measured_flows"], 2);
  EXPECT_EQ(row["variants"][1]["extrapolated"], false);
}

// The "switch" of the fake run changes its results by half at every step.
const std::string kSwitch = scenario(
    "speed", "switch: mistaken\npairs: 8\nseconds: 2",
    {"measure: baseline.reading.largest, at_least: 1.8", "measure: optimized.of_baseline.largest, at_most: 1.01",
     "measure: optimized.switch.mismatched_bits, equals: 0",
     "measure: optimized.switch.time_ratio_upper, at_most: 1000", "measure: optimized.non_finite, equals: 0",
     "measure: parity.worst_ratio, at_most: 1", "measure: speedup.lower, at_least: 1e-9"});

TEST(Speed, TimesTheOptimizedVariantAgainstItsOwnSwitch) {
  const auto row = run(kSwitch, {.harmless_mistake = true});
  EXPECT_EQ(verdict(row), "pass") << row.dump(1);
  EXPECT_GT(row["configuration"]["switched"]["upper"], row["configuration"]["switched"]["lower"]);
  EXPECT_EQ(verdict(run(kSwitch)), "optimized.switch.mismatched_bits = 0");
  EXPECT_NE(verdict(run(kSwitch, {.drift = 0.5, .harmless_mistake = true})).find("optimized.of_baseline.largest"),
            std::string::npos);
  auto fast = kSwitch;
  fast.replace(fast.find("at_most: 1000"), 13, "at_most: 1e-3");
  EXPECT_NE(verdict(run(fast, {.harmless_mistake = true})).find("optimized.switch.time_ratio_upper"),
            std::string::npos);
}

TEST(Speed, ASwitchThatIsNotThereIsNamed) {
  auto text = kSwitch;
  text.replace(text.find("switch: mistaken"), 16, "switch: mistakn");
  try {
    run(text);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUnknownName);
    EXPECT_NE(error.remedy().find("'mistaken'"), std::string::npos) << error.what();
  }
}

TEST(Speed, ASwitchIsAnOptionThatTheFileHasTheOtherWay) {
  const auto remedy = [](const std::string& from, const std::string& to) {
    auto text = kSwitch;
    try {
      run(text.replace(text.find(from), from.size(), to));
    } catch (const Error& error) {
      return error.remedy();
    }
    return std::string("no error");
  };
  EXPECT_NE(remedy("switch: mistaken", "switch: items").find("it is a size"), std::string::npos);
  EXPECT_NE(remedy("sizes:", "options: {mistaken: 1}\nsizes:").find("it is so already"), std::string::npos);
}

TEST(Speed, IsToldByTheItemsOfAStep) {
  const auto row =
      run(scenario("speed", "baseline_items: 4\npairs: 8\nseconds: 0.2",
                   {"measure: baseline.scalar_reads, at_least: 1", "measure: optimized.non_finite, equals: 0",
                    "measure: parity.worst_ratio, at_most: 1", "measure: speedup.lower, at_least: 1e-9"}),
          {.items_of_step = 4});
  EXPECT_FALSE(row["speedup"]["extrapolated"]) << "windows of four, of four items and of eight";
  EXPECT_EQ(row["variants"][1]["measured_flows"], 4);
}

const std::string kSweep = scenario(
    "sweep", "over: items\nvalues: [8, 16, 32]",
    {"measure: baseline.exponent.scalar_reads, at_least: 0.99", "measure: optimized.exponent.scalar_reads, equals: 0",
     "measure: optimized.largest.scalar_reads, equals: 0", "measure: parity.worst_ratio, at_most: 1"});

TEST(Sweep, TellsALawFromAConstant) {
  EXPECT_EQ(verdict(run(kSweep)), "pass");
  EXPECT_NE(verdict(run(kSweep, {.per_item = true})).find("optimized.exponent.scalar_reads"), std::string::npos);
  EXPECT_NE(verdict(run(kSweep, {.baseline_is_clean = true})).find("baseline.exponent.scalar_reads"),
            std::string::npos);
  EXPECT_NE(verdict(run(kSweep, {.drift = 0.5})).find("parity.worst_ratio"), std::string::npos);
}

TEST(Sweep, AValueOfZeroIsAnEdgeAndNoPointOfTheLaw) {
  const auto with_first = [](const std::string& limit) {
    auto text = kSweep;
    text.replace(text.find("[8, 16, 32]"), 11, "[0, 8, 16, 32]");
    return text + "  - {measure: baseline.first.scalar_reads, " + limit +
           ", why: it is so}\n  - {measure: optimized.run.largest, at_least: 4.8, why: 31 eighths and 1}\n";
  };
  EXPECT_EQ(verdict(run(with_first("equals: 0"))), "pass");
  EXPECT_EQ(verdict(run(with_first("at_least: 8"))), "baseline.first.scalar_reads >= 8");
}

TEST(Sweep, TellsATimeThatFallsFromOneThatFollows) {
  const auto row = run(scenario(
      "sweep", "over: items\nvalues: [200, 2000, 20000]\nrepeats: 5",
      {"measure: baseline.exponent.seconds, at_least: 0.5", "measure: optimized.exponent.seconds, at_most: 0.9",
       "measure: last.time_ratio, at_most: 0.5", "measure: parity.worst_ratio, at_most: 1"}));
  EXPECT_EQ(verdict(row), "pass") << row.dump(1);
  EXPECT_NE(verdict(run(scenario("sweep", "over: items\nvalues: [200, 2000, 20000]\nrepeats: 5",
                                 {"measure: baseline.exponent.seconds, at_most: 0.1",
                                  "measure: optimized.exponent.scalar_reads, equals: 0",
                                  "measure: parity.worst_ratio, at_most: 1"})))
                .find("baseline.exponent.seconds"),
            std::string::npos);
}

// The "rule" of the fake run: half of the items.
const std::string kClaim =
    scenario("claim_check", "over: items\nvalues: [8, 16]\noutput: raw\nwithout_rule: items\ndocumented: 2",
             {"measure: baseline.smallest, at_least: 1", "measure: claim.first_ratio, at_least: 0.001",
              "measure: optimized.largest, at_most: 100", "measure: parity.worst_ratio, at_most: 1"});

TEST(ClaimCheck, RecomputesWhatADocumentClaims) {
  const auto row = run(kClaim);
  EXPECT_EQ(verdict(row), "pass") << row.dump(1);
  // energy = 0.125 i + 1 after a step: the one item without the "rule" is 1, the eight with it are 11.5.
  auto exact = kClaim;
  exact.replace(exact.find("at_least: 0.001"), 15, "at_least: 0.087");
  EXPECT_EQ(verdict(run(exact)), "claim.first_ratio >= 0.087");
  EXPECT_NE(verdict(run(kClaim, {.drift = 1000})).find("optimized.largest"), std::string::npos);
  EXPECT_NE(verdict(run(kClaim, {.drift = 0.5})).find("parity.worst_ratio"), std::string::npos);
}

TEST(ClaimCheck, RefusesWhatTheRunDoesNotHave) {
  for (const auto& [from, to] : {std::pair{"over: items", "over: itms"},
                                 {"without_rule: items", "without_rule: itms"},
                                 {"output: raw", "output: row"}}) {
    auto text = kClaim;
    text.replace(text.find(from), std::string(from).size(), to);
    try {
      run(text);
      ADD_FAILURE() << to;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUnknownName);
      EXPECT_NE(error.remedy().find("did you mean"), std::string::npos) << error.what();
    }
  }
}

const std::string kGrowth =
    scenario("growth", "windows: 6\nsteps_per_window: 3\nwarm_up_windows: 2",
             {"measure: baseline.per_window.scalar_reads, at_least: 1",
              "measure: optimized.growth.held_bytes, equals: 0", "measure: optimized.growth.dispatches, equals: 0"});

TEST(Growth, CatchesALeakAndAGrowingStep) {
  EXPECT_EQ(verdict(run(kGrowth)), "pass");
  EXPECT_EQ(verdict(run(kGrowth, {.leaks = true})), "optimized.growth.held_bytes = 0");
  EXPECT_EQ(verdict(run(kGrowth, {.grows_dispatches = true})), "optimized.growth.dispatches = 0");
  EXPECT_NE(verdict(run(kGrowth, {.baseline_is_clean = true})).find("baseline.per_window"), std::string::npos);
}

const std::string kFault = scenario(
    "fault", "plant: energy\nvalue: nan\nitems: [2, 5]\nat_step: 1\nsteps: 2",
    {"measure: baseline.non_finite.raw, equals: 2", "measure: optimized.non_finite.energy, equals: 0",
     "measure: optimized.non_finite_at_end.energy, equals: 0", "measure: optimized.changed_elsewhere, equals: 0"});

TEST(Fault, CatchesPoisonThatSpreadsOrStays) {
  EXPECT_EQ(verdict(run(kFault)), "pass");
  EXPECT_EQ(verdict(run(kFault, {.spreads = true})), "optimized.changed_elsewhere = 0");
  EXPECT_NE(verdict(run(kFault, {.passes_poison_on = true})).find("optimized.non_finite_at_end.energy"),
            std::string::npos);
}

TEST(Fault, ComparesWhatItIsTold) {
  auto text = kFault;
  text.replace(text.find("steps: 2"), 8, "steps: 2\ncompared: [energy]");
  EXPECT_EQ(verdict(run(text, {.spreads = true})), "optimized.changed_elsewhere = 0");
  text.replace(text.find("[energy]"), 8, "[velocity]");  // what the neighbour's poison never reaches
  EXPECT_EQ(verdict(run(text, {.spreads = true})), "pass");
}

// The fake run heals its energies by a step; what a step of it moves are all energies and all velocities.
TEST(Fault, ARunThatRejoinsIsComparedFromThere) {
  auto text = kFault;
  text.replace(text.find("steps: 2"), 8, "steps: 3\nrejoins: 1");
  text += "  - {measure: optimized.moved.energy, equals: 8, why: it is so}\n";
  EXPECT_EQ(verdict(run(text)), "pass");
  EXPECT_EQ(verdict(run(text, {.spreads = true})), "pass");  // in the step that nobody compares
  EXPECT_EQ(verdict(run(text, {.forgets_velocity = true})), "pass");
  const auto poisoned = verdict(run(text, {.passes_poison_on = true}));  // NaN and NaN are the same bits
  for (const char* measure : {"optimized.non_finite_at_end.energy = 0", "optimized.moved.energy = 8"})
    EXPECT_NE(poisoned.find(measure), std::string::npos) << poisoned;
  text.replace(text.find("steps: 3"), 8, "steps: 1");
  EXPECT_THROW(read(text), Error);
}

TEST(Fault, RefusesAPlaceThatIsNotThere) {
  const auto of = [](const std::string& plant, const std::string& items) {
    auto text = kFault;
    text.replace(text.find("plant: energy"), 13, "plant: " + plant);
    return text.replace(text.find("[2, 5]"), 6, items);
  };
  EXPECT_THROW(run(of("enrgy", "[2]")), Error);
  try {
    run(of("energy", "[8]"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kOutOfRange);
    EXPECT_NE(error.field().find(": items"), std::string::npos);
  }
}

const std::string kCurves =
    scenario("curve_parity", "steps: 6\ncurves: [energy]\nrelative: 1.0e-3\nabsolute: 1.0e-4",
             {"measure: baseline.travel, at_least: 10", "measure: baseline.oracle_ratio, at_most: 1",
              "measure: optimized.worst_ratio, at_most: 1"});

TEST(CurveParity, CatchesADivergenceThatBeginsLate) {
  EXPECT_EQ(verdict(run(kCurves)), "pass");
  EXPECT_EQ(verdict(run(kCurves, {.drift = 0.05, .drift_from = 4})), "optimized.worst_ratio <= 1");
}

TEST(CurveParity, CurvesThatStandStillProveNothing) {
  EXPECT_EQ(verdict(run(kCurves, {.stands_still = true})), "baseline.travel >= 10");
}

TEST(CurveParity, TeacherForcedStepsDoNotAddUp) {
  auto forced = kCurves;
  forced.replace(forced.find("steps: 6"), 8, "steps: 6\nmode: teacher_forced");
  const Plan small{.drift = 0.001};  // below the tolerance in one step, beyond it in six
  EXPECT_EQ(verdict(run(kCurves, small)), "optimized.worst_ratio <= 1");
  EXPECT_EQ(verdict(run(forced, small)), "pass");
}

// Of 8 items, so that two are the quarter that may be.
TEST(CurveParity, WhatCloseDecisionsMayChangeIsSetAsideInModesThatRound) {
  auto forced = kCurves;
  forced.replace(forced.find("steps: 6"), 8, "steps: 6\nmode: teacher_forced");
  EXPECT_EQ(verdict(run(forced, {.close = 2})), "optimized.worst_ratio <= 1") << "in fp32 nothing is";
  forced.replace(forced.find("dtype: fp32"), 11, "dtype: bf16");
  try {
    run(forced);
    FAIL() << "no limit on it";
  } catch (const Error& error) {
    EXPECT_NE(error.remedy().find("0.25 at most"), std::string::npos) << error.what();
  }
  forced += "  - {measure: oracle.set_aside, at_most: 0.25, why: it is so}\n";
  EXPECT_EQ(verdict(run(forced)), "pass");
  EXPECT_EQ(verdict(run(forced, {.close = 2})), "pass");
  EXPECT_EQ(verdict(run(forced, {.close = 3})), "oracle.set_aside <= 0.25");
  EXPECT_EQ(verdict(run(forced, {.close = 2, .decides_wrongly = true})), "optimized.worst_ratio <= 1");
  auto free = forced;
  free.replace(free.find("mode: teacher_forced"), 20, "mode: free");
  free.resize(free.find("  - {measure: oracle.set_aside"));
  EXPECT_EQ(verdict(run(free, {.close = 2})), "optimized.worst_ratio <= 1");
}

TEST(CurveParity, OutputsThatAreToDifferAreHeldApart) {
  auto text = kCurves;
  const auto told = [&](const std::string& apart, const std::string& limit) {
    auto changed = text;
    changed.replace(changed.find("curves:"), 7, "apart: [" + apart + "]\ncurves:");
    changed += "  - {measure: oracle.least_distance, " + limit + ", why: it is so}\n";
    return changed;
  };
  // The state beside itself: raw is what energy becomes in the same step.
  EXPECT_EQ(verdict(run(told("raw, energy", "at_least: 1e-3"))), "oracle.least_distance >= 0.001");
  EXPECT_EQ(verdict(run(told("raw, energy", "at_most: 1e-9"))), "pass");
  EXPECT_THROW(run(told("raw", "at_least: 1e-3")), Error);
}

TEST(CurveParity, AnUnknownCurveNamesTheNearest) {
  auto text = kCurves;
  text.replace(text.find("[energy]"), 8, "[enrgy]");
  try {
    run(text);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUnknownName);
    EXPECT_NE(error.remedy().find("'energy'"), std::string::npos);
  }
}

const std::string kMutation = scenario(
    "mutation", "mistake: mistaken\nover: items\nvalues: [4, 8]",
    {"measure: baseline.rejected, equals: 2", "measure: baseline.breaks_rules, equals: 2",
     "measure: baseline.smallest_error.energy, at_least: 0.49", "measure: baseline.largest_error.energy, at_most: 0.51",
     "measure: baseline.reading.largest.at_4, at_most: 2.1", "measure: baseline.reading.largest.at_8, at_least: 2.8",
     "measure: baseline.least_growth.largest, at_least: 1.3", "measure: optimized.worst_ratio, at_most: 1",
     "measure: clean.breaks_rules, equals: 0"});

TEST(Mutation, AMistakeThatIsRejectedPassesAndOneThatIsNotFails) {
  const auto row = run(kMutation);
  EXPECT_EQ(verdict(row), "pass") << row.dump(1);
  EXPECT_EQ(row["configuration"]["broken_rules"],
            "items 4: the sum is conserved: it is not; items 8: the sum is conserved: it is not");
  const auto unseen = verdict(run(kMutation, {.harmless_mistake = true}));
  for (const char* measure : {"baseline.rejected", "baseline.breaks_rules", "baseline.smallest_error.energy"})
    EXPECT_NE(unseen.find(measure), std::string::npos) << unseen;
}

// The rejection alone says only that something is wrong.
TEST(Mutation, AnotherMistakeIsNotTheDocumentedOne) {
  const auto other = verdict(run(kMutation, {.another_mistake = true}));
  EXPECT_EQ(other.find("baseline.rejected"), std::string::npos) << other;
  for (const char* measure : {"baseline.reading.largest.at_4", "baseline.least_growth.largest"})
    EXPECT_NE(other.find(measure), std::string::npos) << other;
}

TEST(Mutation, ASizeThatIsNotToldFromBothSidesIsRefused) {
  auto text = kMutation;
  const std::string above = "measure: baseline.largest_error.energy, at_most: 0.51";
  text.replace(text.find(above), above.size(), "measure: baseline.largest_error.energy, at_least: 0.49");
  try {
    run(text);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kOutOfRange);
    EXPECT_NE(std::string(error.what()).find("from both sides"), std::string::npos) << error.what();
  }
}

TEST(Mutation, WhatIsWrongWithoutItFails) {
  EXPECT_EQ(verdict(run(kMutation, {.drift = 0.5})), "optimized.worst_ratio <= 1");
  EXPECT_EQ(verdict(run(kMutation, {.breaks_rule = true})), "clean.breaks_rules = 0");
}

TEST(Mutation, ASwitchThatIsNotThereIsNamed) {
  auto text = kMutation;
  text.replace(text.find("mistake: mistaken"), 17, "mistake: mistakn");
  try {
    run(text);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUnknownName);
    EXPECT_NE(error.remedy().find("'mistaken'"), std::string::npos) << error.what();
  }
}

const std::string kResume =
    scenario("resume", "steps_before: 3\nsteps_after: 2\nforget: energy",
             {"measure: baseline.mismatches, equals: 0", "measure: baseline.mismatches_when_forgetting, at_least: 1",
              "measure: optimized.mismatches, equals: 0"});

TEST(Resume, CatchesAStateThatIsNotAll) {
  EXPECT_EQ(verdict(run(kResume)), "pass");
  EXPECT_NE(verdict(run(kResume, {.forgets_velocity = true})).find("optimized.mismatches = 0"), std::string::npos);
}

TEST(Resume, CatchesARunThatDependsOnItsHistory) {
  // The drift begins at the fourth step of a run, so the resumed one has not reached it.
  EXPECT_EQ(verdict(run(kResume, {.drift = 0.5, .drift_from = 3})), "optimized.mismatches = 0");
}

TEST(Criteria, NothingJudgedIsASkipAndNeverAPass) {
  const auto config = read(kResume);
  Findings nothing;
  for (const auto& criterion : config.criteria) nothing.measures[criterion.measure] = {std::nullopt, "not here"};
  EXPECT_EQ(judged(config, nothing, c10::Device(c10::DeviceType::CPU))["verdict"], "skip");
}

}  // namespace
}  // namespace twinbench::fake
