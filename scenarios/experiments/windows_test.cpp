// Accumulation, memory budget and data parallel pass a clean run and catch the mistake they are for, planted.
#include <gtest/gtest.h>

#include <chrono>

#include "scenarios/runner/fake_windows.h"

namespace twinbench::fake {
namespace {

const std::string kAccumulation = window_scenario(
    "accumulation", "micro_batch_rows: [4, 3, 1]\nwindows: 2\nrelative: 1.0e-4",
    {"measure: baseline.gradient_ratio, at_most: 1", "measure: baseline.peak_growth, at_least: 1",
     "measure: optimized.gradient_ratio, at_most: 1", "measure: optimized.parameter_ratio, at_most: 1",
     "measure: optimized.oracle_ratio, at_most: 1", "measure: optimized.peak_growth, equals: 0",
     "measure: optimized.gradient_sum, at_least: 0.01", "measure: optimized.micro_growth.dispatches, equals: 0"});

TEST(Accumulation, PassesAWindowThatIsOneGradientHoweverCut) {
  const auto row = run_windows(kAccumulation);
  EXPECT_EQ(verdict(row), "pass") << row.dump(1);
}

TEST(Accumulation, CatchesSummedInsteadOfAveraged) {
  EXPECT_NE(verdict(run_windows(kAccumulation, {.own_rows = true})).find("optimized.gradient_ratio"),
            std::string::npos);
}

TEST(Accumulation, CatchesALostMicroBatch) {
  EXPECT_NE(verdict(run_windows(kAccumulation, {.forgets_first = true})).find("optimized.parameter_ratio"),
            std::string::npos);
}

TEST(Accumulation, CatchesMemoryKeptAcrossMicroBatches) {
  EXPECT_EQ(verdict(run_windows(kAccumulation, {.keeps_tape = true})), "optimized.peak_growth = 0");
}

TEST(Accumulation, CatchesAMicroBatchThatCostsMoreThanTheLast) {
  EXPECT_EQ(verdict(run_windows(kAccumulation, {.grows_dispatches = true})), "optimized.micro_growth.dispatches = 0");
}

TEST(Accumulation, ABaselineWithoutTheSinFails) {
  EXPECT_EQ(verdict(run_windows(kAccumulation, {.baseline_is_clean = true})), "baseline.peak_growth >= 1");
}

TEST(Accumulation, RefusesAMicroBatchThatIsNone) {
  auto text = kAccumulation;
  text.replace(text.find("[4, 3, 1]"), 9, "[8]");
  try {
    run_windows(text);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kOutOfRange);
    EXPECT_NE(error.field().find("micro_batch_rows"), std::string::npos);
  }
}

// Of micro-batches of 2 rows of 8: a tape is 8000 bytes, four make a window.
std::string budget(const std::string& lines) {
  return window_scenario("memory_budget", "steps: 12\nmicro_batch_rows: 2\n" + lines,
                         {"measure: baseline.over_budget, equals: 1", "measure: baseline.failed_at_step, equals: 2",
                          "measure: optimized.over_budget, equals: 0", "measure: optimized.completed_steps, equals: 12",
                          "measure: optimized.slope_bytes, equals: 0"});
}

TEST(MemoryBudget, LetsThroughWhatFitsAndRefusesTheKeptTape) {
  for (const char* lines : {"steps_of_memory: 1.5", "budget_bytes: 12000"}) {
    const auto row = run_windows(budget(lines));
    EXPECT_EQ(verdict(row), "pass") << row.dump(1);
  }
}

TEST(MemoryBudget, CatchesWhatGoesBeyondIt) {
  for (const WindowPlan plan : {WindowPlan{.keeps_tape = true}, WindowPlan{.leaks = true}}) {
    const auto row = run_windows(budget("steps_of_memory: 1.5"), plan);
    EXPECT_NE(verdict(row).find("optimized.over_budget = 0"), std::string::npos) << row.dump(1);
    EXPECT_NE(row.dump().find("memory budget"), std::string::npos);
  }
}

TEST(MemoryBudget, CatchesALeakThatItWouldHaveRoomFor) {
  EXPECT_NE(verdict(run_windows(budget("budget_bytes: 100000000"), {.leaks = true})).find("optimized.slope_bytes = 0"),
            std::string::npos);
}

TEST(MemoryBudget, ABaselineThatStaysInsideFails) {
  EXPECT_NE(verdict(run_windows(budget("steps_of_memory: 1.5"), {.baseline_is_clean = true}))
                .find("baseline.over_budget = 1"),
            std::string::npos);
}

TEST(MemoryBudget, TheCapIsLiftedAfterwards) {
  run_windows(budget("budget_bytes: 12000"));
  EXPECT_NO_THROW(at::empty({1000000}));  // not zeros: no thread may start before data parallel forks
}

TEST(MemoryBudget, TakesWholeStepsOfARunWithoutWindows) {
  const auto text =
      scenario("memory_budget", "steps: 4\nbudget_bytes: 1000000",
               {"measure: baseline.completed_steps, equals: 4", "measure: optimized.over_budget, equals: 0",
                "measure: optimized.completed_steps, equals: 4", "measure: optimized.slope_bytes, equals: 0"});
  EXPECT_EQ(verdict(run(text)), "pass");
  EXPECT_EQ(verdict(run(text, {.leaks = true})), "optimized.slope_bytes = 0");
  auto cut = text;
  cut.replace(cut.find("steps: 4"), 8, "steps: 4\nmicro_batch_rows: 2");
  EXPECT_THROW(run(cut), Error);
}

const std::string kParallel = window_scenario(
    "data_parallel", "rows_by_rank: [5, 3]\nwindows: 3\nmicro_batch_rows: 2\nrelative: 1.0e-5\ntimeout_s: 4",
    {"measure: baseline.gradient_ratio, at_most: 1", "measure: baseline.calls_per_window, equals: 6",
     "measure: baseline.bytes_off, equals: 0", "measure: optimized.gradient_ratio, at_most: 1",
     "measure: optimized.parameter_ratio, at_most: 1", "measure: optimized.diverged_ranks, equals: 0",
     "measure: optimized.calls_per_window, equals: 1", "measure: optimized.bytes_per_window, equals: 24",
     "measure: optimized.gradient_sum, at_least: 0.01", "measure: optimized.bytes_off, equals: 0",
     "measure: optimized.calls_off, equals: 0"});

TEST(DataParallel, TwoProcessesAreOne) {
  const auto row = run_windows(kParallel);
  EXPECT_EQ(verdict(row), "pass") << row.dump(1);
}

TEST(DataParallel, SmallBucketsAndARankWithoutRows) {
  auto text = kParallel;
  text.replace(text.find("[5, 3]"), 6, "[8, 0, 0]");
  text.replace(text.find("timeout_s"), 9, "bucket_bytes: 12\ntimeout_s");
  text.replace(text.find("baseline.calls_per_window, equals: 6"), 36, "baseline.calls_per_window, equals: 8");
  text.replace(text.find("optimized.calls_per_window, equals: 1"), 37, "optimized.calls_per_window, equals: 2");
  EXPECT_EQ(verdict(run_windows(text)), "pass");
}

TEST(DataParallel, CatchesSummedInsteadOfAveraged) {
  EXPECT_NE(verdict(run_windows(kParallel, {.own_rows = true})).find("optimized.gradient_ratio"), std::string::npos);
}

TEST(DataParallel, CatchesARankThatDriftsAndNamesIt) {
  const auto row = run_windows(kParallel, {.second_rank_drifts = true});
  EXPECT_NE(verdict(row).find("optimized.diverged_ranks = 0"), std::string::npos);
  EXPECT_NE(row.dump().find("rank 1 has other parameters than rank 0 after window 0"), std::string::npos);
}

TEST(DataParallel, CatchesBytesThatWereNotPredicted) {
  EXPECT_NE(verdict(run_windows(kParallel, {.grows_gradients = true})).find("optimized.bytes_off"), std::string::npos);
}

TEST(DataParallel, ARankThatEndsHangsOrThrowsIsNamedInTime) {
  auto text = kParallel;
  text.replace(text.find("timeout_s: 4"), 12, "timeout_s: 1");
  for (const WindowPlan plan : {WindowPlan{.second_rank_dies = true}, WindowPlan{.second_rank_hangs = true},
                                WindowPlan{.second_rank_throws = true}}) {
    const auto start = std::chrono::steady_clock::now();
    try {
      run_windows(text, plan);
      FAIL() << "it passed";
    } catch (const Error& error) {
      EXPECT_EQ(error.field(), "data parallel: optimized rank 1") << error.what();
    }
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
  }
}

TEST(DataParallel, ALostRankIsNamedByTheOthersAndTheRunGoesOn) {
  auto text = kParallel;
  text.replace(text.find("timeout_s: 4"), 12, "timeout_s: 1\nlost_at_window: 3\nlost_rank: 0");
  text +=
      "  - {measure: optimized.unnamed_ranks, equals: 0, why: test}\n"
      "  - {measure: optimized.resumed_at_window, equals: 2, why: test}\n"
      "  - {measure: optimized.resumed_mismatches, equals: 0, why: test}\n";
  const auto row = run_windows(text);
  EXPECT_EQ(verdict(row), "pass") << row.dump(1);
}

// What a scenario file may not say; each refusal names the key.
struct Wrong {
  const char* what;
  const std::string& text;
  const char *from, *to, *key;
  ErrorKind kind;
};

class RefusedWindowKey : public testing::TestWithParam<Wrong> {};

TEST_P(RefusedWindowKey, IsNamed) {
  const auto& wrong = GetParam();
  auto text = wrong.text;
  text.replace(text.find(wrong.from), std::string(wrong.from).size(), wrong.to);
  try {
    read(text, window_catalogue());
    FAIL() << "it was read";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), wrong.kind) << error.what();
    EXPECT_NE(std::string(error.what()).find(wrong.key), std::string::npos) << error.what();
  }
}

