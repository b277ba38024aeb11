// `twinbench parity`: every check of every selected cell, a child process a component.
#include "harness/parity/parity.h"

#include <iostream>
#include <map>
#include <memory>
#include <sstream>

#include "harness/command/command.h"
#include "harness/command/jobs.h"
#include "harness/parity/drawn_inputs.h"
#include "harness/parity/held_out.h"
#include "harness/parity/shared_case.h"
#include "harness/parity/tier.h"
#include "harness/record/record.h"
#include "harness/runner/same_bits.h"
#include "harness/runner/share.h"
#include "harness/simt/host_orders.h"
#include "src/common/error.h"
#include "src/common/nearest_name.h"
#include "src/common/one_line.h"

namespace twinbench {
namespace {

std::set<std::string> chosen_checks(const std::string& list) {
  std::set<std::string> checks;
  std::stringstream stream(list);
  for (std::string name; std::getline(stream, name, ',');) {
    const auto& known = parity_check_names();
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      std::string all;
      for (const auto& one : known) all += (all.empty() ? "give some of " : ", ") + one;
      throw Error(ErrorKind::kUnknownName, "--checks", name, all + did_you_mean(name, known));
    }
    checks.insert(name);
  }
  return checks;
}

// Cells that one child judges: of one component and of one worth, in their order.
std::vector<std::vector<Cell>> by_component(const std::vector<Cell>& cells) {
  std::vector<std::vector<Cell>> groups;
  for (const auto& cell : cells) {
    const bool same = !groups.empty() && groups.back().front().component == cell.component &&
                      groups.back().front().device == cell.device &&
                      value_class(groups.back().front()) == value_class(cell);
    if (!same) groups.emplace_back();
    groups.back().push_back(cell);
  }
  return groups;
}

nlohmann::json row_of(const std::string& cell, const char* check, const char* verdict, const std::string& reason,
                      std::uint64_t seed, double seconds) {
  return {{"cell", cell},
          {"check", check},
          {"verdict", verdict},
          {"reason", reason},
          {"seed", seed},
          {"seconds", seconds},
          {"outputs", nlohmann::json::array()},
          {"vacuity", nullptr}};
}

// In the child. What a wrong cell did to the process is unknown: the cells after it go on in a fresh one.
MemberOutcome outcome_of(const Cell& cell, const std::vector<CheckResult>& rows) {
  MemberOutcome outcome{nlohmann::json::array(), true};
  for (const auto& row : rows) {
    outcome.sound = outcome.sound && (row.verdict == CheckVerdict::kPass || row.verdict == CheckVerdict::kSkip);
    outcome.value.push_back(to_json(cell.name(), row));
  }
  return outcome;
}

}  // namespace

int parity_command(const CommandOptions& options, const std::string& checks) {
  ask_for_same_bits();
  const TimeBudget budget(options.minutes);
  const Tier tier = options.quick ? Tier::kQuick : tier_named(options.tier);
  const Shard shard = shard_named(options.shard);
  const auto chosen = chosen_checks(checks);
  const HeldOutCells held_out(options.held_out == "none" ? "^$" : options.filter, options.device, false);
  auto cells = selected_cells(options, !held_out.cells().empty());
  require_held_out(options, held_out);
  cells.insert(cells.end(), held_out.cells().begin(), held_out.cells().end());
  const std::size_t matched = cells.size();
  std::erase_if(cells, [&](const Cell& cell) { return !shard.has(case_name(cell)); });
  Ledger ledger;
  for (const auto& cell : cells) ledger.plan(cell.name());
  set_aside_missing_device(cells, options, ledger);
  Record record = open_record(options, "parity");
  const std::string sample = sample_of(options, record), drawn_by = held_out_text(options, record);
  std::size_t unsampled = 0, cut = 0, checks_run = 0;
  std::erase_if(cells, [&](const Cell& cell) {
    const std::string why = not_sampled(cell, tier, sample);
    if (why.empty()) return false;
    ledger.record(cell.name(), Outcome::kSkip, why);
    record.add("parity", row_of(cell.name(), "left_out", "skip", why + " (sample " + sample + ")", options.seed, 0));
    ++unsampled;
    return true;
  });
  cells = most_valuable_first(std::move(cells), sample);
  std::vector<Batch> batches;
  for (auto& group : by_component(cells)) {
    std::vector<std::string> members;
    for (const auto& cell : group) members.push_back(cell.name());
    batches.push_back(limited_batch(
        options, group.front().component->spec.id(), std::move(members),
        [group, tier, chosen, sample, drawn_by, order = options.thread_order, seed = options.seed,
         shared = std::make_shared<SharedCases>()](std::size_t member) {
          set_host_orders(kernels::simt::host_orders_named(order, name_hash(sample + group[member].name())));
          ParityOptions parity = parity_options(tier, group[member].variant);
          if (group[member].device.is_simt()) parity.repeats = 3;  // each thread order once
          if (!chosen.empty()) parity.checks = chosen;
          parity.sample = sample;
          const Cell& cell = group[member];
          if (cell.input_case->name == kHeldOut)
            return outcome_of(cell, judge_held_out(cell, drawn_by, parity, *shared));
          return outcome_of(cell, judge_cell(*cell.component, cell.variant, cell.setting(), seed, parity, *shared));
        }));
  }
  std::map<std::string, std::string> drawn;
  const auto on_result = [&](const JobResult& job) {
    if (!job.ok()) {
      record_failure(ledger, job.name, job);
      record.add("parity", row_of(job.name, "process", "error", failure_of(job), options.seed, job.seconds));
      return;
    }
    std::string broken, error_reason;
    std::size_t judged = 0;
    Outcome outcome = Outcome::kPass;
    for (const auto& row : job.value) {
      record.add("parity", row);
      ++checks_run;
      const auto verdict = row["verdict"].get<std::string>();
      if (verdict == "error" && error_reason.empty()) error_reason = row["reason"];
      if (verdict == "fail" || verdict == "error") {
        outcome = outcome == Outcome::kFail ? outcome : outcome_named(verdict);
        broken +=
            (broken.empty() ? "" : "; ") + row["check"].get<std::string>() + ": " + row["reason"].get<std::string>();
      }
      judged += verdict == "pass";
      if (row["check"] == kHeldOut) drawn[job.name.substr(0, job.name.find('/'))] = row["reason"];
    }
    if (!broken.empty())
      ledger.record(job.name, outcome, broken, cause_of(error_reason));
    else if (judged == 0)
      ledger.record(job.name, Outcome::kSkip, "no check applies to this cell");
    else
      ledger.record(job.name, Outcome::kPass);
  };
  run_with_progress(batches, record, on_result, budget, [&](const std::string& cell) {
    ledger.record(cell, Outcome::kInconclusive, budget.reason());
    record.add("parity", row_of(cell, "left_out", "skip", budget.reason(), options.seed, 0));
    ++cut;
  });
  std::cout << "parity: " << checks_run << " checks on " << cells.size() - cut << " of " << matched << " cells (seed "
            << options.seed << ")\n";
  for (const auto& [id, text] : drawn)
    std::cout << "  held out by " << one_line(drawn_by) << ": " << id << " " << text << '\n';
  std::cout << "  --sample " << one_line(sample) << " repeats the numbers of threads and of runs that were drawn\n";
  print_left_out(options, tier == Tier::kQuick, sample, unsampled, cut, budget);
  return finish("parity", options, ledger, record);
}

}  // namespace twinbench
