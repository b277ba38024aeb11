// Runs jobs in child processes, so that a crash, a hang or an exhausted memory is one row and all others still report.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "harness/runner/job.h"

namespace twinbench {

struct RunnerOptions {
  std::size_t parallel = 1;       // children at a time; anything timed runs alone
  double poll_interval_s = 0.05;  // at which memory is looked at
  // Called in the parent, in the order in which things happen. What they throw ends the run, after all children are
  // killed.
  std::function<void(const Job&)> on_start;
  std::function<void(const Job&, const nlohmann::json& part)> on_part;
  std::function<void(const JobResult&)> on_result;
  std::function<bool()>
      enough;  // asked before a job is started; true: neither it nor any after it is (a budget is spent)
};

struct RunReport {
  std::vector<JobResult> results;  // of the jobs that started, in the order of the jobs
  bool interrupted = false;        // SIGINT, SIGTERM, SIGHUP or SIGXCPU: children were killed, the rest not started
  std::size_t not_started = 0;     // the last ones of the list
};

// Forks each child from this process, which should have everything loaded and must not have run a parallel region yet:
// a child may then start threads of its own (OpenMP included). A job whose fork would come from a process with more
// than one thread is not run; its row is an error that says so. While jobs run, SIGINT, SIGTERM, SIGHUP and SIGXCPU
// belong to the runner; their handlers are restored at the end. A job in this process cannot be ended: a second after
// the signal it takes the process with it. Throws Error(kBadArgument) on a job without a function and
// Error(kOutOfRange) on limits that are not positive.
RunReport run_jobs(const std::vector<Job>& jobs, const RunnerOptions& options = {});

}  // namespace twinbench
