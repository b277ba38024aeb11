// The kind stability passes a clean run and catches what makes a long one unstable, planted.
#include <gtest/gtest.h>

#include <limits>

#include "scenarios/runner/curve.h"
#include "scenarios/runner/fake_run.h"

namespace twinbench::fake {
namespace {

std::string stability(const std::string& lines, std::vector<std::string> criteria) {
  for (const char* always :
       {"measure: baseline.per_window.scalar_reads, at_least: 8", "measure: optimized.non_finite, equals: 0",
        "measure: optimized.growth.held_bytes, equals: 0", "measure: optimized.growth.dispatches, equals: 0"})
    criteria.push_back(always);
  return scenario("stability", "windows: 60\nbaseline_windows: 10\n" + lines, criteria);
}

const std::string kPlain =
    stability("bounded: [raw]\nwindows_of_epoch: 20",
              {"measure: optimized.last_over_first.loss, at_most: 0.9", "measure: optimized.jumps.loss, at_most: 2",
               "measure: optimized.largest.raw, at_most: 20", "measure: optimized.least.largest, at_least: 1",
               "measure: optimized.epoch_growth.dispatches, equals: 0", "measure: optimized.apart.loss, equals: 0",
               "measure: optimized.last_apart.loss, equals: 0"});

TEST(Stability, PassesARunThatStaysAsItIs) {
  const auto row = run(kPlain);
  EXPECT_EQ(verdict(row), "pass") << row.dump(1);
  EXPECT_EQ(row["variants"][0]["samples_s"].size(), 10u);
  EXPECT_EQ(row["variants"][1]["samples_s"].size(), 60u);
  EXPECT_EQ(row["variants"][1]["timelines"][1]["values"].size(), 60u);
}

TEST(Stability, CatchesWhatIsNotFiniteOnceAndSaysWhere) {
  const auto row = run(kPlain, {.drift = std::numeric_limits<double>::quiet_NaN(), .drift_from = 40});
  EXPECT_NE(verdict(row).find("optimized.non_finite = 0"), std::string::npos) << verdict(row);
  EXPECT_NE(row.dump().find("raw in window 41"), std::string::npos) << row.dump(1);
}

TEST(Stability, CatchesAJumpALossThatStandsStillAndOneThatGoesElsewhere) {
  EXPECT_NE(verdict(run(kPlain, {.drift = 3, .drift_from = 30})).find("optimized.jumps.loss"), std::string::npos);
  EXPECT_NE(verdict(run(kPlain, {.stands_still = true})).find("optimized.last_over_first.loss"), std::string::npos);
  const auto other = verdict(run(kPlain, {.drift = 0.01, .drift_from = 5}));
  for (const char* measure : {"optimized.apart.loss = 0", "optimized.last_apart.loss = 0"})
    EXPECT_NE(other.find(measure), std::string::npos) << other;
}

TEST(Stability, CatchesWhatGrowsTooLarge) {
  EXPECT_NE(verdict(run(kPlain, {.drift = 1})).find("optimized.largest.raw <= 20"), std::string::npos);
}

TEST(Stability, CatchesAWindowOrAnEpochThatCostsMore) {
  EXPECT_EQ(verdict(run(kPlain, {.leaks = true})), "optimized.growth.held_bytes = 0");
  const auto costly = verdict(run(kPlain, {.grows_dispatches = true}));
  for (const char* measure : {"optimized.growth.dispatches", "optimized.epoch_growth.dispatches"})
    EXPECT_NE(costly.find(measure), std::string::npos) << costly;
}

TEST(Stability, CatchesTimesThatDrift) {
  const auto text = stability("windows_of_epoch: 20", {"measure: optimized.slowest_window, at_most: 1.2",
                                                       "measure: optimized.epoch_time_spread, at_most: 0.1"});
  EXPECT_EQ(verdict(run(text)), "pass");
  EXPECT_EQ(verdict(run(text, {.drags = 0.002})), "pass");
  const auto slow = verdict(run(text, {.drags = 0.01}));
  for (const char* measure : {"optimized.slowest_window <= 1.2", "optimized.epoch_time_spread <= 0.1"})
    EXPECT_NE(slow.find(measure), std::string::npos) << slow;
}

TEST(Stability, ABaselineWithoutTheSinFails) {
  EXPECT_EQ(verdict(run(kPlain, {.baseline_is_clean = true})), "baseline.per_window.scalar_reads >= 8");
}

TEST(Stability, AStateTensorCanBeginLarger) {
  const auto scaled = [](const std::string& name) {
    return stability(
        "scaled: " + name + "\nscale: 100\nbounded: [raw]",
        {"measure: optimized.largest.raw, at_least: 87.5", "measure: optimized.largest.raw, at_most: 100"});
  };
  EXPECT_EQ(verdict(run(scaled("energy"))), "pass");
  EXPECT_THROW(read(scaled("nothing")), Error);
  EXPECT_THROW(run(scaled("enrgy")), Error);
}

TEST(Stability, UnderACapALeakEndsTheRun) {
  const auto text = stability("windows_of_memory: 3", {"measure: optimized.over_budget, equals: 0",
                                                       "measure: optimized.completed_windows, equals: 60"});
  EXPECT_EQ(verdict(run(text)), "pass");
  const auto row = run(text, {.leaks = true});
  for (const char* measure : {"optimized.over_budget = 0", "optimized.completed_windows = 60"})
    EXPECT_NE(verdict(row).find(measure), std::string::npos) << verdict(row);
  EXPECT_NE(row.dump().find("out_of_memory"), std::string::npos) << row.dump(1);
}

TEST(Stability, ACapInBytesIsThatMany) {
  const auto text = [](const std::string& bytes) {
    return stability("budget_bytes: " + bytes, {"measure: optimized.over_budget, equals: 0"});
  };
  EXPECT_EQ(verdict(run(text("4000"))), "pass");
  EXPECT_EQ(verdict(run(text("4000"), {.leaks = true})).substr(0, 25), "optimized.over_budget = 0");
  // Not even a window: nothing was looked at, and that is no run without a NaN.
  const auto none = verdict(run(text("8"), {.leaks = true}));
  for (const char* measure : {"optimized.over_budget = 0", "optimized.non_finite = 0"})
    EXPECT_NE(none.find(measure), std::string::npos) << none;
  EXPECT_THROW(read(text("4000\nwindows_of_memory: 2")), Error);
}

TEST(Stability, KeysThatSayNothingAreRefused) {
  for (const char* lines : {"windows_of_epoch: 30", "warm_up_windows: 9", "windows_of_memory: 10", "ends: 31",
                            "scale: 2", "scaled: energy"}) {
    try {
      read(stability(lines, {"measure: optimized.jumps.loss, at_most: 2"}));
      ADD_FAILURE() << lines;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kOutOfRange) << error.what();
    }
  }
}

TEST(Stability, WhatNoWindowMeasuresIsRefusedAtReading) {
  const struct {
    const char *lines, *criterion;
    ErrorKind kind;
    std::vector<std::string> message;
  } planted[] = {
      {"bounded: [energy, rwa]", "", ErrorKind::kUnknownName, {"bounded[1]", "'rwa'", "did you mean 'raw'"}},
      {"ends: 20",
       "measure: optimized.epoch_growth.dispatches, equals: 0",
       ErrorKind::kOutOfRange,
       {"criteria[0]", "optimized.epoch_growth.dispatches", "give windows_of_epoch"}},
      {"windows_of_epoch: 20",
       "measure: baseline.epoch_growth.dispatches, equals: 0",
       ErrorKind::kOutOfRange,
       {"criteria[0]", "give windows for 40 after warm-up, there are 8"}},
      {"windows_of_epoch: 20",
       "measure: optimized.epoch_growth.disptches, equals: 0",
       ErrorKind::kUnknownName,
       {"criteria[0]", "did you mean 'dispatches'"}},
      {"ends: 20",
       "measure: optimized.epoch_time_spread, at_most: 0.1",
       ErrorKind::kOutOfRange,
       {"criteria[0]", "give windows_of_epoch"}},
      {"warm_up_windows: 8",
       "measure: baseline.slowest_window, at_most: 1.2",
       ErrorKind::kOutOfRange,
       {"criteria[0]", "the first 3 windows after warm-up", "there are 2"}},
      {"ends: 20",
       "measure: optimized.rising_windows.held_byte, equals: 0",
       ErrorKind::kUnknownName,
       {"criteria[0]", "did you mean 'held_bytes'"}},
  };
  for (const auto& [lines, criterion, kind, message] : planted) {
    try {
      read(stability(lines, *criterion ? std::vector<std::string>{criterion} : std::vector<std::string>{}));
      ADD_FAILURE() << lines << " " << criterion;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind) << error.what();
      for (const auto& part : message)
        EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }
  EXPECT_NO_THROW(read(stability("bounded: [energy, raw]\nwindows_of_epoch: 20",
                                 {"measure: optimized.epoch_growth.held_bytes, equals: 0"})));
}

TEST(Stability, ACriterionIsGivenOnce) {
  EXPECT_THROW(read(stability("ends: 20", {"measure: optimized.non_finite, equals: 0"})), Error);
}

TEST(Curve, FallsByItsMediansAndJumpsByItsRunningChange) {
  EXPECT_DOUBLE_EQ(last_over_first({4, 4, 9, 3, 2, 2, 2}, 3), 0.5);
  EXPECT_DOUBLE_EQ(last_over_first({4, 2}, 20), 0.5);
  EXPECT_EQ(last_over_first({4, std::numeric_limits<double>::quiet_NaN()}, 1), 1e30);
  EXPECT_EQ(last_over_first({0, 1}, 1), 1e30);
  EXPECT_EQ(jumps({1, 2, 3, 4, 9, 10, 16}, 3, 5), 1);  // 5 is not beyond five times 1, 6 is
  EXPECT_EQ(jumps({1, 2, 3, 4, std::numeric_limits<double>::infinity(), 5}, 3, 5), 2);
  EXPECT_EQ(jumps({1, 100, 1}, 3, 5), 0);
}

}  // namespace
}  // namespace twinbench::fake
