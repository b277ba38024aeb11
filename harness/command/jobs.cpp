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
#include "harness/simt/host_orders.h"
#include "harness/terminal/progress.h"
#include "src/common/error.h"
#include "src/common/one_line.h"

namespace twinbench {

Record open_record(const CommandOptions& options, const std::string& engine) {
  Record record(engine, options.seed, options.command_line);
  record.set_threads(options.threads);
  const GpuProbe& gpu = options.in_process ? gpu_status_in_process() : gpu_status();
  record.set_gpu(gpu.card, gpu.reason());
  return record;
}

Job limited_job(const CommandOptions& options, const std::string& name, double needed_s,
                std::function<nlohmann::json()> work) {
  Job job;
  job.name = name;
  // In the child: setting the number of threads already starts some, and the runner forks from a single thread.
  const auto orders = kernels::simt::host_orders_named(options.thread_order);
  job.run = [work = std::move(work), name, orders, threads = options.threads](JobContext&) {
    const NvtxRange range(name, "job");
    at::set_num_threads(threads);
    set_host_orders(orders);
    return work();
  };
  job.in_process = options.in_process;
  job.limits.wall_s = options.time_limit_given ? options.time_limit_s : std::max(options.time_limit_s, needed_s);
  job.limits.silence_s = kNoLimit;  // most jobs are one computation: the wall limit is their silence limit
  const std::int64_t usual_mib = options.device == "cpu" || options.device == "simt" ? 8192 : 32768;
  job.limits.memory_bytes =
      static_cast<std::uint64_t>(options.memory_limit_mib > 0 ? options.memory_limit_mib : usual_mib) << 20;
  return job;
}

Batch limited_batch(const CommandOptions& options, const std::string& name, std::vector<std::string> members,
                    std::function<MemberOutcome(std::size_t)> work) {
  Batch batch;
  batch.name = name;
  batch.members = std::move(members);
  batch.work = [work = std::move(work), names = batch.members, threads = options.threads,
                orders = kernels::simt::host_orders_named(options.thread_order)](std::size_t member) {
    const NvtxRange range(names[member], "job");
    at::set_num_threads(threads);
    set_host_orders(orders);
    return work(member);
  };
  batch.in_process = options.in_process;
  batch.limits = limited_job(options, name, 0, nullptr).limits;
  batch.limits.part_s = options.time_limit_s;
  batch.limits.wall_s = options.time_limit_s * static_cast<double>(batch.members.size());
  return batch;
}

std::string sample_of(const CommandOptions& options, const Record& record) {
  if (!options.sample.empty()) return options.sample;
  return record.json()["twinbench"]["provenance"]["revision"].get<std::string>();
}

std::string held_out_text(const CommandOptions& options, const Record& record) {
  if (!options.held_out.empty()) return options.held_out;
  return record.json()["twinbench"]["provenance"]["revision"].get<std::string>();
}

void require_held_out(const CommandOptions& options, const HeldOutCells& held_out) {
  if (options.held_out.empty() || options.held_out == "none" || !held_out.cells().empty()) return;
  throw Error(ErrorKind::kUnknownName, "--held-out", options.held_out,
              "--filter " + options.filter + " means none of the cells that it would draw; they end with /" +
                  std::string(kHeldOut));
}

void print_left_out(const CommandOptions& options, bool quick, const std::string& sample, std::size_t unsampled,
                    std::size_t cut, const TimeBudget& budget) {
  if (!options.shard.empty()) std::cout << "  shard " << options.shard << ": the other parts are other runs\n";
  if (quick)
    std::cout << "  tier quick: " << unsampled << " large cells not sampled; --sample " << one_line(sample)
              << " repeats this run, --tier full takes all\n";
  if (cut > 0)
    std::cout << "  " << cut << " left out, " << budget.reason() << "; --sample " << one_line(sample)
              << " keeps their order\n";
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

namespace {

// The progress line and the card's timeline over whatever runs.
class Watch {
 public:
  Watch(std::size_t planned, bool in_process) : progress_(std::cerr, planned, options()), timeline_(in_process) {}
  void begin(const std::string& name) {
    timeline_.begin();
    progress_.update(done_, name);
  }
  void end(const JobResult& result, const std::function<void(const JobResult&)>& on_result) {
    timeline_.end(result.name);
    progress_.update(++done_, result.name);
    if (!result.ok()) progress_.print(result.name + ": " + result.reason());
    // What was stopped by the user did nothing wrong: it has no row, and the ledger misses it.
    if (result.status != JobStatus::kInterrupted) on_result(result);
  }
  void finish(Record& record) {
    progress_.finish();
    record.add_timeline(timeline_.row());
  }
  std::size_t done() const { return done_; }

 private:
  static ProgressOptions options() {
    ProgressOptions options;
    options.style = terminal_style(STDERR_FILENO);
    return options;
  }
  Progress progress_;
  JobTimeline timeline_;
  std::size_t done_ = 0;
};

bool told_of_interruption(bool interrupted, std::size_t done, std::size_t planned) {
  if (interrupted)
    std::cerr << "interrupted: " << planned - done << " of " << planned
              << " were not finished; what was measured is kept\n";
  return !interrupted;
}

}  // namespace

bool run_with_progress(const std::vector<Job>& jobs, Record& record,
                       const std::function<void(const JobResult&)>& on_result, const TimeBudget& budget,
                       const std::function<void(const std::string&)>& on_left_out) {
  Watch watch(jobs.size(), std::any_of(jobs.begin(), jobs.end(), [](const Job& job) { return job.in_process; }));
  RunnerOptions runner;
  runner.on_start = [&](const Job& job) { watch.begin(job.name); };
  runner.on_result = [&](const JobResult& result) { watch.end(result, on_result); };
  runner.enough = [&] { return budget.spent(); };
  const RunReport report = run_jobs(jobs, runner);
  watch.finish(record);
  if (!report.interrupted && on_left_out)
    for (std::size_t job = jobs.size() - report.not_started; job < jobs.size(); ++job) on_left_out(jobs[job].name);
  return told_of_interruption(report.interrupted, watch.done(), jobs.size());
}

bool run_with_progress(const std::vector<Batch>& batches, Record& record,
                       const std::function<void(const JobResult&)>& on_result, const TimeBudget& budget,
                       const std::function<void(const std::string&)>& on_left_out) {
  std::size_t planned = 0;
  for (const auto& batch : batches) planned += batch.members.size();
  Watch watch(planned,
              std::any_of(batches.begin(), batches.end(), [](const Batch& batch) { return batch.in_process; }));
  const BatchReport report =
      run_batches(batches, {.on_start = [&](const std::string& member) { watch.begin(member); },
                            .on_result = [&](const JobResult& result) { watch.end(result, on_result); },
                            .enough = [&] { return budget.spent(); }});
  watch.finish(record);
  for (const auto& member : report.left_out) on_left_out(member);
  return told_of_interruption(report.interrupted, watch.done(), planned);
}

std::string failure_of(const JobResult& result) {
  std::string failure = result.reason();
  std::string tail = result.output_tail;
  while (!tail.empty() && tail.back() == '\n') tail.pop_back();
  if (!tail.empty()) failure += " (last output: " + tail.substr(tail.rfind('\n') + 1) + ")";
  return one_line(failure);
}

Cause cause_of(const std::string& what) {
  for (const ErrorKind kind : {ErrorKind::kInputOutput, ErrorKind::kMissingDevice})
    if (what.starts_with(std::string(name_of(kind)) + ":")) return Cause::kEnvironment;
  if (what.starts_with(std::string(name_of(ErrorKind::kOutOfMemory)) + ":")) return Cause::kLimit;
  return Cause::kWork;
}

void record_failure(Ledger& ledger, const std::string& name, const JobResult& result) {
  Cause cause = result.error_kind.empty() ? Cause::kWork : cause_of(result.what);
  if (result.status == JobStatus::kTimeout || result.status == JobStatus::kSilent ||
      result.status == JobStatus::kOutOfMemory)
    cause = Cause::kLimit;
  ledger.record(name, Outcome::kError, failure_of(result), cause);
}

int finish(const std::string& engine, const CommandOptions& options, const Ledger& ledger, Record& record) {
  for (const auto& failure : ledger.failures()) std::cout << "  " << failure << '\n';
  std::cout << engine << ": " << ledger.summary_line() << '\n';
  record.set_ledger(ledger.to_json());
  if (!options.out.empty()) record.write(options.out);
  return ledger.exit_code();
}

}  // namespace twinbench
