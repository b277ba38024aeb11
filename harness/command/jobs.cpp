// Limits, progress on standard error, interruption.
#include "harness/command/jobs.h"

#include <ATen/Parallel.h>
#include <unistd.h>

#include <iostream>
#include <utility>

#include "harness/terminal/progress.h"

namespace twinbench {

Record open_record(const CommandOptions& options, const std::string& engine) {
  Record record(engine, options.seed, options.command_line);
  record.set_threads(options.threads);
  return record;
}

Job limited_job(const CommandOptions& options, const std::string& name, std::function<nlohmann::json()> work) {
  Job job;
  job.name = name;
  // In the child: setting the number of threads already starts some, and the runner forks from a single thread.
  job.run = [work = std::move(work), threads = options.threads](JobContext&) {
    at::set_num_threads(threads);
    return work();
  };
  job.in_process = options.in_process;
  job.limits.wall_s = options.time_limit_s;
  job.limits.silence_s = kNoLimit;  // most jobs are one computation: the wall limit is their silence limit
  job.limits.memory_bytes = static_cast<std::uint64_t>(options.memory_limit_mib) << 20;
  return job;
}

bool run_with_progress(const std::vector<Job>& jobs, const std::function<void(const JobResult&)>& on_result) {
  ProgressOptions progress_options;
  progress_options.style = terminal_style(STDERR_FILENO);
  Progress progress(std::cerr, jobs.size(), progress_options);
  std::size_t done = 0;
  RunnerOptions runner;
  runner.on_start = [&](const Job& job) { progress.update(done, job.name); };
  runner.on_result = [&](const JobResult& result) {
    progress.update(++done, result.name);
    if (!result.ok()) progress.print(result.name + ": " + result.reason());
    // A job stopped by the user or by a time budget did nothing wrong: it has no row, and the ledger misses it.
    if (result.status != JobStatus::kInterrupted) on_result(result);
  };
  const RunReport report = run_jobs(jobs, runner);
  progress.finish();
  if (report.interrupted) std::cerr << "interrupted: " << report.not_started << " of " << jobs.size() << " jobs were not started; what was measured is kept\n";
  return !report.interrupted;
}

std::string failure_of(const JobResult& result) {
  std::string failure = result.reason();
  std::string tail = result.output_tail;
  while (!tail.empty() && tail.back() == '\n') tail.pop_back();
  if (!tail.empty()) failure += " (last output: " + tail.substr(tail.rfind('\n') + 1) + ")";
  return failure;
}

int finish(const std::string& engine, const CommandOptions& options, const Ledger& ledger, Record& record) {
  for (const auto& failure : ledger.failures()) std::cout << "  " << failure << '\n';
  std::cout << engine << ": " << ledger.summary_line() << '\n';
  record.set_ledger(ledger.to_json());
  if (!options.out.empty()) record.write(options.out);
  return ledger.exit_code();
}

}  // namespace twinbench
