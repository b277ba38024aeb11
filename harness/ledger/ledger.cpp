// Counting outcomes and deciding the exit code, failing closed.
#include "harness/ledger/ledger.h"

#include <algorithm>
#include <array>

#include "src/common/error.h"
#include "src/common/one_line.h"

namespace twinbench {
namespace {

constexpr std::array<Outcome, 5> kOutcomes = {Outcome::kPass, Outcome::kFail, Outcome::kError, Outcome::kSkip,
                                              Outcome::kInconclusive};

}  // namespace

const char* name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::kPass: return "pass";
    case Outcome::kFail: return "fail";
    case Outcome::kError: return "error";
    case Outcome::kSkip: return "skip";
    case Outcome::kInconclusive: return "inconclusive";
  }
  return "error";
}

Outcome outcome_named(const std::string& word) {
  for (const Outcome outcome : kOutcomes)
    if (word == name_of(outcome)) return outcome;
  throw Error(ErrorKind::kUnknownName, "verdict", word, "use pass, fail, error, skip or inconclusive");
}

Ledger::Entry& Ledger::entry_named(const std::string& name) {
  const auto [place, added] = index_.emplace(name, entries_.size());
  if (added) entries_.push_back({name, "", false, Outcome::kPass, Cause::kWork});
  return entries_[place->second];
}

void Ledger::plan(const std::string& name) { entry_named(name); }

void Ledger::record(const std::string& name, Outcome outcome, const std::string& reason, Cause cause) {
  if (outcome != Outcome::kPass && reason.empty())
    throw Error(ErrorKind::kBadArgument, name, name_of(outcome), "say why: only a pass needs no reason");
  Entry& entry = entry_named(name);
  if (entry.recorded) throw Error(ErrorKind::kInternal, "ledger entry", name, "record each planned name once");
  entry.recorded = true;
  entry.outcome = outcome;
  entry.reason = one_line(reason);  // it may quote a file
  entry.cause = cause;
}

void Ledger::merge(const Ledger& other) {
  for (const Entry& entry : other.entries_) {
    plan(entry.name);
    if (entry.recorded) record(entry.name, entry.outcome, entry.reason, entry.cause);
  }
}

LedgerCounts Ledger::counts() const {
  LedgerCounts counts;
  counts.planned = entries_.size();
  for (const Entry& entry : entries_) {
    if (!entry.recorded) {
      ++counts.missing;
      continue;
    }
    switch (entry.outcome) {
      case Outcome::kPass: ++counts.passed; break;
      case Outcome::kFail: ++counts.failed; break;
      case Outcome::kError: ++counts.errors; break;
      case Outcome::kSkip: ++counts.skipped; break;
      case Outcome::kInconclusive: ++counts.inconclusive; break;
    }
  }
  return counts;
}

std::vector<std::string> Ledger::missing() const {
  std::vector<std::string> names;
  for (const Entry& entry : entries_)
    if (!entry.recorded) names.push_back(entry.name);
  return names;
}

std::vector<std::string> Ledger::failures() const {
  std::vector<std::string> lines;
  for (const Entry& entry : entries_)
    if (entry.recorded && (entry.outcome == Outcome::kFail || entry.outcome == Outcome::kError))
      lines.push_back(entry.name + ": " + entry.reason);
  return lines;
}

std::map<std::string, std::size_t> Ledger::skip_reasons() const {
  std::map<std::string, std::size_t> reasons;
  for (const Entry& entry : entries_)
    if (entry.recorded && entry.outcome == Outcome::kSkip) ++reasons[entry.reason];
  return reasons;
}

int Ledger::exit_code() const {
  const LedgerCounts c = counts();
  const auto errors_by = [&](Cause cause) {
    return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
      return entry.recorded && entry.outcome == Outcome::kError && entry.cause == cause;
    });
  };
  if (c.failed > 0 || errors_by(Cause::kWork)) return kExitFailure;
  if (errors_by(Cause::kEnvironment)) return kExitUsage;
  if (errors_by(Cause::kLimit)) return kExitLimit;
  if (c.inconclusive > 0 || c.missing > 0 || c.passed == 0) return kExitInconclusive;
  return kExitPass;
}

nlohmann::json Ledger::to_json() const {
  const LedgerCounts c = counts();
  return {{"planned", c.planned},     {"passed", c.passed},
          {"failed", c.failed},       {"errors", c.errors},
          {"skipped", c.skipped},     {"inconclusive", c.inconclusive},
          {"exit_code", exit_code()}, {"skip_reasons", skip_reasons()}};
}

std::string Ledger::summary_line() const {
  const LedgerCounts c = counts();
  std::string line = std::to_string(c.passed) + " passed, " + std::to_string(c.failed) + " failed, " +
                     std::to_string(c.skipped) + " skipped";
  const auto add = [&line](std::size_t count, const char* word) {
    if (count > 0) line += ", " + std::to_string(count) + " " + word;
  };
  add(c.errors, c.errors == 1 ? "error" : "errors");
  add(c.inconclusive, "inconclusive");
  add(c.missing, "missing");
  if (c.planned == 0) line += " (nothing was planned)";
  return line;
}

}  // namespace twinbench
