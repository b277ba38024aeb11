// One unit of work that runs in its own child process, its limits, and what came of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace twinbench {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

struct JobLimits {
  double wall_s = 120;    // from fork to end
  double silence_s = 60;  // without a byte of output, a report or a sign of life
  // Private and shared anonymous memory beyond what the child inherits at its start; code and mapped files do not
  // count.
  // 0: no limit. Memory of a CUDA device is not covered.
  std::uint64_t memory_bytes = 0;
  double part_s = kNoLimit;  // from its start or one report() to the next: for a job of many parts
};

// The child's line to the runner.
class JobContext {
 public:
  explicit JobContext(int descriptor) : descriptor_(descriptor) {}
  // For a job that runs in the runner's own process: its parts are handed over directly.
  explicit JobContext(std::function<void(const nlohmann::json&)> on_part)
      : descriptor_(-1), on_part_(std::move(on_part)) {}

  // Hands over a finished part. It is kept even when the child dies later.
  void report(const nlohmann::json& part);

  // Says that work goes on. Cheap: sent at most ten times a second.
  void alive();

  // The write end of the result pipe; -1 in the runner's own process.
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
  std::function<void(const nlohmann::json&)> on_part_;
  double sent_at_ = -1;
};

struct Job {
  std::string name;
  std::function<nlohmann::json(JobContext&)> run;  // runs in the child; what it returns is the job's value
  JobLimits limits;
  // No child and no limits: for tools that must see one process. A crash then ends the run.
  bool in_process = false;
};

enum class JobStatus {
  kOk,
  kError,          // threw; the message is in `what`
  kCrashed,        // died of a signal, or a sanitizer ended it
  kAborted,        // SIGABRT: abort(), a failed assert, an exception nobody caught
  kTimeout,        // longer than wall_s
  kOutOfMemory,    // std::bad_alloc or its like, or killed at memory_bytes
  kSilent,         // no sign of life for silence_s
  kProtocolError,  // ended without a result, or wrote something else to the result pipe
  kInterrupted,    // killed because the run was interrupted (SIGINT, SIGTERM)
};

// "ok", "error", "crashed", "aborted", "timeout", "out_of_memory", "silent", "protocol_error", "interrupted".
const char* name_of(JobStatus status);

struct JobResult {
  std::string name;
  JobStatus status = JobStatus::kProtocolError;
  std::string what;                       // empty where ok
  std::string error_kind;                 // name of the ErrorKind where a twinbench::Error was thrown
  nlohmann::json value;                   // null unless the job returned
  std::vector<nlohmann::json> parts;      // what it reported, in order
  std::string output_tail;                // the last 4 KB of its stdout and stderr, as valid UTF-8
  double seconds = 0;                     // from fork to its end
  std::uint64_t peak_resident_bytes = 0;  // all pages, inherited ones included

  bool ok() const { return status == JobStatus::kOk; }
  std::string reason() const;  // "crashed: SIGSEGV", "timeout: ..."; empty where ok
};

// name, status, what, error_kind, value, parts, output_tail, seconds, peak_resident_bytes.
nlohmann::json to_json(const JobResult& result);

}  // namespace twinbench
