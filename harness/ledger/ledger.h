// What was planned, what came of it, and the exit code that follows: nothing measured is never a pass.
#pragma once

#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace twinbench {

enum class Outcome { kPass, kFail, kError, kSkip, kInconclusive };

const char* name_of(Outcome outcome);  // "pass", "fail", "error", "skip", "inconclusive"

// The reverse; throws Error(kUnknownName) on any other word.
Outcome outcome_named(const std::string& word);

constexpr int kExitPass = 0, kExitFailure = 1, kExitUsage = 2, kExitInconclusive = 3, kExitLimit = 4;

// What an error comes from, which is not always the work that was to be judged.
enum class Cause {
  kWork,
  kEnvironment,  // the system refused: no descriptors, no temporary folder, no device that --require-device wants
  kLimit,        // of time, silence or memory
};

struct LedgerCounts {
  std::size_t planned = 0, passed = 0, failed = 0, errors = 0, skipped = 0, inconclusive = 0;
  std::size_t missing = 0;  // planned and never recorded
};

class Ledger {
 public:
  // Names a cell or check that must be recorded later. Planning a name twice is one entry.
  void plan(const std::string& name);

  // A name that was not planned is planned by this. Throws Error(kBadArgument) where anything but a pass gives no
  // reason, and Error(kInternal) where a name is recorded twice: one of the two results would be lost.
  void record(const std::string& name, Outcome outcome, const std::string& reason = "", Cause cause = Cause::kWork);

  // Takes in the entries of another engine or shard, each name under the same rules.
  void merge(const Ledger& other);

  LedgerCounts counts() const;
  std::vector<std::string> missing() const;  // in the order they were planned
  // Failures and errors as "name: reason", in the order they were planned.
  std::vector<std::string> failures() const;
  std::map<std::string, std::size_t> skip_reasons() const;

  // 1 if anything failed or ended in an error of its own; else 2 if the environment failed; else 4 if a limit was
  // reached; else 3 if anything is inconclusive or missing, or if nothing passed (nothing planned, nothing run, only
  // skips); else 0.
  int exit_code() const;

  // The record's ledger section: planned, passed, failed, errors, skipped, inconclusive, exit_code, skip_reasons.
  nlohmann::json to_json() const;

  // "12 passed, 0 failed, 3 skipped", then errors, inconclusive and missing where there are any.
  std::string summary_line() const;

 private:
  struct Entry {
    std::string name, reason;
    bool recorded = false;
    Outcome outcome = Outcome::kPass;
    Cause cause = Cause::kWork;
  };
  Entry& entry_named(const std::string& name);

  std::vector<Entry> entries_;
  std::map<std::string, std::size_t> index_;
};

}  // namespace twinbench
