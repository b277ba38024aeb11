// Every way for a job to end, each beside jobs that work and must still report.
#include "harness/runner/runner.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <numeric>
#include <thread>

#include "harness/runner/memory_use.h"
#include "src/common/error.h"
#include "src/common/sanitized.h"

namespace twinbench {
namespace {

using nlohmann::json;

void sleep_s(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

JobLimits limits(double wall_s = 5, double silence_s = 5, std::uint64_t memory_mib = 0) {
  return {wall_s, silence_s, memory_mib << 20};
}

// Touches `mebibytes` MiB, 4 at a time.
std::size_t allocate(std::size_t mebibytes) {
  std::vector<std::unique_ptr<char[]>> held;
  for (std::size_t i = 0; i < mebibytes; i += 4) {
    held.push_back(std::make_unique<char[]>(std::size_t{4} << 20));
    for (std::size_t byte = 0; byte < std::size_t{4} << 20; byte += 4096) held.back()[byte] = 1;
  }
  return held.size();
}

// Runs the job between two that work, and checks that those two do.
JobResult end_of(const std::string& name, std::function<json(JobContext&)> run, JobLimits job_limits = limits()) {
  const auto works = [](int number) { return [number](JobContext&) { return json{{"number", number}}; }; };
  const RunReport report =
      run_jobs({{"before", works(1), limits()}, {name, run, job_limits}, {"after", works(2), limits()}});
  EXPECT_EQ(report.results.size(), 3u);
  EXPECT_FALSE(report.interrupted);
  if (report.results.size() != 3) return {};
  EXPECT_EQ(report.results[0].value, json({{"number", 1}})) << report.results[0].reason();
  EXPECT_EQ(report.results[2].value, json({{"number", 2}})) << report.results[2].reason();
  EXPECT_EQ(report.results[1].name, name);
  return report.results[1];
}

TEST(Runner, AJobThatReturns) {
  const JobResult result = end_of("returns", [](JobContext&) { return json{{"x", {1, 2.5, "three"}}}; });
  EXPECT_EQ(result.status, JobStatus::kOk) << result.reason();
  EXPECT_EQ(result.value, (json{{"x", {1, 2.5, "three"}}}));
  EXPECT_EQ(result.reason(), "");
  EXPECT_GT(result.peak_resident_bytes, 0u);
}

TEST(Runner, AJobThatThrowsAnError) {
  const JobResult result =
      end_of("throws", [](JobContext&) -> json { throw Error(ErrorKind::kBadShape, "weights", "[3]", "give [4]"); });
  EXPECT_EQ(result.status, JobStatus::kError);
  EXPECT_EQ(result.error_kind, "bad_shape");
  EXPECT_NE(result.what.find("weights"), std::string::npos) << result.what;
}

TEST(Runner, AJobThatThrowsSomethingElse) {
  EXPECT_EQ(end_of("runtime", [](JobContext&) -> json { throw std::runtime_error("odd \xff"); }).status,
            JobStatus::kError);
  EXPECT_EQ(end_of("number", [](JobContext&) -> json { throw 7; }).status, JobStatus::kError);
  const JobResult memory = end_of("wording", [](JobContext&) -> json {
    throw std::runtime_error("CUDA out of memory. Tried to allocate 20.00 GiB");
  });
  EXPECT_EQ(memory.status, JobStatus::kOutOfMemory);
  EXPECT_EQ(memory.error_kind, "out_of_memory");
}

TEST(Runner, ACudaErrorIsNamedWithItsRemedyAndWithoutItsStackTrace) {
  const JobResult result = end_of("fault", [](JobContext&) -> json {
    throw std::runtime_error(
        "CUDA error: an illegal memory access was encountered\nException raised from f at g.cpp:1\nframe #0: h");
  });
  EXPECT_EQ(result.status, JobStatus::kError);
  EXPECT_EQ(result.what.rfind("CUDA_ERROR(cudaErrorIllegalAddress): ", 0), 0u) << result.what;
  EXPECT_NE(result.what.find("compute-sanitizer"), std::string::npos) << result.what;
  EXPECT_EQ(result.what.find("frame #0"), std::string::npos) << result.what;
}

TEST(Runner, AJobThatAborts) {
  const JobResult result = end_of("aborts", [](JobContext&) -> json {
    std::fputs("last words\n", stderr);
    std::abort();
  });
  EXPECT_EQ(result.status, JobStatus::kAborted);
  EXPECT_EQ(result.what, "SIGABRT");
  EXPECT_NE(result.output_tail.find("last words"), std::string::npos) << result.output_tail;
}

TEST(Runner, AJobThatCrashes) {
  const JobResult result = end_of("crashes", [](JobContext&) -> json {
    std::cout << "on standard output\n";
    raise(SIGSEGV);
    return nullptr;
  });
  EXPECT_EQ(result.status, JobStatus::kCrashed) << result.reason();
  if (!kSanitized) {
    EXPECT_EQ(result.reason(), "crashed: SIGSEGV");
    EXPECT_EQ(result.output_tail, "on standard output\n");
  }
}

TEST(Runner, AJobThatHangs) {
  const JobResult result = end_of(
      "hangs",
      [](JobContext& context) -> json {
        for (;;) {
          context.alive();
          sleep_s(0.01);
        }
      },
      limits(0.3, 5));
  EXPECT_EQ(result.status, JobStatus::kTimeout);
  EXPECT_EQ(result.what, "longer than 0.3 s");
  EXPECT_GT(result.seconds, 0.3);
  EXPECT_LT(result.seconds, 2);
}

TEST(Runner, AJobThatFallsSilent) {
  const JobResult result = end_of(
      "silent", [](JobContext&) -> json { return sleep_s(20), json(); }, limits(10, 0.3));
  EXPECT_EQ(result.status, JobStatus::kSilent) << result.reason();
  EXPECT_LT(result.seconds, 2);
}

TEST(Runner, SignsOfLifeAndOutputBreakTheSilence) {
  const auto work = [](bool prints) {
    return [prints](JobContext& context) -> json {
      for (int i = 0; i < 20; ++i) {
        prints ? (void)std::puts("still here") : context.alive();
        sleep_s(0.05);
      }
      return true;
    };
  };
  EXPECT_TRUE(end_of("alive", work(false), limits(10, 0.8)).ok());
  EXPECT_TRUE(end_of("prints", work(true), limits(10, 0.8)).ok());
}

TEST(Runner, AnAllocationBeyondTheLimitIsRefused) {
  if (kSanitized) GTEST_SKIP() << "the sanitizer's allocator ends the process instead of throwing";
  const JobResult result = end_of(
      "greedy", [](JobContext&) -> json { return std::vector<char>(std::size_t{3} << 30).size(); }, limits(5, 5, 64));
  EXPECT_EQ(result.status, JobStatus::kOutOfMemory);
  EXPECT_EQ(result.error_kind, "out_of_memory");
  EXPECT_NE(result.what.find("the limit is 64 MiB; --memory-limit"), std::string::npos) << result.what;
  EXPECT_LT(result.peak_resident_bytes, std::uint64_t{1} << 30);
}

TEST(Runner, AJobThatAllocatesForeverIsStoppedAtTheLimit) {
  // Slower than the runner looks, so that the watch on resident memory, not the refusal, is what ends it.
  const JobResult result = end_of(
      "leaks",
      [](JobContext&) -> json {
        std::vector<std::unique_ptr<char[]>> held;
        for (;;) {
          held.push_back(std::make_unique<char[]>(std::size_t{1} << 20));
          for (std::size_t byte = 0; byte < std::size_t{1} << 20; byte += 4096) held.back()[byte] = 1;
          sleep_s(0.004);
        }
      },
      limits(10, 10, 24));
  EXPECT_EQ(result.status, JobStatus::kOutOfMemory) << result.reason();
  EXPECT_NE(result.what.find("the limit is 24 MiB"), std::string::npos) << result.what;
}

TEST(Runner, MemoryWithinTheLimitIsGiven) {
  const JobResult result = end_of(
      "modest", [](JobContext&) -> json { return allocate(32); }, limits(10, 10, 64));
  EXPECT_TRUE(result.ok()) << result.reason();
}

TEST(Runner, WhatTheParentHoldsDoesNotCountAgainstTheChild) {
  const std::vector<char> ballast(std::size_t{96} << 20, 1);
  const JobResult result = end_of(
      "inherits",
      [&ballast](JobContext&) -> json { return std::accumulate(ballast.begin(), ballast.end(), std::int64_t{0}); },
      limits(10, 10, 48));
  EXPECT_TRUE(result.ok()) << result.reason();
  EXPECT_EQ(result.value, json(96 << 20));
}

TEST(Runner, AJobThatWritesGarbageToThePipe) {
  const JobResult result = end_of("garbage", [](JobContext& context) -> json {
    EXPECT_EQ(write(context.descriptor(), "hello, world", 12), 12);
    return true;
  });
  EXPECT_EQ(result.status, JobStatus::kProtocolError) << result.reason();
}

TEST(Runner, AJobWhoseResultIsForgedOnTheInheritedPipe) {
  const JobResult result = end_of("forged", [](JobContext& context) -> json {
    const std::string body = R"({"kind":"result","value":"forged"})";
    const std::string message = std::string("TWBJ") + static_cast<char>(body.size()) + std::string(3 + 8, '\0') + body;
    EXPECT_EQ(write(context.descriptor(), message.data(), message.size()), static_cast<ssize_t>(message.size()));
    _exit(0);
  });
  EXPECT_EQ(result.status, JobStatus::kProtocolError);
  EXPECT_NE(result.what.find("seal"), std::string::npos) << result.what;
}

TEST(Runner, AJobThatBreaksOffAMessage) {
  const JobResult result = end_of("broken off", [](JobContext& context) -> json {
    EXPECT_EQ(write(context.descriptor(), "TWBJ\x40\0\0\0{", 9), 9);
    _exit(0);
  });
  EXPECT_EQ(result.status, JobStatus::kProtocolError);
  EXPECT_NE(result.what.find("cut short"), std::string::npos) << result.what;
}

TEST(Runner, AJobThatExitsEarly) {
  const JobResult result = end_of("exits", [](JobContext&) -> json { _exit(3); });
  EXPECT_EQ(result.status, JobStatus::kProtocolError);
  EXPECT_EQ(result.what, "exited with code 3 before its result");
}

TEST(Runner, AJobThatPrintsALotKeepsItsLastWords) {
  const JobResult result = end_of("prints", [](JobContext&) -> json {
    for (int i = 0; i < 200000; ++i) std::printf("line %d\n", i);
    return "done";
  });
  EXPECT_TRUE(result.ok()) << result.reason();
  EXPECT_EQ(result.value, "done");
  EXPECT_LE(result.output_tail.size(), 4096u);
  EXPECT_NE(result.output_tail.find("line 199999\n"), std::string::npos);
}

TEST(Runner, ALargeResultArrivesWhole) {
  const JobResult result = end_of("large", [](JobContext&) -> json { return std::string(8 << 20, 'x'); });
  EXPECT_TRUE(result.ok()) << result.reason();
  EXPECT_EQ(result.value.get_ref<const std::string&>().size(), std::size_t{8} << 20);
}

TEST(Runner, PartsSurviveTheDeathOfTheJob) {
  std::vector<json> streamed;
  RunnerOptions options;
  options.on_part = [&streamed](const Job&, const json& part) { streamed.push_back(part); };
  const RunReport report = run_jobs({{"batch",
                                      [](JobContext& context) -> json {
                                        context.report({{"cell", 1}});
                                        context.report({{"cell", 2}});
                                        std::abort();
                                      },
                                      limits()}},
                                    options);
  EXPECT_EQ(report.results[0].status, JobStatus::kAborted);
  EXPECT_EQ(report.results[0].parts, (std::vector<json>{{{"cell", 1}}, {{"cell", 2}}}));
  EXPECT_EQ(streamed, report.results[0].parts);
}

TEST(Runner, WhatAJobLeavesRunningDiesWithIt) {
  // The grandchild keeps the pipes open: without killing the group the runner would wait for its end.
  const JobResult result = end_of("leaves", [](JobContext&) -> json {
    const pid_t grandchild = fork();
    if (grandchild == 0) {
      sleep_s(30);
      _exit(0);
    }
    return grandchild;
  });
  EXPECT_EQ(result.status, JobStatus::kError);
  EXPECT_EQ(result.what.rfind("left_processes", 0), 0u) << result.what;
  EXPECT_LT(result.seconds, 5);
  bool gone = false;
  for (int i = 0; i < 200 && !gone; ++i) {  // an orphan is collected by init some time after its end
    gone = kill(result.value.get<pid_t>(), 0) != 0 || held_bytes(result.value.get<pid_t>()) == 0;
    if (!gone) sleep_s(0.01);
  }
  EXPECT_TRUE(gone);
}

// Each forks the next and ends: whoever is looked up is gone when it is looked at.
TEST(Runner, ARelayOfProcessesIsLeftRunningToo) {
  for (int i = 0; i < 20; ++i) {
    const JobResult result = end_of("relay", [](JobContext&) -> json {
      if (fork() == 0) {
        for (int runner = 0; runner < 100'000; ++runner)
          if (fork() != 0) _exit(0);
        _exit(0);
      }
      return "done";
    });
    ASSERT_EQ(result.status, JobStatus::kError);
    ASSERT_EQ(result.what.rfind("left_processes", 0), 0u) << result.what;
  }
}

TEST(Runner, CoreDumpsAreOffInTheChildOnly) {
  rlimit before{}, after{};
  getrlimit(RLIMIT_CORE, &before);
  const JobResult result = end_of("limits", [](JobContext&) -> json {
    rlimit core{};
    getrlimit(RLIMIT_CORE, &core);
    return core.rlim_cur;
  });
  getrlimit(RLIMIT_CORE, &after);
  EXPECT_LE(result.value.get<std::uint64_t>(), 1u);
  EXPECT_EQ(before.rlim_cur, after.rlim_cur);
}

TEST(Runner, ChildrenMayStartThreads) {
  const JobResult result = end_of("threads", [](JobContext&) -> json {
    std::vector<int> answers(4);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < answers.size(); ++i) threads.emplace_back([&answers, i] { answers[i] = 1; });
    for (auto& thread : threads) thread.join();
    return std::accumulate(answers.begin(), answers.end(), 0);
  });
  EXPECT_EQ(result.value, json(4)) << result.reason();
}

TEST(Runner, AParentWithThreadsDoesNotFork) {
  std::thread other([] { sleep_s(0.2); });
  const RunReport report = run_jobs({{"job", [](JobContext&) -> json { return true; }, limits()}});
  other.join();
  EXPECT_EQ(report.results[0].status, JobStatus::kError);
  EXPECT_NE(report.results[0].what.find("2 threads"), std::string::npos) << report.results[0].what;
}

TEST(Runner, ParallelJobsComeBackInTheirOrder) {
  std::vector<Job> jobs;
  for (int i = 0; i < 6; ++i)
    jobs.push_back(
        {std::to_string(i), [i](JobContext&) -> json { return sleep_s(i == 0 ? 0.3 : 0.01), json(i); }, limits()});
  std::vector<std::string> ended;
  RunnerOptions options;
  options.parallel = 3;
  options.on_result = [&ended](const JobResult& result) { ended.push_back(result.name); };
  const RunReport report = run_jobs(jobs, options);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(report.results[static_cast<std::size_t>(i)].value, json(i));
  EXPECT_EQ(ended.size(), 6u);
  EXPECT_NE(ended.front(), "0") << "results stream as they come";
}

TEST(Runner, AnInterruptKeepsWhatWasMeasured) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const pid_t runner = getpid();
    const RunReport report = run_jobs({{"measured", [](JobContext&) -> json { return 42; }, limits()},
                                       {"running",
                                        [=](JobContext&) -> json {
                                          kill(runner, signal);
                                          return sleep_s(20), json();
                                        },
                                        limits(30, 30)},
                                       {"waiting", [](JobContext&) -> json { return 43; }, limits()}});
    EXPECT_TRUE(report.interrupted);
    EXPECT_EQ(report.not_started, 1u);
    ASSERT_EQ(report.results.size(), 2u);
    EXPECT_EQ(report.results[0].value, json(42));
    EXPECT_EQ(report.results[1].status, JobStatus::kInterrupted);
    EXPECT_LT(report.results[1].seconds, 5);
  }
}

TEST(Runner, HandlersOfTheCallerComeBack) {
  std::signal(SIGINT, SIG_IGN);
  run_jobs({{"job", [](JobContext&) -> json { return true; }, limits()}});
  EXPECT_EQ(std::signal(SIGINT, SIG_DFL), SIG_IGN);
}

TEST(Runner, AThrowingCallbackEndsTheRunWithoutLeavingChildren) {
  RunnerOptions options;
  options.parallel = 2;
  options.on_result = [](const JobResult&) { throw std::runtime_error("disk full"); };
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THROW(run_jobs({{"slow", [](JobContext&) -> json { return sleep_s(20), json(); }, limits(30, 30)},
                         {"quick", [](JobContext&) -> json { return true; }, limits()}},
                        options),
               std::runtime_error);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST(Runner, RefusesJobsAndLimitsThatMakeNoSense) {
  EXPECT_THROW(run_jobs({{"empty", nullptr, limits()}}), Error);
  EXPECT_THROW(run_jobs({{"no time", [](JobContext&) -> json { return 1; }, limits(0)}}), Error);
  EXPECT_TRUE(run_jobs({}).results.empty());
}

TEST(Runner, ResultsAsJsonAreStrict) {
  const JobResult result = end_of("bytes", [](JobContext&) -> json {
    std::fputs("\xff\xfe not text\n", stderr);
    throw std::runtime_error("bad \xff");
  });
  const json row = to_json(result);
  EXPECT_EQ(json::parse(row.dump()), row);
  EXPECT_EQ(row["status"], "error");
}

TEST(InProcess, RunsHereAndTurnsErrorsIntoRows) {
  Job works{"works",
            [](JobContext& context) {
              context.report({{"part", 1}});
              return json{{"process", getpid()}};
            },
            limits()};
  Job throws{"throws", [](JobContext&) -> json { throw Error(ErrorKind::kBadArgument, "field", "value", "remedy"); },
             limits()};
  works.in_process = throws.in_process = true;
  const RunReport report = run_jobs({works, throws, works});
  ASSERT_EQ(report.results.size(), 3u);
  EXPECT_EQ(report.results[0].value["process"], getpid());
  EXPECT_EQ(report.results[1].status, JobStatus::kError);
  EXPECT_EQ(report.results[1].error_kind, "bad_argument");
  EXPECT_TRUE(report.results[2].ok());
}

}  // namespace
}  // namespace twinbench
