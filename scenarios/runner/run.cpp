// `twinbench scenario`: each scenario in a child process, its criteria judged, a row in the record.
#include <algorithm>
#include <iostream>

#include "harness/command/jobs.h"
#include "harness/terminal/table.h"
#include "scenarios/runner/judge.h"
#include "scenarios/runner/select.h"

namespace twinbench {
namespace {

using nlohmann::json;

void print_scenario(const std::string& name, const json& row) {
  std::cout << name << " (" << row["experiment"].get<std::string>() << ", " << row["source"].get<std::string>()
            << "): " << row["verdict"].get<std::string>() << '\n';
  Table table({{"criterion"}, {"measured", Table::Align::kRight}, {"verdict"}, {"why"}});
  for (const auto& criterion : row["criteria"])
    table.add_row({criterion["name"], criterion["measured"].is_null() ? "-" : criterion["measured"].dump(),
                   criterion["verdict"], criterion["reason"]});
  table.print(std::cout);
  for (const auto& failed : row.value("failed_before", json::array()))
    std::cout << "an earlier run failed by times alone, " << failed.get<std::string>() << '\n';
}

void record_outcome(Ledger& ledger, const std::string& name, const json& row) {
  // Each criterion is an entry of its own, so that a skip is counted and never hides behind the others.
  for (const auto& criterion : row["criteria"])
    ledger.record(name + ": " + criterion["name"].get<std::string>(), outcome_named(criterion["verdict"]),
                  criterion["verdict"] == "pass" ? std::string() : criterion["reason"].get<std::string>());
  const auto verdict = row["verdict"].get<std::string>();
  ledger.record(name, outcome_named(verdict), verdict == "pass" ? "" : row["reason"].get<std::string>());
}

// Scenarios of a run that has no path for the device, or is too large for it: not this machine's lack, so a skip even
// under --require-device.
void set_aside_without_path(std::vector<PlannedScenario>& planned, Ledger& ledger) {
  std::erase_if(planned, [&](const PlannedScenario& one) {
    const auto& source = catalogue().run(one.config->run, one.config->file + ": run");
    const auto devices = devices_of(source);
    std::string why;
    if (one.device.is_simt() && one.config->tier > ScenarioTier::kSmoke)
      why = "out_of_range: its tier is '" + to_string(one.config->tier) + "': simt takes scenarios of tier smoke";
    else if (one.device.is_simt() && one.config->experiment == "speed")
      why = "bad_argument: it compares times, and those of simt mean nothing";
    else if (one.config->card_only && !one.device.is_cuda())
      why = "out_of_range: its file says 'device: cuda': it is too much for another";
    else if (std::find(devices.begin(), devices.end(), one.device) == devices.end())
      why = source.id() + " has a component that runs on the host only";
    if (why.empty()) return false;
    std::cout << one.name() << ": skipped, " << why << '\n';
    ledger.record(one.name(), Outcome::kSkip, why);
    return true;
  });
}

Job job_of(const PlannedScenario& planned, const CommandOptions& options) {
  // A kind that times for so many seconds prepares and compares, too, and may run again.
  const auto seconds = planned.config->keys.find("seconds");
  const double needed_s =
      seconds == planned.config->keys.end() ? 0 : 60 + 4 * kRunsOfFailingTimes * seconds->get<double>();
  auto job = limited_job(options, planned.name(), needed_s, [planned, quick = options.quick] {
    return run_scenario(*planned.config, catalogue(), planned.device, quick);
  });
  // Its ranks are forked, so no thread may have been started: not even by setting their number.
  if (planned.config->experiment == "data_parallel")
    job.run = [planned, quick = options.quick](JobContext&) {
      return run_scenario(*planned.config, catalogue(), planned.device, quick);
    };
  return job;
}

}  // namespace

int scenario_command(const CommandOptions& options, const ScenarioOptions& scenario) {
  const auto configs = selected_scenarios(scenario, catalogue());
  const TimeBudget budget(options.minutes);
  const Shard shard = shard_named(options.shard);
  auto planned = planned_scenarios(configs, options);
  std::erase_if(planned, [&](const PlannedScenario& one) { return !shard.has(one.name()); });
  // The quick ones first: a time budget then leaves out as few as can be.
  std::stable_sort(planned.begin(), planned.end(), [](const PlannedScenario& left, const PlannedScenario& right) {
    return left.config->tier < right.config->tier;
  });
  if (options.device == "cuda") require_cuda(!options.in_process);
  Ledger ledger;
  for (const auto& one : planned) ledger.plan(one.name());
  set_aside_missing_device(planned, options, ledger);
  set_aside_without_path(planned, ledger);
  Record record = open_record(options, "scenario");
  std::vector<Job> jobs;
  for (const auto& one : planned) {
    const auto& source = catalogue().run(one.config->run, one.config->file + ": run");
    if (const std::string remark = source.remark ? source.remark(*one.config) : ""; !remark.empty())
      std::cout << one.name() << ": " << remark << '\n';
    jobs.push_back(job_of(one, options));
  }
  const auto on_result = [&](const JobResult& result) {
    if (!result.ok()) {
      record_failure(ledger, result.name, result);
      return;
    }
    record.add("scenarios", result.value);
    print_scenario(result.name, result.value);
    record_outcome(ledger, result.name, result.value);
  };
  run_with_progress(jobs, record, on_result, budget, [&](const std::string& name) {
    ledger.record(name, Outcome::kInconclusive, budget.reason());
    std::cout << name << ": left out, " << budget.reason() << '\n';
  });
  return finish("scenario", options, ledger, record);
}

}  // namespace twinbench
