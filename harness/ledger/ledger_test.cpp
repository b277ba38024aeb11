// Exit codes and counts, above all that nothing measured, only skips and missing entries never pass.
#include "harness/ledger/ledger.h"

#include <gtest/gtest.h>

#include "src/common/error.h"

namespace twinbench {
namespace {

Ledger with(std::initializer_list<Outcome> outcomes) {
  Ledger ledger;
  int number = 0;
  for (const Outcome outcome : outcomes)
    ledger.record("cell" + std::to_string(number++), outcome, outcome == Outcome::kPass ? "" : "because");
  return ledger;
}

TEST(Ledger, NothingMeasuredIsNeverAPass) {
  EXPECT_EQ(Ledger().exit_code(), 3);
  Ledger planned_only;
  planned_only.plan("cell");
  EXPECT_EQ(planned_only.exit_code(), 3);
  EXPECT_EQ(with({Outcome::kSkip, Outcome::kSkip}).exit_code(), 3);
}

TEST(Ledger, WhatTheSystemRefusedAndWhatALimitEndedAreNoFailures) {
  Ledger ledger;
  ledger.record("passes", Outcome::kPass);
  ledger.record("late", Outcome::kError, "timeout", Cause::kLimit);
  EXPECT_EQ(ledger.exit_code(), kExitLimit);
  Ledger merged;
  merged.merge(ledger);
  EXPECT_EQ(merged.exit_code(), kExitLimit);
  ledger.record("refused", Outcome::kError, "input_output", Cause::kEnvironment);
  EXPECT_EQ(ledger.exit_code(), kExitUsage);
  EXPECT_EQ(ledger.counts().errors, 2u);
  ledger.record("wrong", Outcome::kError, "threw");
  EXPECT_EQ(ledger.exit_code(), kExitFailure);
}

TEST(Ledger, ExitCodeFollowsTheWorstOutcomeAndFailureBeatsInconclusive) {
  using enum Outcome;
  EXPECT_EQ(with({kPass}).exit_code(), 0);
  EXPECT_EQ(with({kPass, kSkip}).exit_code(), 0);
  EXPECT_EQ(with({kPass, kInconclusive}).exit_code(), 3);
  EXPECT_EQ(with({kPass, kFail}).exit_code(), 1);
  EXPECT_EQ(with({kPass, kError}).exit_code(), 1);
  EXPECT_EQ(with({kInconclusive, kFail, kSkip}).exit_code(), 1);
}

TEST(Ledger, PlannedButNotRecordedIsMissing) {
  Ledger ledger;
  ledger.plan("first");
  ledger.plan("second");
  ledger.record("second", Outcome::kPass);
  EXPECT_EQ(ledger.exit_code(), 3);
  EXPECT_EQ(ledger.missing(), std::vector<std::string>{"first"});
  EXPECT_EQ(ledger.counts().planned, 2u);
  ledger.record("first", Outcome::kPass);
  EXPECT_EQ(ledger.exit_code(), 0);
  EXPECT_TRUE(ledger.missing().empty());
}

TEST(Ledger, CountsEveryOutcomeAndSkipReason) {
  Ledger ledger = with({Outcome::kPass, Outcome::kFail, Outcome::kError, Outcome::kInconclusive});
  ledger.record("gpu one", Outcome::kSkip, "no CUDA device");
  ledger.record("gpu two", Outcome::kSkip, "no CUDA device");
  ledger.plan("never run");
  const nlohmann::json expected = {
      {"planned", 7}, {"passed", 1},       {"failed", 1},    {"errors", 1},
      {"skipped", 2}, {"inconclusive", 1}, {"exit_code", 1}, {"skip_reasons", {{"no CUDA device", 2}}}};
  EXPECT_EQ(ledger.to_json(), expected);
  EXPECT_EQ(ledger.summary_line(), "1 passed, 1 failed, 2 skipped, 1 error, 1 inconclusive, 1 missing");
  EXPECT_EQ(ledger.failures(), (std::vector<std::string>{"cell1: because", "cell2: because"}));
}

TEST(Ledger, SummaryOfAPassAndOfNothing) {
  EXPECT_EQ(with({Outcome::kPass, Outcome::kPass}).summary_line(), "2 passed, 0 failed, 0 skipped");
  EXPECT_EQ(Ledger().summary_line(), "0 passed, 0 failed, 0 skipped (nothing was planned)");
}

TEST(Ledger, RefusesASilentSkipAndASecondResult) {
  Ledger ledger;
  EXPECT_THROW(ledger.record("cell", Outcome::kSkip), Error);
  EXPECT_THROW(ledger.record("cell", Outcome::kFail), Error);
  EXPECT_EQ(ledger.counts().planned, 0u);
  ledger.record("cell", Outcome::kPass);
  EXPECT_THROW(ledger.record("cell", Outcome::kFail, "later"), Error);
}

TEST(Ledger, AReasonThatQuotesAFileIsNotObeyedByATerminal) {
  Ledger ledger;
  ledger.record("cell", Outcome::kFail, "pinned \x1b[31m\n::error::planted");
  ASSERT_EQ(ledger.failures().size(), 1u);
  EXPECT_EQ(ledger.failures().front().find_first_of("\x1b\n"), std::string::npos) << ledger.failures().front();
}

TEST(Ledger, MergeKeepsEveryEntry) {
  Ledger ledger = with({Outcome::kPass}), other;
  other.plan("elsewhere");
  other.record("failed there", Outcome::kFail, "0.3 > 0.1");
  ledger.merge(other);
  EXPECT_EQ(ledger.counts().planned, 3u);
  EXPECT_EQ(ledger.counts().missing, 1u);
  EXPECT_EQ(ledger.exit_code(), 1);
}

TEST(Ledger, WordsOfOutcomesRoundTrip) {
  using enum Outcome;
  for (const Outcome outcome : {kPass, kFail, kError, kSkip, kInconclusive})
    EXPECT_EQ(outcome_named(name_of(outcome)), outcome);
  EXPECT_THROW(outcome_named("passed"), Error);
}

}  // namespace
}  // namespace twinbench
