// The loop over jobs and children.
#include "harness/runner/runner.h"

#include <poll.h>

#include <algorithm>
#include <cmath>
#include <list>
#include <map>
#include <string>
#include <utility>

#include "harness/runner/child_main.h"
#include "harness/runner/child_process.h"
#include "harness/runner/interruption_watch.h"
#include "harness/runner/memory_use.h"
#include "src/common/error.h"

namespace twinbench {
namespace {

void check(const std::vector<Job>& jobs, const RunnerOptions& options) {
  const auto positive = [](const std::string& field, double value) {
    if (!(value > 0)) throw Error(ErrorKind::kOutOfRange, field, std::to_string(value), "give a positive number");
  };
  positive("parallel", static_cast<double>(options.parallel));
  positive("poll_interval_s", options.poll_interval_s);
  for (const Job& job : jobs) {
    if (!job.run) throw Error(ErrorKind::kBadArgument, "job", job.name, "give it a function to run");
    positive(job.name + " wall_s", job.limits.wall_s);
    positive(job.name + " silence_s", job.limits.silence_s);
    positive(job.name + " part_s", job.limits.part_s);
  }
}

class Run {
 public:
  Run(const std::vector<Job>& jobs, const RunnerOptions& options) : jobs_(jobs), options_(options) {}

  RunReport all() {
    const InterruptionWatch watch;
    const auto starting = [&] {
      return next_ < jobs_.size() && !interrupted() && !(options_.enough && options_.enough());
    };
    while (starting() || !children_.empty()) {
      while (starting() && children_.size() < options_.parallel) start(next_++);
      wait();
      for (auto& [index, child] : children_) {
        if (interrupted()) child.stop(JobStatus::kInterrupted, "the run was interrupted");
        child.attend();
      }
      bury();
    }
    RunReport report;
    report.interrupted = interrupted();
    report.not_started = jobs_.size() - next_;
    for (auto& [index, result] : results_) report.results.push_back(std::move(result));
    return report;
  }

 private:
  void start(std::size_t index) {
    const Job& job = jobs_[index];
    if (options_.on_start) options_.on_start(job);
    if (job.in_process) {
      JobResult result;
      {
        const JobIsHere here;
        result = run_here(job, options_.on_part);
      }
      keep(index, std::move(result));
      return;
    }
    const int threads = thread_count();
    if (threads > 1) {
      refuse(index, "this process has " + std::to_string(threads) +
                        " threads; fork before any parallel region, or the child may hang");
      return;
    }
    try {
      children_.emplace_back(std::piecewise_construct, std::forward_as_tuple(index),
                             std::forward_as_tuple(job, options_.on_part));
    } catch (const Error& error) {
      refuse(index, error.what(), name_of(error.kind()));
    }
  }

  void refuse(std::size_t index, const std::string& what, const std::string& error_kind = "") {
    JobResult result;
    result.error_kind = error_kind;
    result.name = jobs_[index].name;
    result.status = JobStatus::kError;
    result.what = what;
    keep(index, std::move(result));
  }

  void wait() {
    std::vector<pollfd> descriptors;
    double seconds = options_.poll_interval_s;
    for (const auto& [index, child] : children_) {
      child.add_descriptors(descriptors);
      seconds = std::min(seconds, child.seconds_to_next_limit());
    }
    if (!children_.empty()) poll(descriptors.data(), descriptors.size(), static_cast<int>(std::ceil(seconds * 1e3)));
  }

  void bury() {
    for (auto child = children_.begin(); child != children_.end();) {
      if (!child->second.finished()) {
        ++child;
        continue;
      }
      const std::size_t index = child->first;
      JobResult result = child->second.result();
      child = children_.erase(child);
      keep(index, std::move(result));
    }
  }

  void keep(std::size_t index, JobResult result) {
    const JobResult& kept = results_[index] = std::move(result);
    if (options_.on_result) options_.on_result(kept);
  }

  const std::vector<Job>& jobs_;
  const RunnerOptions& options_;
  std::size_t next_ = 0;
  std::list<std::pair<std::size_t, ChildProcess>> children_;
  std::map<std::size_t, JobResult> results_;  // by job
};

}  // namespace

RunReport run_jobs(const std::vector<Job>& jobs, const RunnerOptions& options) {
  check(jobs, options);
  return Run(jobs, options).all();
}

}  // namespace twinbench