const std::string kBudget = budget("steps_of_memory: 1.5");

INSTANTIATE_TEST_SUITE_P(
    Scenario, RefusedWindowKey,
    testing::Values(
        Wrong{"no_rows", kAccumulation, "[4, 3, 1]", "[]", "micro_batch_rows", ErrorKind::kOutOfRange},
        Wrong{"zero_rows", kAccumulation, "[4, 3, 1]", "[4, 0]", "micro_batch_rows", ErrorKind::kOutOfRange},
        Wrong{"nan_tolerance", kAccumulation, "1.0e-4", ".nan", "relative", ErrorKind::kNonFinite},
        Wrong{"no_windows", kAccumulation, "fake_windows", "fake", "gradients of a window", ErrorKind::kOutOfRange},
        Wrong{"unjudged_peak", kAccumulation, "optimized.peak_growth", "optimized.per_micro.copies",
              "optimized.peak_growth is not judged", ErrorKind::kOutOfRange},
        Wrong{"infinite_budget", kBudget, "steps_of_memory: 1.5", "steps_of_memory: .inf", "steps_of_memory",
              ErrorKind::kNonFinite},
        Wrong{"negative_budget", kBudget, "steps_of_memory: 1.5", "budget_bytes: -1", "budget_bytes",
              ErrorKind::kOutOfRange},
        Wrong{"budget_beyond_counting", kBudget, "steps_of_memory: 1.5", "budget_bytes: 99999999999999999999",
              "budget_bytes", ErrorKind::kBadArgument},
        Wrong{"steps_without_slope", kBudget, "steps: 12", "steps: 3", "steps", ErrorKind::kOutOfRange},
        Wrong{"one_rank", kParallel, "[5, 3]", "[8]", "rows_by_rank", ErrorKind::kOutOfRange},
        Wrong{"no_rank_has_rows", kParallel, "[5, 3]", "[0, 0]", "rows_by_rank", ErrorKind::kOutOfRange},
        Wrong{"seventeen_ranks", kParallel, "[5, 3]", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "rows_by_rank",
              ErrorKind::kOutOfRange},
        Wrong{"no_timeout", kParallel, "timeout_s: 4", "timeout_s: 0", "timeout_s", ErrorKind::kOutOfRange},
        Wrong{"lost_before_a_save", kParallel, "timeout_s: 4", "timeout_s: 4\nlost_at_window: 1", "lost_at_window",
              ErrorKind::kOutOfRange},
        Wrong{"lost_after_the_end", kParallel, "timeout_s: 4", "timeout_s: 4\nlost_at_window: 4", "lost_at_window",
              ErrorKind::kOutOfRange},
        Wrong{"lost_rank_of_none", kParallel, "timeout_s: 4", "timeout_s: 4\nlost_at_window: 2\nlost_rank: 2",
              "lost_rank", ErrorKind::kOutOfRange},
        Wrong{"misspelt", kParallel, "timeout_s: 4", "time_out: 4", "time_out", ErrorKind::kUnknownName}),
    [](const auto& instance) { return instance.param.what; });

TEST(DataParallel, RowsMustAddUp) {
  auto text = kParallel;
  text.replace(text.find("[5, 3]"), 6, "[5, 2]");
  try {
    run_windows(text);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.field().find("rows_by_rank"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace twinbench::fake
