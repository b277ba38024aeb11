// Work in child processes with the command line's limits and a progress line: what every measuring subcommand does.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "harness/command/command.h"
#include "harness/parity/held_out.h"
#include "harness/record/record.h"
#include "harness/runner/batch.h"
#include "harness/runner/runner.h"
#include "harness/runner/share.h"

namespace twinbench {

// An empty record of that engine, with the command line's seed and threads in its provenance.
Record open_record(const CommandOptions& options, const std::string& engine);

// A job under the limits of the command line. Where that leaves the time limit as it is, one that needs more seconds
// has them; 0: the limit will do.
Job limited_job(const CommandOptions& options, const std::string& name, double needed_s,
                std::function<nlohmann::json()> work);

// Members that share a child, each under the limits of the command line.
Batch limited_batch(const CommandOptions& options, const std::string& name, std::vector<std::string> members,
                    std::function<MemberOutcome(std::size_t)> work);

// What decides samples and order: --sample, else the record's revision.
std::string sample_of(const CommandOptions& options, const Record& record);

// What draws the held-out cases: --held-out, else the record's revision.
std::string held_out_text(const CommandOptions& options, const Record& record);

// Throws Error(kUnknownName) where --held-out gives a text and the filter means none of the cases that it would draw.
void require_held_out(const CommandOptions& options, const HeldOutCells& held_out);

// One line for each way in which this run did less than everything, with what repeats or completes it.
void print_left_out(const CommandOptions& options, bool quick, const std::string& sample, std::size_t unsampled,
                    std::size_t cut, const TimeBudget& budget);

// Where `--device all` meets a machine without CUDA: takes what wants it out of `planned` (cells or twins, whose names
// the ledger has planned) and records each as skipped, or as an error under --require-device.
template <class Planned>
void set_aside_missing_device(std::vector<Planned>& planned, const CommandOptions& options, Ledger& ledger) {
  const auto wants_cuda = [](const Planned& one) { return one.device == c10::DeviceType::CUDA; };
  if (std::none_of(planned.begin(), planned.end(), wants_cuda) || cuda_is_present(!options.in_process)) return;
  for (const auto& one : planned)
    if (wants_cuda(one))
      ledger.record(one.name(), options.require_device ? Outcome::kError : Outcome::kSkip,
                    "missing_device: no CUDA device is visible to LibTorch", Cause::kEnvironment);
  std::erase_if(planned, wants_cuda);
}

// Runs all jobs one at a time and hands each result on as it comes; the card's timeline over them goes into the record.
// Returns false if the run was interrupted (Ctrl-C):
// what was handed on is all that was measured.
// With a budget: jobs that it leaves out are handed to `on_left_out` by name.
bool run_with_progress(const std::vector<Job>& jobs, Record& record,
                       const std::function<void(const JobResult&)>& on_result, const TimeBudget& budget = TimeBudget(),
                       const std::function<void(const std::string&)>& on_left_out = {});
// The same for the members of batches.
bool run_with_progress(const std::vector<Batch>& batches, Record& record,
                       const std::function<void(const JobResult&)>& on_result, const TimeBudget& budget,
                       const std::function<void(const std::string&)>& on_left_out);

// reason() with the last line a dying child wrote, where it wrote any.
std::string failure_of(const JobResult& result);

// Of an error by its text, which begins with the kind's name where a twinbench::Error was thrown.
Cause cause_of(const std::string& what);

// Records a job that gave no result as an error, by what caused it.
void record_failure(Ledger& ledger, const std::string& name, const JobResult& result);

// The end of every measuring subcommand: prints what failed and the summary line "<engine>: 3 passed, ...", writes the
// record where --out asks for one, and returns the ledger's exit code.
int finish(const std::string& engine, const CommandOptions& options, const Ledger& ledger, Record& record);

}  // namespace twinbench
