// One child for many members: each way for a member to end is its own result only, and all others still report.
#include "harness/runner/batch.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <memory>
#include <thread>

#include "src/common/error.h"
#include "src/common/sanitized.h"

namespace twinbench {
namespace {

using nlohmann::json;

JobLimits limits(double part_s = 5) {
  JobLimits limits;
  limits.wall_s = 60;
  limits.part_s = part_s;
  return limits;
}

// Every member answers with its process and what the members before it in the same process left behind.
Batch batch_of(std::vector<std::string> members, std::function<void(const std::string&)> misbehave, double part_s = 5) {
  auto seen = std::make_shared<std::vector<std::string>>();
  const auto names = members;
  return {.name = "batch",
          .members = std::move(members),
          .work = [names, seen, misbehave](std::size_t member) -> MemberOutcome {
            misbehave(names[member]);
            const json before = *seen;
            seen->push_back(names[member]);
            return {{{"process", getpid()}, {"before", before}}, names[member] != "unsound"};
          },
          .limits = limits(part_s)};
}

std::map<std::string, JobResult> results_of(const std::vector<Batch>& batches,
                                            std::vector<std::string>* order = nullptr) {
  std::map<std::string, JobResult> results;
  const BatchReport report = run_batches(batches, {.on_start = nullptr,
                                                   .on_result =
                                                       [&](const JobResult& result) {
                                                         EXPECT_TRUE(results.emplace(result.name, result).second)
                                                             << result.name << " twice";
                                                         if (order) order->push_back(result.name);
                                                       },
                                                   .enough = nullptr});
  EXPECT_FALSE(report.interrupted);
  EXPECT_TRUE(report.left_out.empty());
  return results;
}

TEST(Batches, MembersShareOneChildAndWhatItHolds) {
  std::vector<std::string> order;
  auto results = results_of({batch_of({"a", "b", "c"}, [](const std::string&) {})}, &order);
  EXPECT_EQ(order, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(results["a"].value["process"], results["c"].value["process"]);
  EXPECT_NE(results["a"].value["process"], getpid());
  EXPECT_EQ(results["c"].value["before"], json({"a", "b"}));
}

TEST(Batches, ACrashIsTheRightMembersRowAndTheRestGoOnInAFreshChild) {
  auto results = results_of({batch_of({"a", "crashes", "b", "c"}, [](const std::string& member) {
    if (member == "crashes") raise(SIGSEGV);
  })});
  ASSERT_EQ(results.size(), 4u);
  EXPECT_TRUE(results["a"].ok());
  EXPECT_EQ(results["crashes"].status, JobStatus::kCrashed) << results["crashes"].reason();
  EXPECT_NE(results["crashes"].what.find(kSanitized ? "a sanitizer ended it" : "SEGV"), std::string::npos);
  EXPECT_TRUE(results["b"].ok());
  EXPECT_NE(results["a"].value["process"], results["b"].value["process"]);
  EXPECT_EQ(results["b"].value["before"], json::array()) << "nothing of the dead process is left";
  EXPECT_EQ(results["c"].value["before"], json({"b"}));
}

TEST(Batches, EveryKindOfEndIsKept) {
  auto results = results_of({batch_of(
      {"hangs", "a", "throws", "b", "memory", "exits", "aborts"},
      [](const std::string& member) {
        if (member == "hangs") std::this_thread::sleep_for(std::chrono::seconds(30));
        if (member == "throws") throw Error(ErrorKind::kBadShape, "x", "3", "give 4");
        if (member == "memory") throw std::bad_alloc();
        if (member == "exits") _exit(3);
        if (member == "aborts") std::abort();
      },
      0.5)});
  ASSERT_EQ(results.size(), 7u);
  EXPECT_EQ(results["hangs"].status, JobStatus::kTimeout) << results["hangs"].reason();
  EXPECT_EQ(results["throws"].status, JobStatus::kError);
  EXPECT_EQ(results["throws"].error_kind, "bad_shape");
  EXPECT_EQ(results["memory"].status, JobStatus::kOutOfMemory);
  EXPECT_EQ(results["exits"].status, JobStatus::kProtocolError);
  EXPECT_EQ(results["aborts"].status, JobStatus::kAborted);
  EXPECT_TRUE(results["a"].ok());
  EXPECT_TRUE(results["b"].ok());
}

TEST(Batches, AnUnsoundMemberKeepsItsResultAndEndsItsChild) {
  auto results = results_of({batch_of({"a", "unsound", "b"}, [](const std::string&) {})});
  EXPECT_TRUE(results["unsound"].ok());
  EXPECT_EQ(results["unsound"].value["before"], json({"a"}));
  EXPECT_EQ(results["b"].value["before"], json::array());
}

TEST(Batches, ADeathBetweenTwoMembersBelongsToTheOneBefore) {
  // A thread that "a" leaves behind kills the process once "a" has answered and before "b" begins.
  std::size_t asked = 0;
  std::map<std::string, JobResult> results;
  Batch batch = batch_of({"a", "b"}, [](const std::string&) {});
  const pid_t parent = getpid();
  run_batches({batch}, {.on_start = nullptr,
                        .on_result = [&](const JobResult& result) { results[result.name] = result; },
                        .enough =
                            [&asked, parent] {
                              if (getpid() != parent && ++asked == 2) raise(SIGSEGV);  // in the first child, after "a"
                              return false;
                            }});
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results["a"].status, JobStatus::kCrashed);
  EXPECT_NE(results["a"].what.find("after its result"), std::string::npos) << results["a"].what;
  EXPECT_TRUE(results["b"].ok()) << results["b"].reason();
}

TEST(Batches, WhatIsLeftWhenItIsEnoughIsNamed) {
  std::vector<std::string> done;
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  const auto slow = [](const std::string&) { std::this_thread::sleep_for(std::chrono::milliseconds(120)); };
  const BatchReport report = run_batches({batch_of({"a", "b", "c", "d", "e"}, slow), batch_of({"f", "g"}, slow)},
                                         {.on_start = nullptr,
                                          .on_result = [&](const JobResult& result) { done.push_back(result.name); },
                                          .enough = [end] { return std::chrono::steady_clock::now() > end; }});
  EXPECT_GE(done.size(), 1u);
  EXPECT_LE(done.size(), 4u);
  std::vector<std::string> all = done;
  all.insert(all.end(), report.left_out.begin(), report.left_out.end());
  EXPECT_EQ(all, (std::vector<std::string>{"a", "b", "c", "d", "e", "f", "g"}))
      << "nothing is lost, and the order is kept";
}

TEST(Batches, InThisProcessPartsArriveToo) {
  Batch batch = batch_of({"a", "b"}, [](const std::string& member) {
    if (member == "a") throw Error(ErrorKind::kBadShape, "x", "3", "give 4");
  });
  batch.in_process = true;
  auto results = results_of({batch});
  EXPECT_EQ(results["a"].status, JobStatus::kError);
  EXPECT_EQ(results["b"].value["process"], getpid());
}

}  // namespace
}  // namespace twinbench
