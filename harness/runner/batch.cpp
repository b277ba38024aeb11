// Rounds of children: each round gives every unfinished batch one child, which goes as far as it can.
#include "harness/runner/batch.h"

#include <chrono>
#include <map>
#include <optional>
#include <utility>

#include "harness/runner/runner.h"

namespace twinbench {
namespace {

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// How far one batch has come, as the parent sees it.
struct Standing {
  const Batch* batch = nullptr;
  std::size_t next = 0;  // the first member without a result
  bool running = false;  // that member has begun
  double began_s = 0;
  std::optional<JobResult> held;  // of the member before: handed on once it is known that its process lives
  bool finished() const { return next >= batch->members.size(); }
};

// In the child: members from `first` on.
nlohmann::json do_members(const Batch& batch, std::size_t first, const std::function<bool()>& enough,
                          JobContext& context) {
  for (std::size_t member = first; member < batch.members.size(); ++member) {
    if (enough && enough()) break;
    context.report({{"begin", member}});
    MemberOutcome outcome = batch.work(member);
    context.report({{"end", member}, {"value", std::move(outcome.value)}});
    if (!outcome.sound) break;
  }
  return nullptr;
}

class BatchRun {
 public:
  BatchRun(const std::vector<Batch>& batches, const BatchOptions& options) : options_(options) {
    for (const Batch& batch : batches) standings_.push_back({.batch = &batch, .held = std::nullopt});
  }

  BatchReport all() {
    BatchReport report;
    while (!report.interrupted && !(options_.enough && options_.enough()) && round(report)) {
    }
    if (!report.interrupted)
      for (const Standing& standing : standings_)
        for (std::size_t member = standing.next; member < standing.batch->members.size(); ++member)
          report.left_out.push_back(standing.batch->members[member]);
    return report;
  }

 private:
  // False where nothing was left to do.
  bool round(BatchReport& report) {
    std::vector<Job> jobs;
    std::vector<Standing*> doing;
    for (Standing& standing : standings_) {
      if (standing.finished()) continue;
      const Batch& batch = *standing.batch;
      Job job;
      job.name = batch.name;
      job.run = [&batch, first = standing.next, &enough = options_.enough](JobContext& context) {
        return do_members(batch, first, enough, context);
      };
      job.limits = batch.limits;
      job.in_process = batch.in_process;
      jobs.push_back(std::move(job));
      doing.push_back(&standing);
    }
    if (jobs.empty()) return false;
    std::size_t at = 0;  // one child at a time: parts and results come in the jobs' order
    RunnerOptions runner;
    runner.enough = options_.enough;
    runner.on_part = [&](const Job&, const nlohmann::json& part) { take(*doing[at], part); };
    runner.on_result = [&](const JobResult& result) { conclude(*doing[at++], result); };
    report.interrupted = run_jobs(jobs, runner).interrupted;
    return true;
  }

  void take(Standing& standing, const nlohmann::json& part) {
    if (part.contains("begin")) {
      hand_on(standing);
      standing.running = true;
      standing.began_s = now_s();
      if (options_.on_start) options_.on_start(standing.batch->members[standing.next]);
      return;
    }
    JobResult result;
    result.name = standing.batch->members[standing.next];
    result.status = JobStatus::kOk;
    result.value = part.at("value");
    result.seconds = now_s() - standing.began_s;
    standing.held = std::move(result);
    standing.running = false;
    ++standing.next;
  }

  void conclude(Standing& standing, const JobResult& end) {
    const bool running = std::exchange(standing.running, false);
    if (end.ok() || end.status == JobStatus::kInterrupted) return hand_on(standing);
    JobResult failed = end;
    failed.parts.clear();
    if (running || !standing.held) {  // a child that could not even begin counts against the member it was to do
      failed.name = standing.batch->members[standing.next++];
      if (running) failed.seconds = now_s() - standing.began_s;
    } else {
      failed.name = standing.held->name;
      failed.seconds = standing.held->seconds;
      failed.what += failed.what.empty() ? "after its result" : ", after its result";
    }
    standing.held = std::move(failed);
    hand_on(standing);
  }

  void hand_on(Standing& standing) {
    if (!standing.held) return;
    const JobResult result = std::move(*standing.held);
    standing.held.reset();
    if (options_.on_result) options_.on_result(result);
  }

  const BatchOptions& options_;
  std::vector<Standing> standings_;
};

}  // namespace

BatchReport run_batches(const std::vector<Batch>& batches, const BatchOptions& options) {
  return BatchRun(batches, options).all();
}

}  // namespace twinbench
