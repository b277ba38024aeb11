// Limits, progress on standard error, interruption.
#include "harness/command/jobs.h"

#include <ATen/Parallel.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <optional>
#include <utility>

#include "harness/gpu/nvtx_range.h"
#include "harness/gpu/probe.h"
#include "harness/gpu/timeline_process.h"
#include "harness/terminal/progress.h"

namespace twinbench {

Record open_record(const CommandOptions& options, const std::string& engine) {
  Record record(engine, options.seed, options.command_line);
  record.set_threads(options.threads);
  const GpuProbe& gpu = options.in_process ? gpu_status_in_process() : gpu_status();
  record.set_gpu(gpu.card, gpu.reason());
  return record;
}

Job limited_job(const CommandOptions& options, const std::string& name, std::function<nlohmann::json()> work) {
  Job job;
  job.name = name;
  // In the child: setting the number of threads already starts some, and the runner forks from a single thread.
  job.run = [work = std::move(work), name, threads = options.threads](JobContext&) {
    const NvtxRange range(name, "job");
    at::set_num_threads(threads);
    return work();
  };
  job.in_process = options.in_process;
  job.limits.wall_s = options.time_limit_s;
  job.limits.silence_s = kNoLimit;  // most jobs are one computation: the wall limit is their silence limit
  const std::int64_t usual_mib = options.device == "cpu" ? 8192 : 32768;
  job.limits.memory_bytes = static_cast<std::uint64_t>(options.memory_limit_mib > 0 ? options.memory_limit_mib : usual_mib) << 20;
  return job;
}

namespace {

// Samples the card while jobs run, and notes when each began and ended. Where there is no card: null, with the reason.
class JobTimeline {
 public:
  explicit JobTimeline(bool in_process) : in_process_(in_process) {
    if (!in_process && gpu_status().usable()) process_.emplace(gpu_status().pci_bus_id);
  }
  void begin() { started_s_ = process_ ? process_->seconds() : 0; }
  void end(const std::string& job) {
    if (process_) jobs_.push_back({{"name", job}, {"start_s", started_s_}, {"end_s", process_->seconds()}});
  }
  nlohmann::json row() {
    SampledTimeline sampled{nullptr, in_process_ ? "not sampled: --in-process" : gpu_status().reason()};
    if (process_) sampled = process_->stop();
    if (sampled.samples.is_null()) jobs_.clear();
    return {{"samples", sampled.samples}, {"reason", sampled.reason}, {"jobs", jobs_}};
  }

 private:
  bool in_process_;
  std::optional<TimelineProcess> process_;
  double started_s_ = 0;
  std::vector<nlohmann::json> jobs_;
};

}  // namespace

bool run_with_progress(const std::vector<Job>& jobs, Record& record, const std::function<void(const JobResult&)>& on_result) {
  ProgressOptions progress_options;
  progress_options.style = terminal_style(STDERR_FILENO);
  Progress progress(std::cerr, jobs.size(), progress_options);
  std::size_t done = 0;
  RunnerOptions runner;
  JobTimeline timeline(std::any_of(jobs.begin(), jobs.end(), [](const Job& job) { return job.in_process; }));
  runner.on_start = [&](const Job& job) {
    timeline.begin();
    progress.update(done, job.name);
  };
  runner.on_result = [&](const JobResult& result) {
    timeline.end(result.name);
    progress.update(++done, result.name);
    if (!result.ok()) progress.print(result.name + ": " + result.reason());
    // A job stopped by the user or by a time budget did nothing wrong: it has no row, and the ledger misses it.
    if (result.status != JobStatus::kInterrupted) on_result(result);
  };
  const RunReport report = run_jobs(jobs, runner);
  progress.finish();
  record.add_timeline(timeline.row());
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
