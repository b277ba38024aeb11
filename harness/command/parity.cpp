// `twinbench parity`: every check of every selected cell, a child process a cell.
#include "harness/parity/parity.h"

#include <iostream>
#include <sstream>

#include "harness/command/command.h"
#include "harness/command/jobs.h"
#include "harness/record/record.h"
#include "src/common/error.h"
#include "src/common/nearest_name.h"

namespace twinbench {
namespace {

std::set<std::string> chosen_checks(const std::string& list) {
  std::set<std::string> checks;
  std::stringstream stream(list);
  for (std::string name; std::getline(stream, name, ',');) {
    const auto& known = parity_check_names();
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw Error(ErrorKind::kUnknownName, "--checks", name, "no such check" + did_you_mean(name, known));
    checks.insert(name);
  }
  return checks;
}

}  // namespace

int parity_command(const CommandOptions& options, const std::string& checks) {
  ParityOptions parity;
  parity.checks = chosen_checks(checks);
  if (options.quick) {
    parity.repeats = 3;
    parity.gradient_seconds = 1;
    parity.thorough_elements = 200'000;
  }
  auto cells = selected_cells(options);
  Ledger ledger;
  for (const auto& cell : cells) ledger.plan(cell.name());
  set_aside_missing_device(cells, options, ledger);
  Record record = open_record(options, "parity");
  std::vector<Job> jobs;
  for (const auto& cell : cells) {
    // A baseline is judged as the oracle that it is: worked examples, gradients, invariants, inputs left alone. What it
    // allocates or copies at set-up is its sin, not a fault.
    ParityOptions chosen = parity;
    if (cell.variant == Variant::kBaseline && chosen.checks.empty()) chosen.checks = {"golden", "gradient", "invariant", "input_mutation", "determinism"};
    jobs.push_back(limited_job(options, cell.name(), [cell, parity = chosen, &options] {
      nlohmann::json rows = nlohmann::json::array();
      for (const auto& result : check_cell(cell, options.seed, parity)) rows.push_back(to_json(cell.name(), result));
      return rows;
    }));
  }
  std::size_t checks_run = 0;
  run_with_progress(jobs, record, [&](const JobResult& job) {
    if (!job.ok()) {
      ledger.record(job.name, Outcome::kError, failure_of(job));
      record.add("parity", {{"cell", job.name}, {"check", "process"}, {"verdict", "error"}, {"reason", failure_of(job)}, {"seed", options.seed}, {"seconds", job.seconds}, {"outputs", nlohmann::json::array()}, {"vacuity", nullptr}});
      return;
    }
    std::string broken;
    std::size_t judged = 0;
    Outcome outcome = Outcome::kPass;
    for (const auto& row : job.value) {
      record.add("parity", row);
      ++checks_run;
      const auto verdict = row["verdict"].get<std::string>();
      if (verdict == "fail" || verdict == "error") {
        outcome = outcome == Outcome::kFail ? outcome : outcome_named(verdict);
        broken += (broken.empty() ? "" : "; ") + row["check"].get<std::string>() + ": " + row["reason"].get<std::string>();
      }
      judged += verdict == "pass";
    }
    if (!broken.empty()) ledger.record(job.name, outcome, broken);
    else if (judged == 0) ledger.record(job.name, Outcome::kSkip, "no check applies to this cell");
    else ledger.record(job.name, Outcome::kPass);
  });
  std::cout << "parity: " << checks_run << " checks on " << cells.size() << " cells (seed " << options.seed << ")\n";
  return finish("parity", options, ledger, record);
}

}  // namespace twinbench
